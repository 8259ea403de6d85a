//===- Layouts.h - The layout library's encodings as MLIR attributes --------===//
//
// Two attributes hold every layout there is: LayoutAttr for tiles in registers (`#tile_gpu.blocked<..>`, `slice`,
// `mma`, `dot`, `transposed`, `linear`), SharedLayoutAttr for buffers (`swizzled`, `tma`, `padded`, `shared_linear`).
// Text, parser and meaning are the layout library's (compiler/layout/LayoutText.h): an encoding added there exists
// here.
//
// Invariants: equal attributes have equal canonical text; an attribute on a tensor type has been lowered once without a
// diagnostic (verifyEncoding), so layoutOf() succeeds on every verified tile.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_LAYOUTS_H
#define KILN_TILE_GPU_LAYOUTS_H

#include "compiler/layout/Planner.h"
#include "compiler/layout/TileLayout.h"
#include "compiler/target/Target.h"

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TensorEncoding.h"

namespace mlir {
class Operation;
}

namespace kiln::tile_gpu {

namespace detail {
struct LayoutStorage;
struct SharedLayoutStorage;
} // namespace detail

class LayoutAttr : public mlir::Attribute::AttrBase<LayoutAttr, mlir::Attribute, detail::LayoutStorage,
                                                    mlir::VerifiableTensorEncoding::Trait> {
public:
  using Base::Base;
  static constexpr llvm::StringLiteral name = "tile_gpu.layout";
  static LayoutAttr get(mlir::MLIRContext *context, const layout::Encoding &encoding);
  const layout::Encoding &encoding() const;
  /// Canonical: "blocked<sizePerThread=[4], ..>".
  llvm::StringRef text() const;
  mlir::LogicalResult verifyEncoding(llvm::ArrayRef<int64_t> shape, mlir::Type elementType,
                                     llvm::function_ref<mlir::InFlightDiagnostic()> emitError) const;
};

class SharedLayoutAttr
    : public mlir::Attribute::AttrBase<SharedLayoutAttr, mlir::Attribute, detail::SharedLayoutStorage> {
public:
  using Base::Base;
  static constexpr llvm::StringLiteral name = "tile_gpu.shared_layout";
  static SharedLayoutAttr get(mlir::MLIRContext *context, const layout::SharedEncoding &encoding);
  const layout::SharedEncoding &encoding() const;
  llvm::StringRef text() const;
};

/// The layout of a tile; null if it has none.
LayoutAttr layoutAttrOf(mlir::Type tile);
/// The same type with another layout.
mlir::RankedTensorType withLayout(mlir::Type tile, LayoutAttr layout);
/// What the layout maps.  Fails where the tile has no layout or one that does not lower.
Result<layout::TileLayout> layoutOf(mlir::Type tile);
/// Bits of an element as plans count them: i1 is 8, pointers 64.
unsigned planBits(mlir::Type tile);
/// How a conversion to this layout is asked for: operands of matrix instructions want their registers side by side.
layout::PlanOptions planOptions(LayoutAttr destination, uint64_t scratchBytes = layout::defaultScratchBytes);
/// Both types have layouts that map the same elements to the same places.
bool sameLayout(mlir::Type a, mlir::Type b);
/// What a warp's lanes hold as registers of one lane, of which the others have copies: for what a lane does for its
/// warp.
layout::LinearLayout ofWarps(const layout::LinearLayout &core);

/// The code target of the module that holds `op` (its attribute tile_gpu.target), or a failure that says what is
/// missing.
Result<const Target *> targetOf(mlir::Operation *op);

/// Reports a Status as an error at `op`: message, and the remedy as a note.
mlir::LogicalResult report(mlir::Operation *op, const Status &status);

} // namespace kiln::tile_gpu

MLIR_DECLARE_EXPLICIT_TYPE_ID(kiln::tile_gpu::LayoutAttr)
MLIR_DECLARE_EXPLICIT_TYPE_ID(kiln::tile_gpu::SharedLayoutAttr)

#endif // KILN_TILE_GPU_LAYOUTS_H
