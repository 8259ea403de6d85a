//===- TileTypes.td - Pointers, views, and what a tile may hold ------------===//
#ifndef KILN_TILE_TYPES
#define KILN_TILE_TYPES

include "compiler/tile/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Global memory, as memory effects name it.
def Tile_GlobalMemory : Resource<"::kiln::tile::GlobalMemory">;

class Tile_Type<string name, string mnem, list<Trait> traits = []> : TypeDef<Tile_Dialect, name, traits> {
  let mnemonic = mnem;
}

def Tile_Ptr : Tile_Type<"Ptr", "ptr"> {
  let summary = "Address of a value in global memory";
  let description = [{
    64 bits.  `!tile.ptr<f32>` points to one f32; a tile of pointers is `tensor<128x!tile.ptr<f32>>`.
  }];
  let parameters = (ins "::mlir::Type":$pointee);
  let assemblyFormat = "`<` $pointee `>`";
  let genVerifyDecl = 1;
}

def Tile_View : Tile_Type<"View", "view"> {
  let summary = "A strided window on memory that is read and written tile by tile";
  let description = [{
    `!tile.view<64x32xf16>` reads and writes tiles of 64x32.  The extents and strides of the memory that it points to
    are run time values (`tile.make_view`).  Reads outside the extents give zero, writes outside do nothing.

    `unit` is the dimension whose stride is 1, the last one unless it says otherwise (`!tile.view<64x32xf16, unit = 0>`);
    `unit = none`: no dimension has a stride known to be 1.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType, "int64_t":$unit);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t noUnit = -1;
    int64_t getRank() const { return static_cast<int64_t>(getShape().size()); }
    /// The type of one tile, without an encoding.
    ::mlir::RankedTensorType getTileType() const;
  }];
}

/// Element types of tiles.  i1 is a mask.
def Tile_Float : AnyTypeOf<[F16, BF16, F32, F64, F8E4M3FN, F8E5M2], "floating-point type">;
def Tile_Int : AnyTypeOf<[I1, I8, I16, I32, I64], "integer of 1, 8, 16, 32 or 64 bits">;
def Tile_Number : AnyTypeOf<[F16, BF16, F32, F64, F8E4M3FN, F8E5M2, I1, I8, I16, I32, I64], "number">;
def Tile_Scalar : AnyTypeOf<[F16, BF16, F32, F64, F8E4M3FN, F8E5M2, I1, I8, I16, I32, I64, Tile_Ptr],
                            "number or pointer">;
def Tile_Index : AnyTypeOf<[I32, I64], "i32 or i64">;

/// A tile with one of these element types, called `summary` in messages and on the reference page.
class Tile_TileOf<list<Type> elements, string summary>
    : Type<RankedTensorOf<elements, [HasStaticShapePred]>.predicate, summary, "::mlir::RankedTensorType">;

def Tile_Tile : Tile_TileOf<[F16, BF16, F32, F64, F8E4M3FN, F8E5M2, I1, I8, I16, I32, I64, Tile_Ptr], "tile">;
def Tile_NumberTile : Tile_TileOf<[F16, BF16, F32, F64, F8E4M3FN, F8E5M2, I1, I8, I16, I32, I64], "tile of numbers">;
def Tile_IntTile : Tile_TileOf<[I8, I16, I32, I64], "tile of integers">;
def Tile_IndexTile : Tile_TileOf<[I32, I64], "tile of i32 or i64">;
def Tile_MaskTile : Tile_TileOf<[I1], "tile of i1">;
def Tile_PtrTile : Tile_TileOf<[Tile_Ptr], "tile of pointers">;

/// One value or a tile of them.
def Tile_PtrLike : AnyTypeOf<[Tile_Ptr, Tile_PtrTile], "pointer or tile of pointers">;
def Tile_MaskLike : AnyTypeOf<[I1, Tile_MaskTile], "i1 or tile of i1">;
def Tile_IndexLike : AnyTypeOf<[I32, I64, Tile_IndexTile], "i32, i64 or tile of them">;
def Tile_NumberLike : AnyTypeOf<[Tile_Number, Tile_NumberTile], "number or tile of numbers">;
def Tile_Any : AnyTypeOf<[Tile_Scalar, Tile_Tile], "scalar or tile">;

#endif // KILN_TILE_TYPES
