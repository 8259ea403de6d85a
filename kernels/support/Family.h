//===- Family.h - A kernel family as commands and tests see it ---------------===//
//
// Every family (softmax, transpose, ..) is one folder: the recorded kernels, an Operation with a typed arguments struct
// for C++ callers, and one Family that names it all for `kiln run`, `kiln demo`, `kiln compile`, `kiln bench` and the
// tests.  kernels/Families.def lists the families: that is the one place.
//
// A Family is three things: what is called (Callable.h), its reference (Reference.h), its samples (Samples.h).  The
// last two may be missing: such a kernel can be run, compiled and explained; commands that need more say so.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_FAMILY_H
#define KILN_KERNELS_SUPPORT_FAMILY_H

#include "kernels/support/Callable.h"
#include "kernels/support/Reference.h"
#include "kernels/support/Samples.h"

namespace kiln::kernels {

struct Family {
  std::unique_ptr<const Callable> callable;
  std::unique_ptr<const Reference> reference = {};
  std::unique_ptr<const Samples> samples = {};

  std::string_view name() const { return callable->name(); }
};

/// The part, or a failure that says that the family has none and what can be done without.
Result<const Reference *> referenceOf(const Family &family);
Result<const Samples *> samplesOf(const Family &family);

/// What a command needs of a family besides what is called.
struct Needs {
  bool reference = false, samples = false;
};

/// All families, in the order of Families.def.
const std::vector<Family> &families();
/// The failure lists the families and the nearest name.
Result<const Family *> findFamily(std::string_view name);
/// The named ones, in that order, or a failure if one of them lacks what is needed; for no name all that have it.
Result<std::vector<const Family *>> selectFamilies(const std::vector<std::string> &names, Needs needs = {});

/// Those of `wanted` that the family has; of none, a failure that lists them.
Result<std::vector<DType>> chooseTypes(const Callable &callable, const std::vector<DType> &wanted);

struct KernelTypes {
  const Family *family;
  std::vector<DType> types;
};
/// Each named kernel with those of the types that it has; a failure if it has none.  Without names: every kernel that
/// has some.
Result<std::vector<KernelTypes>> selectKernels(const std::vector<std::string> &names,
                                               const std::vector<std::string> &dtypes, Needs needs = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_FAMILY_H
