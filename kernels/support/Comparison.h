//===- Comparison.h - A call's outputs against what they should be -----------===//
//
// Element by element with the reference's values and tolerances; of a sample of the elements where the reference is
// one. Large outputs are compared by several threads; what comes out does not depend on how many.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_COMPARISON_H
#define KILN_KERNELS_SUPPORT_COMPARISON_H

#include "kernels/support/Family.h"

namespace kiln::kernels {

struct Comparison {
  std::string output;                    ///< the worst one
  double worstExcess = 0;                ///< largest |difference| / allowed; 0 where both are 0; at most 1 is good
  double worstDifference = 0;            ///< largest |difference|
  std::uint64_t worstIndex = 0;          ///< of the worst excess
  double got = 0, wanted = 0;            ///< there
  std::uint64_t wrong = 0, elements = 0; ///< of those that were compared
  std::uint64_t all = 0;                 ///< more than `elements` if the reference is a sample
  /// Of the output whose mean difference is the largest part of what is allowed; 0: means are not limited.
  double meanExcess = 0;
  /// Of the output whose root mean square of differences is the largest part of what is allowed; 0: not limited.
  double ratioExcess = 0;
  bool good() const { return wrong == 0 && meanExcess <= 1 && ratioExcess <= 1; }
  std::string toString() const;
};

/// A failure if the family has no reference.
Result<Comparison> compareWithReference(const Family &family, const Arrays &inputs, const OptionValues &options,
                                        const Arrays &outputs);
/// What is allowed for the elements of each output.
using Limits = std::map<std::string, std::vector<double>, std::less<>>;
/// The same with `wanted`, wherever it comes from, in the place of what the reference computes.  `known`: limits of
/// comparisons before, with the same reference and options that give the same; those that it lacks are added.
Result<Comparison> compareWith(const HostTensors &wanted, const Reference &reference, const HostTensors &inputs,
                               const OptionValues &options, const Arrays &outputs, Limits *known = nullptr);

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_COMPARISON_H
