//===- PtxOps.td - Instructions that no operation stands for ----------------===//
#ifndef KILN_TILE_PTX_OPS
#define KILN_TILE_PTX_OPS

include "compiler/tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// What has a register of its own: 16, 32 or 64 bits.
def Tile_Register : AnyTypeOf<[F16, BF16, F32, F64, I16, I32, I64], "f16, bf16, f32, f64, i16, i32 or i64">;
def Tile_RegisterTile : Tile_TileOf<[F16, BF16, F32, F64, I16, I32, I64], "tile of them">;
def Tile_RegisterLike : AnyTypeOf<[Tile_Register, Tile_RegisterTile],
                                  "f16, bf16, f32, f64, i16, i32, i64 or tile of them">;

def Tile_InlinePtxOp : Tile_Op<"inline_ptx", [Elementwise, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
                                              DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "PTX, element by element";
  let description = [{
    ```mlir
    %r = tile.inline_ptx "fma.rn.f32 $0, $1, $2, $2;"(%x, %y) : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
    %t = tile.inline_ptx effects "mov.u64 $0, %clock64;"() : () -> i64
    ```
    The text is issued once for each element: `$0`, `$1`, .. are registers of the results, then of the operands, in
    order; `$$` is a dollar sign.  Each has to occur.  f16 and bf16 lie in registers of type .b16, integers in .b16,
    .b32 and .b64.  The statements stand in braces: registers and labels declared in them are their own.

    Without `effects` the results depend on the operands alone: the operation may be removed, repeated, merged with an
    equal one or moved, into a conditional that not all lanes take too.  With it, it stays in the order of such
    operations, is issued by every thread that holds a copy of the element, and by all lanes of a warp where the
    kernel's control flow is the same for them.  No pass sees what memory it touches and no barrier orders that;
    barriers, `ret` and `exit` are refused.
  }];
  let arguments = (ins StrAttr:$text, Variadic<Tile_RegisterLike>:$inputs, UnitAttr:$effects);
  let results = (outs Variadic<Tile_RegisterLike>:$outputs);
  let assemblyFormat = "(`effects` $effects^)? $text `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
  let hasVerifier = 1;
}

#endif // KILN_TILE_PTX_OPS
