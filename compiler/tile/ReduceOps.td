//===- ReduceOps.td - Reductions and scans ----------------------------------===//
#ifndef KILN_TILE_REDUCE_OPS
#define KILN_TILE_REDUCE_OPS

include "compiler/tile/TileTypes.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_ReduceOp : Tile_Op<"reduce", [RecursiveMemoryEffects, SameVariadicOperandSize,
                                       SingleBlockImplicitTerminator<"::kiln::tile::YieldOp">]> {
  let summary = "Tiles combined along one dimension";
  let description = [{
    ```mlir
    %m = tile.reduce(%x) {axis = 1 : i32} : tensor<64x32xf32> to tensor<64xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maximumf %a, %b : f32
      tile.yield %c : f32
    }
    %best, %where = tile.reduce(%y, %i) {axis = 0 : i32} : tensor<64xf32>, tensor<64xi32> to f32, i32 {
    ^bb0(%a: f32, %j: i32, %b: f32, %k: i32):
      %more = arith.cmpf ogt, %a, %b : f32
      %equal = arith.cmpf oeq, %a, %b : f32
      %first = arith.cmpi slt, %j, %k : i32
      %tie = arith.andi %equal, %first : i1
      %left = arith.ori %more, %tie : i1
      %value = arith.select %left, %a, %b : f32
      %index = arith.select %left, %j, %k : i32
      tile.yield %value, %index : f32, i32
    }
    ```
    The region combines two partial results, one scalar of each operand a side; it must be associative and commutative
    and have no side effect: of equal values the second example takes the first, or which index it gives would follow from
    the layout (for values that may be NaN it would need a rule of its own).  The order of combination follows from the
    layout and is the same in every run.  A tile of rank 1 reduces to a scalar.
  }];
  let arguments = (ins Variadic<Tile_NumberTile>:$sources, I32Attr:$axis);
  let results = (outs Variadic<Tile_NumberLike>:$results);
  let regions = (region SizedRegion<1>:$combine);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_ScanOp : Tile_Op<"scan", [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"::kiln::tile::YieldOp">]> {
  let summary = "Running combination along one dimension, the lower index always on the left";
  let description = [{
    ```mlir
    %s = tile.scan(%x) {axis = 0 : i32} : tensor<128xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %r = tile.scan(%x) {axis = 0 : i32, reverse} : tensor<128xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maximumf %a, %b : f32
      tile.yield %c : f32
    }
    ```
    Element i of the result combines elements 0 .. i (`reverse`: i .. last).  The region must be associative; %a is the
    side of the lower indices, in a reverse scan too: what was combined so far is %b there.
  }];
  let arguments = (ins Variadic<Tile_NumberTile>:$sources, I32Attr:$axis, UnitAttr:$reverse);
  let results = (outs Variadic<Tile_NumberTile>:$results);
  let regions = (region SizedRegion<1>:$combine);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_AnyRowOp : Tile_Op<"any_row", [Pure]> {
  let summary = "Whether rows need what a conditional does";
  let description = [{
    ```mlir
    %some = tile.any_row %grown : tensor<128xi1>
    ```
    True if an element is; true at will if none is.  A row (first dimension) with a true element is one that needs it.
    Each warp may answer for the rows that it holds, so warps may take different arms.  For that it must be the condition of an `scf.if` without side effects, whose arms
    give the same for rows without one; the other arm is then never taken for a row that needs this one.
    Where a warp's rows of the results are not those of `rows`, or warps exchange data inside the arms, the answer is true.
  }];
  let arguments = (ins Tile_MaskTile:$rows);
  let results = (outs I1:$some);
  let assemblyFormat = "$rows attr-dict `:` type($rows)";
  let hasVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, ReturnLike, Terminator,
                                     ParentOneOf<["::kiln::tile::ReduceOp", "::kiln::tile::ScanOp"]>]> {
  let summary = "The combined values of a reduction's or scan's region";
  let description = [{
    ```mlir
    tile.yield %c : f32
    ```
  }];
  let arguments = (ins Variadic<Tile_Number>:$values);
  let builders = [OpBuilder<(ins), [{ (void)$_builder; (void)$_state; }]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif // KILN_TILE_REDUCE_OPS
