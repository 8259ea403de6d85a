//===- ShapeOps.td - Tiles made, and their shapes changed ------------------===//
#ifndef KILN_TILE_SHAPE_OPS
#define KILN_TILE_SHAPE_OPS

include "compiler/tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_RangeOp : Tile_Op<"range", [Pure]> {
  let summary = "start, start + 1, .., end - 1";
  let description = [{
    ```mlir
    %i = tile.range 0 to 128 : tensor<128xi32>
    ```
    The extent is end - start.
  }];
  let arguments = (ins I32Attr:$start, I32Attr:$end);
  let results = (outs Tile_IndexTile:$result);
  let assemblyFormat = "$start `to` $end attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_SplatOp : Tile_Op<"splat", [Pure]> {
  let summary = "A tile whose elements are all one value";
  let description = [{
    ```mlir
    %t = tile.splat %x : f32 to tensor<64x32xf32>
    ```
  }];
  let arguments = (ins Tile_Scalar:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_ExpandDimsOp : Tile_Op<"expand_dims", [Pure]> {
  let summary = "A new dimension of extent 1";
  let description = [{
    ```mlir
    %c = tile.expand_dims %x {axis = 1 : i32} : tensor<64xf32> to tensor<64x1xf32>
    ```
    At stage tile_gpu the operand's layout is the slice of the result's along `axis`.
  }];
  let arguments = (ins Tile_Tile:$source, I32Attr:$axis);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "Dimensions of extent 1 repeated";
  let description = [{
    ```mlir
    %b = tile.broadcast %c : tensor<64x1xf32> to tensor<64x32xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_TransposeOp : Tile_Op<"transpose", [Pure]> {
  let summary = "Dimension i of the result is dimension perm[i] of the operand";
  let description = [{
    ```mlir
    %t = tile.transpose %x [1, 0] : tensor<64x32xf32> to tensor<32x64xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$source, DenseI64ArrayAttr:$perm);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source $perm attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_ReshapeOp : Tile_Op<"reshape", [Pure]> {
  let summary = "The same elements in row-major order, in another shape";
  let description = [{
    ```mlir
    %r = tile.reshape %x : tensor<64x32xf32> to tensor<2048xf32>
    ```
    No element moves to another thread: the result's layout follows from the operand's.
  }];
  let arguments = (ins Tile_Tile:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_JoinOp : Tile_Op<"join", [Pure, AllTypesMatch<["lhs", "rhs"]>]> {
  let summary = "Two tiles side by side in a new last dimension of extent 2";
  let description = [{
    ```mlir
    %j = tile.join %a, %b : tensor<64xf32> to tensor<64x2xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$lhs, Tile_Tile:$rhs);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `to` type($result)";
  let hasVerifier = 1;
}

def Tile_SplitOp : Tile_Op<"split", [Pure, AllTypesMatch<["lhs", "rhs"]>]> {
  let summary = "The two halves of a last dimension of extent 2";
  let description = [{
    ```mlir
    %a, %b = tile.split %j : tensor<64x2xf32> to tensor<64xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$source);
  let results = (outs Tile_Tile:$lhs, Tile_Tile:$rhs);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($lhs)";
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

#endif // KILN_TILE_SHAPE_OPS
