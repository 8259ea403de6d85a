//===- TileDialect.td - The portable dialect -------------------------------===//
//
// A kernel over tiles.  Nothing here knows of warps, lanes or shared memory.  Operations live in one file a family.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_DIALECT
#define KILN_TILE_DIALECT

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::kiln::tile";
  let summary = "Kernels over tiles, for every GPU";
  let description = [{
    A kernel is a `func.func` with the attribute `tile.kernel`.  Its body computes with scalars and with *tiles*: values
    of type `tensor<..>` of static shape whose extents are m * 2^k with m odd and at most 15.  Arithmetic is that of
    `arith` and `math`, control flow that of `scf`; this dialect adds what they lack: where a program is in the grid,
    tiles of indices and pointers, changes of shape, access to memory, views, reductions, scans and checks.

    A kernel's arguments are scalars (`i32`, `i64`, `f32`, ..) and pointers to global memory, `!tile.ptr<T>`.
    Attributes of a kernel, its arguments and operations:

    | attribute | meaning |
    |---|---|
    | `tile.kernel` | this function is a kernel (unit) |
    | `tile.num_warps` | warps of a block, i32: 1 to 32, a power of two where the kernel has tiles; 4 if absent |
    | `tile.num_stages` | slots of the pipeline of each pipelined loop, i32, 1 to 8; 1, no pipelining, if absent; a loop may have its own, which counts for that loop alone |
    | `tile.unroll` (scf.for) | so many rounds at once, each a copy of the body, i32, 1 to 64 |
    | `tile.max_registers` | at most so many 32-bit registers a thread, i32; the assembler decides if absent |
    | `tile.assembler_level` | how hard the assembler optimises, 0 to 3, i32; 3 if absent.  1 takes two thirds of the time; some kernels lose nothing by it |
    | `tile.cluster` | blocks of a cluster along x, y, z: they run at the same time on neighbouring multiprocessors, and a launch's grid is a multiple of them.  Powers of two, 8 in all at most, `array<i32: 2, 1, 1>` (what is left out is 1); none if absent |
    | `tile.divisibility` (argument) | the integer, or the pointer's address in bytes, is a multiple of this, i32 |
    | `tile.equals` (argument) | the integer has this value; kiln-specialize writes it where it puts the constant in the argument's place |
    | `tile.name` (argument) | its name in messages, string |
    | `tile.noalias` (argument) | no other argument's memory overlaps what is written through this one (unit) |
    | `tile.specialize` (argument) | how much of its value one compiled kernel is for: `"none"`; `"divisibility"`, a multiple of 16 (a pointer: aligned to 16 bytes) or not; `"stride"`, 1, a multiple or neither; `"value"`, an integer's value.  If absent, `"divisibility"` of pointers and `"none"` of all others |
    | `tile.element` (argument) | the i32 or i64, specialised by divisibility or as a stride, counts elements of this type: a multiple is whole 16 bytes of them |

    Without encodings a kernel is at stage *tile*; with a layout on every tile it is at stage *tile_gpu*, and the same
    operations serve there.
  }];
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let extraClassDeclaration = [{
    void registerTypes();
    void registerOps();
  }];
}

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

#endif // KILN_TILE_DIALECT
