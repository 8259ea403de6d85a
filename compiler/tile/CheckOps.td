//===- CheckOps.td - Facts, checks and output -------------------------------===//
#ifndef KILN_TILE_CHECK_OPS
#define KILN_TILE_CHECK_OPS

include "compiler/tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Output and traps: ordered among themselves, and no memory.
def Tile_Console : Resource<"::kiln::tile::Console">;

def Tile_AssumeOp : Tile_Op<"assume", [MemoryEffects<[MemWrite<Tile_Console>]>]> {
  let summary = "A fact that the compiler may use";
  let description = [{
    ```mlir
    tile.assume %c
    ```
    If it does not hold, results are undefined; `kiln check` reports it.
  }];
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
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
