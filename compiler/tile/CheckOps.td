//===- CheckOps.td - Facts, checks and output -------------------------------===//
#ifndef KILN_TILE_CHECK_OPS
#define KILN_TILE_CHECK_OPS

include "compiler/tile/TileTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Output and traps: ordered among themselves, and no memory.
def Tile_Console : Resource<"::kiln::tile::Console">;

def Tile_AssumeOp : Tile_Op<"assume", [MemoryEffects<[MemWrite<Tile_Console>]>]> {
  let summary = "A fact that the compiler may use";
  let description = [{
    ```mlir
    tile.assume %c
    ```
    If it does not hold, results are undefined, and nothing reports it: `tile.assert` checks.

    Where it stands in the block in which an integer is defined, or at the top of the kernel for an argument, the
    compiler takes from `x % n == 0` that x is a multiple of n, and from `x >= 0` (`x > 0`, `x < n`) its sign; also from
    several joined by `arith.andi`.  Everything else is only told to LLVM.
  }];
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
}

def Tile_MultipleOfOp : Tile_Op<"multiple_of", [Pure, Elementwise, SameOperandsAndResultType]> {
  let summary = "The operand, known to be a multiple";
  let description = [{
    ```mlir
    %b = tile.multiple_of %a, 16 : tensor<64x32xi32>
    ```
    The integer, or of a tile the first element of each aligned run of elements that count up (each element, where
    nothing counts up: `tile.max_contiguous`), is a multiple of that number.  If it is not, results are undefined.
  }];
  let arguments = (ins Tile_IndexLike:$source, ConfinedAttr<I32Attr, [IntPositive]>:$divisor);
  let results = (outs Tile_IndexLike:$result);
  let assemblyFormat = "$source `,` $divisor attr-dict `:` type($result)";
}

def Tile_MaxContiguousOp : Tile_Op<"max_contiguous", [Pure, Elementwise, SameOperandsAndResultType]> {
  let summary = "The operand, whose elements are known to count up";
  let description = [{
    ```mlir
    %b = tile.max_contiguous %a, 8 {axis = 1 : i32} : tensor<64x32xi32>
    ```
    Aligned runs of that many elements along `axis` count up by 1.  If they do not, results are undefined.  An access is
    as wide as its addresses are both contiguous and aligned: `tile.multiple_of` says where the runs begin.
  }];
  let arguments = (ins Tile_IndexTile:$source, ConfinedAttr<I32Attr, [IntPositive]>:$elements,
                       ConfinedAttr<I32Attr, [IntNonNegative]>:$axis);
  let results = (outs Tile_IndexTile:$result);
  let assemblyFormat = "$source `,` $elements attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_AssertOp : Tile_Op<"assert", [MemoryEffects<[MemWrite<Tile_Console>]>]> {
  let summary = "Stops the kernel with a message if the condition fails";
  let description = [{
    ```mlir
    tile.assert %c, "index out of range" : tensor<128xi1>
    ```
  }];
  let arguments = (ins Tile_MaskLike:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
}

def Tile_PrintOp : Tile_Op<"print", [MemoryEffects<[MemWrite<Tile_Console>]>]> {
  let summary = "Prints values from the device";
  let description = [{
    ```mlir
    tile.print "x = " %x : tensor<128xf32>
    ```
    One line an element: program, element's coordinates, prefix, value.
  }];
  let arguments = (ins StrAttr:$prefix, Variadic<Tile_NumberLike>:$values);
  let assemblyFormat = "$prefix ($values^ `:` type($values))? attr-dict";
}

#endif // KILN_TILE_CHECK_OPS
