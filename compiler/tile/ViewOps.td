//===- ViewOps.td - Bounds-checked windows on memory -----------------------===//
#ifndef KILN_TILE_VIEW_OPS
#define KILN_TILE_VIEW_OPS

include "compiler/tile/TileTypes.td"
include "compiler/tile/MemoryOps.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_MakeViewOp : Tile_Op<"make_view", [Pure, SameVariadicOperandSize]> {
  let summary = "A view of memory with given extents and strides";
  let description = [{
    ```mlir
    %v = tile.make_view %p, extents [%m, %n], strides [%sm, %c1] : !tile.view<64x32xf16>, i64
    ```
    Extents and strides count elements.  All are i64 (or all i32).  The stride of the unit dimension must be 1; a
    verifier refuses a constant that is not, and the launcher guards an argument.
  }];
  let arguments = (ins Tile_Ptr:$pointer, Variadic<Tile_Index>:$extents, Variadic<Tile_Index>:$strides);
  let results = (outs Tile_View:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_NarrowViewOp : Tile_Op<"narrow_view", [Pure, AllTypesMatch<["view", "result"]>,
                                                AllTypesMatch<["start", "size"]>]> {
  let summary = "A view of part of a view: rows start .. start + size - 1 of one dimension";
  let description = [{
    ```mlir
    %w = tile.narrow_view %v[%start, %size] {dim = 0 : i32} : !tile.view<64x32xf16>, i32
    ```
    Coordinate 0 of the result is coordinate `start` of the operand.  Outside `size`, and outside the operand's own
    extents, reads give zero and writes do nothing.
  }];
  let arguments = (ins Tile_View:$view, Tile_Index:$start, Tile_Index:$size, I32Attr:$dim);
  let results = (outs Tile_View:$result);
  let assemblyFormat = "$view `[` $start `,` $size `]` attr-dict `:` qualified(type($view)) `,` type($start)";
  let hasVerifier = 1;
}

def Tile_SliceViewOp : Tile_Op<"slice_view", [Pure]> {
  let summary = "A view with some coordinates fixed and their dimensions gone";
  let description = [{
    ```mlir
    %w = tile.slice_view %v[%batch, %head] {dims = array<i32: 0, 2>} : !tile.view<1x128x1x64xbf16>, i64 -> !tile.view<128x64xbf16>
    ```
    Dimension `dims[i]` of the operand, of extent 1 in its tiles, is at the i-th coordinate from here on; `dims` count up.
    At least one dimension stays.  The coordinates must lie inside the operand's extents: nothing checks them, and other
    memory is read and written where they do not.
  }];
  let arguments = (ins Tile_View:$view, Variadic<Tile_Index>:$coords, DenseI32ArrayAttr:$dims);
  let results = (outs Tile_View:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_LoadViewOp : Tile_Op<"load_view", [DeclareOpInterfaceMethods<Tile_AccessOpInterface>]> {
  let summary = "Reads the tile whose first element is at these coordinates";
  let description = [{
    ```mlir
    %x = tile.load_view %v[%i, %j] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16>
    ```
    Coordinates count elements.  Elements outside the view are zero.  `{unstaged}`: a pipelined loop leaves the load where
    it is, and gives it no shared memory.
  }];
  let arguments = (ins Arg<Tile_View, "", [MemRead<Tile_GlobalMemory>]>:$view, Variadic<Tile_Index>:$coords,
                       DefaultValuedAttr<Tile_Cache, "::kiln::tile::Cache::Default">:$cache, UnitAttr:$unstaged);
  let results = (outs Tile_NumberTile:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_StoreViewOp : Tile_Op<"store_view", [DeclareOpInterfaceMethods<Tile_AccessOpInterface>]> {
  let summary = "Writes the tile whose first element is at these coordinates";
  let description = [{
    ```mlir
    tile.store_view %v[%i, %j], %x : !tile.view<64x32xf16>, i32, tensor<64x32xf16>
    ```
    Elements outside the view are not written.
  }];
  let arguments = (ins Arg<Tile_View, "", [MemWrite<Tile_GlobalMemory>]>:$view, Variadic<Tile_Index>:$coords,
                       Tile_NumberTile:$value, DefaultValuedAttr<Tile_Cache, "::kiln::tile::Cache::Default">:$cache);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif // KILN_TILE_VIEW_OPS
