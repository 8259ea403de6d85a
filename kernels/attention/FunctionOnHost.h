//===- FunctionOnHost.h - Functions of scores and masks in float64 ----------------===//
//
// What texts (FunctionText.h) give for pairs, on the host: for references, for lists of blocks, for counts of pairs.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_FUNCTIONONHOST_H
#define KILN_KERNELS_ATTENTION_FUNCTIONONHOST_H

#include "kernels/attention/FunctionNumbers.h"
#include "kernels/attention/FunctionText.h"

#include <span>

namespace kiln::kernels {

/// An aux tensor, in C order.
struct AuxOnHost {
  std::span<const std::uint64_t> shape;
  std::span<const double> values;
};

/// Pairs of one sequence and one query head: as many as there are lanes, up to host::mostLanes.
struct PairsOnHost {
  std::int32_t batch = 0, head = 0;
  host::Wholes queries, keys;
  std::span<const AuxOnHost> aux; ///< in the order of the text's
};

class FunctionsOnHost {
public:
  /// None.
  FunctionsOnHost() = default;
  /// As parseAttentionFunctions.
  static Result<FunctionsOnHost> parse(const AttentionFunctionsText &text);

  bool hasScore() const { return scoreOf != nullptr; }
  bool hasMask() const { return maskOf != nullptr; }
  /// Whether the mask differs from sequence to sequence, from head to head.
  bool isMaskOfBatch() const { return maskNames.find('b') != std::string::npos; }
  bool isMaskOfHead() const { return maskNames.find('h') != std::string::npos; }

  /// Of scaled scores, with the derivative.
  host::Numbers score(const host::Numbers &x, const PairsOnHost &pairs) const { return scoreOf(x, pairs); }
  host::Masks mask(const PairsOnHost &pairs) const { return maskOf(pairs); }

private:
  std::function<host::Numbers(const host::Numbers &, const PairsOnHost &)> scoreOf;
  std::function<host::Masks(const PairsOnHost &)> maskOf;
  std::string maskNames; ///< of b, h, i, j those that the mask names
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_FUNCTIONONHOST_H
