//===- TileGpuDialect.td - What a GPU block does ----------------------------===//
//
// Layouts, shared memory, barriers.  Operations live in one file a family.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_DIALECT
#define KILN_TILE_GPU_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "compiler/tile/MemoryInterfaces.td"
include "compiler/tile/TileTypes.td"

def TileGpu_Dialect : Dialect {
  let name = "tile_gpu";
  let cppNamespace = "::kiln::tile_gpu";
  let summary = "Tiles with layouts, shared memory and barriers";
  let description = [{
    The expert level.  Every tile carries a layout as the encoding of its tensor type, and every buffer has a place.
    Passes produce this dialect; an author may write it, alone or mixed with `tile` operations.

    Layouts are written as the layout library writes them (`compiler/layout/LayoutText.h`):

    ```mlir
    #row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
    #sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
    #mma = #tile_gpu.mma<version=2, warpsPerCTA=[4,1]>
    #sum = #tile_gpu.slice<dim=1, parent=mma<version=2, warpsPerCTA=[4,1]>>
    ```

    A kernel may have arguments that no caller passes: tensor maps (`!tile_gpu.tensor_map`), after all others, each with
    its recipe (`tile_gpu.tensor_map`), from which the launcher makes it.  Passes add none to a kernel with
    `tile_gpu.no_tensor_maps`.

    Attributes of a module at this stage: `tile_gpu.target` (string), the code target.  Of a kernel:
    `tile_gpu.no_tensor_maps` (unit), passes make none for it; once shared memory is allocated, `tile_gpu.shared_bytes`
    (i32), all of it dynamic.  Of an operation of the LLVM or NVVM dialect:
    `tile_gpu.purpose` (string), what lowering made it for, by which later passes know products and copies (Purpose.h).
  }];
  let dependentDialects = ["::kiln::tile::TileDialect"];
  let hasConstantMaterializer = 1;
  let hasRegionArgAttrVerify = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    void registerLayouts();
    void registerOps();
    void registerTensorMaps();
    /// False if the text or the attribute is no tensor map's.
    bool parseTensorMap(::mlir::DialectAsmParser &parser, ::mlir::Attribute &out) const;
    bool printTensorMap(::mlir::Attribute attribute, ::mlir::DialectAsmPrinter &printer) const;
    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser, ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attribute, ::mlir::DialectAsmPrinter &printer) const override;
  }];
}

class TileGpu_Op<string mnemonic, list<Trait> traits = []> : Op<TileGpu_Dialect, mnemonic, traits>;

/// The operation is only for targets with that capability (of compiler/target/Capabilities.def).
class TileGpu_Needs<string capability> : ParamNativeOpTrait<"Needs", "::kiln::Capability::" # capability> {
  let cppNamespace = "::kiln::tile_gpu";
}

#endif // KILN_TILE_GPU_DIALECT
