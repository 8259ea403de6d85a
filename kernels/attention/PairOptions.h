//===- PairOptions.h - Options of attention whose arguments not every kernel has ---===//
//
// A kernel's last parameter is one of
//
//   NoPairOptions       no argument: kernels without these options are as if there were none
//   PairOptions<B>      bias: a tensor of B, [batch, head, row, key], or with the last two exchanged
//
// Its `bias` gives a program what is added to the logits of its pairs, whatever the type.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_PAIROPTIONS_H
#define KILN_KERNELS_ATTENTION_PAIROPTIONS_H

#include "kernels/attention/BiasType.h"
#include "kernels/attention/PairBias.h"

namespace kiln::kernels {

class NoPairOptions {
public:
  static constexpr unsigned argumentCount = 0;
  template <typename Recording> NoPairOptions(const Recording &, unsigned) {}
  static void describe(std::vector<language::KernelArgument> &) {}

  PairBias bias(const PairBias::Block &, const PairBias::Number &, const PairBias::Number &,
                const PairBias::Number &) const {
    return {};
  }
};

template <language::Element B> class PairOptions {
  using Bias = language::TensorArg<B, 4, "bias", language::maybe>;

public:
  static constexpr unsigned argumentCount = Bias::argumentCount;
  template <typename Recording> PairOptions(const Recording &recording, unsigned first) : tensor(recording, first) {}
  static void describe(std::vector<language::KernelArgument> &out) { Bias::describe(out); }

  /// For a program whose own rows (or keys) begin at `own0`.
  PairBias bias(const PairBias::Block &block, const PairBias::Number &batch, const PairBias::Number &head,
                const PairBias::Number &own0) const {
    return PairBias(tensor, block, batch, head, own0);
  }

private:
  Bias tensor;
};

/// Calls `make.template operator()<Options>()` for the options that a configuration has.
template <typename Config, typename F> language::Kernel withPairOptions(const Config &c, F &&make) {
  switch (c.bias) {
  case BiasType::None:
    break;
  case BiasType::F32:
    return make.template operator()<PairOptions<language::f32>>();
  case BiasType::F16:
    return make.template operator()<PairOptions<language::f16>>();
  case BiasType::BF16:
    return make.template operator()<PairOptions<language::bf16>>();
  }
  return make.template operator()<NoPairOptions>();
}

} // namespace kiln::kernels

namespace kiln::language::detail {
template <> struct IsParameter<kernels::NoPairOptions> : std::true_type {};
template <Element B> struct IsParameter<kernels::PairOptions<B>> : std::true_type {};
} // namespace kiln::language::detail

#endif // KILN_KERNELS_ATTENTION_PAIROPTIONS_H
