//===- DotOps.td - Matrix products ------------------------------------------===//
#ifndef KILN_TILE_DOT_OPS
#define KILN_TILE_DOT_OPS

include "compiler/tile/TileTypes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_Precision : I32EnumAttr<"Precision", "how a product of f32 tiles treats its operands",
    [I32EnumAttrCase<"Ieee", 0, "ieee">,        // as they are
     I32EnumAttrCase<"Tf32", 1, "tf32">,        // rounded to 11 bits of mantissa
     I32EnumAttrCase<"Tf32x3", 2, "tf32x3">]> { // as the sum of two such numbers: about 22 bits
  let cppNamespace = "::kiln::tile";
}

def Tile_DotOp : Tile_Op<"dot", [Pure, AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "Product of two matrices, added to a third";
  let description = [{
    ```mlir
    %d = tile.dot %a, %b, %c : tensor<64x32xbf16>, tensor<32x16xbf16> to tensor<64x16xf32>
    %e = tile.dot %p, %q, %c precision tf32 : tensor<64x32xf32>, tensor<32x16xf32> to tensor<64x16xf32>
    ```
    result[m, n] = accumulator[m, n] + sum over k of lhs[m, k] * rhs[k, n]; with a leading batch dimension, one product
    for each of its indices.

    | lhs and rhs | accumulator |
    |---|---|
    | f16, bf16, f8E4M3FN and f8E5M2 (these two mix) | f32 |
    | f32 | f32 |
    | f64 | f64 |
    | i8, signed | i32, wraps round |

    Products are exact (`tf32`: of the rounded operands); sums are f32's, but matrix instructions of 8-bit floats, on
    the targets that have them, keep 14 bits of the largest of the 32 products that they add.  The order of the
    additions follows from the layout and is the same in every run.  `precision` is for f32 alone: `ieee` (each product
    and sum in f32, fused), `tf32`, or `tf32x3`.

    At stage tile_gpu the accumulator's layout is an `mma` or a `blocked` one, and the operands' are the `dot` layouts of
    it with one kWidth.
  }];
  let arguments = (ins Tile_NumberTile:$lhs, Tile_NumberTile:$rhs, Tile_NumberTile:$accumulator,
                       DefaultValuedAttr<Tile_Precision, "::kiln::tile::Precision::Ieee">:$precision);
  let results = (outs Tile_NumberTile:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $accumulator (`precision` $precision^)? attr-dict `:` type($lhs) `,` type($rhs) `to` type($result)
  }];
  let hasVerifier = 1;
}

#endif // KILN_TILE_DOT_OPS
