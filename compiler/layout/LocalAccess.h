//===- LocalAccess.h - Reading and writing a buffer of a given layout ------===//
//
// Operands of a dot that lie in a TMA tile, accumulators staged for a TMA store: the shared layout is fixed, and the
// question is which instruction fits it.  Same forms, legality and conflict formula as conversions (AccessForms.h).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_LOCALACCESS_H
#define KILN_LAYOUT_LOCALACCESS_H

#include "compiler/layout/ConversionPlan.h"
#include "compiler/layout/LinearLayout.h"
#include "compiler/target/Target.h"

namespace kiln::layout {

struct LocalAccessPlan {
  bool store = false;
  std::string target;
  unsigned elementBits = 0, storageBytes = 0;
  Access access;
  std::vector<Mask> registerCopy; ///< loads: columns: register bit -> register that is loaded (copies are read once)
  double cost = 0;                ///< of one warp
  std::uint64_t wavefronts = 0;   ///< whole block
  std::uint64_t conflicts = 0;    ///< of them, caused by bank conflicts
  std::vector<Rejected> rejected; ///< other forms: their cost, or that the layouts do not allow them
};

/// The cheapest legal access of all elements.  Stores are done by owners only.  `shared` has offset bases, of one
/// block's buffer; `distributed` has the same shape.  Diagnostics L04, L07, L12 (shapes, width), L13 (blocks hold
/// different parts: ask with the layout of one block), L17.
Result<LocalAccessPlan> planLocalAccess(const LinearLayout &distributed, const LinearLayout &shared,
                                        unsigned elementBits, const Target &target, bool store);

} // namespace kiln::layout

#endif // KILN_LAYOUT_LOCALACCESS_H
