//===- FunctionText.h - Scores and masks as text ----------------------------------===//
//
//   KILN_ASSIGN(const AttentionFunctions functions,
//               parseAttentionFunctions({.score = "30 * tanh((x + bias[h, i - j]) / 30)",
//                                        .mask = "j <= i & docs[b, i] == docs[b, j]",
//                                        .aux = {{"bias", DType::BF16, 2}, {"docs", DType::I32, 2}}}));
//
// Expressions over the scaled score x (of a score alone), the sequence b, the query head h, the query i and the key j,
// numbers, and elements name[index, ..] of aux tensors, in their order among the call's.
//
//   |  &  < <= > >= == !=  + -  * / // %  - !  ( )  name[..]  f(..)    from the loosest on
//   where(mask, a, b) min max pow abs exp exp2 log log2 sqrt tanh floor
//
// Whole numbers are i32: b, h, i, j, 3, elements of integers (of 64 bits the low 32).  They become fp32 where they meet
// one; `/` gives fp32, `//` and `%` are those of whole numbers, towards zero.  A score is a number and is
// differentiated for the backward direction; a mask is what comparisons give.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_FUNCTIONTEXT_H
#define KILN_KERNELS_ATTENTION_FUNCTIONTEXT_H

#include "kernels/attention/AttentionFunctions.h"
#include "support/Status.h"

namespace kiln::kernels {

struct AttentionFunctionsText {
  /// A tensor of AttentionArguments::aux.
  struct Aux {
    std::string name;
    DType element = DType::F32;
    int rank = 1;
    bool operator==(const Aux &) const = default;
  };
  std::string score = {}, mask = {}; ///< empty: none
  std::vector<Aux> aux = {};
  bool operator==(const AttentionFunctionsText &) const = default;
};

/// A failure says where in which text, and what was expected.
Result<AttentionFunctions> parseAttentionFunctions(const AttentionFunctionsText &text);

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_FUNCTIONTEXT_H
