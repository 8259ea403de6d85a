//===- AttentionMatrix.h - The specification's matrix, as problems -------------------===//
//
// Section 10: every combination of type, head dims, grouping of heads, mask, dense or packed, with the other options
// pairwise over them; every length of its list under every mask, dense and packed; every number of heads and groups;
// batches of random lengths.  Each list is the same in every run; tests of both directions take them, or samples.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_ATTENTIONMATRIX_H
#define KILN_TESTS_KERNELS_ATTENTIONMATRIX_H

#include "tests/kernels/AttentionProblem.h"

namespace kiln::test {

struct MatrixCase {
  Problem of;
  bool withLse = false; ///< backward: a gradient of lse
};

/// Every combination of the core: 324, of lengths of the list up to `longest`.  `leastRows`: of q, with a cap or
/// dropout.  Backward, these leave of a row or two what rounding leaves (with a cap times a large q): few numbers, and
/// their sizes are a matter of luck, also in the reference by which the tolerance is measured.
std::vector<MatrixCase> casesOfCore(std::int64_t longest, std::int64_t leastRows = 1);
/// Every length of the list up to `longest`, the longest first: each with six cases in a row.
std::vector<MatrixCase> casesOfLengths(std::int64_t longest);
/// Long sequences of wide heads, the longest last: 18.
std::vector<MatrixCase> casesOfWideHeads();
/// Groups of g query heads for so many key heads, up to `most` heads of q.
std::vector<MatrixCase> casesOfHeads(std::int64_t most);
/// Batches of 9 with random lengths below each of `longest` (36 of each), empty sequences first, last and every fifth;
/// lengths that are used; elements between and around the rows of outputs.
std::vector<MatrixCase> casesOfBatches(const std::vector<std::int64_t> &longest);

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_ATTENTIONMATRIX_H
