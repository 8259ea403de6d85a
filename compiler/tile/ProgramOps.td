//===- ProgramOps.td - Where a program is in the grid ----------------------===//
#ifndef KILN_TILE_PROGRAM_OPS
#define KILN_TILE_PROGRAM_OPS

include "compiler/tile/TileTypes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_Axis : I32EnumAttr<"Axis", "a dimension of the grid",
    [I32EnumAttrCase<"X", 0, "x">, I32EnumAttrCase<"Y", 1, "y">, I32EnumAttrCase<"Z", 2, "z">]> {
  let cppNamespace = "::kiln::tile";
}

def Tile_ProgramIdOp : Tile_Op<"program_id", [Pure]> {
  let summary = "Number of this program along one dimension of the grid";
  let description = [{
    ```mlir
    %i = tile.program_id x
    ```
    0 to `tile.num_programs` - 1.
  }];
  let arguments = (ins Tile_Axis:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_NumProgramsOp : Tile_Op<"num_programs", [Pure]> {
  let summary = "Number of programs along one dimension of the grid";
  let description = [{
    ```mlir
    %n = tile.num_programs x
    ```
    The launch decides it.
  }];
  let arguments = (ins Tile_Axis:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

#endif // KILN_TILE_PROGRAM_OPS
