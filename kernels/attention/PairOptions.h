//===- PairOptions.h - Options of attention whose arguments not every kernel has ---===//
//
// A kernel's last parameter is one of
//
//   NoPairOptions       no argument: kernels without these options are as if there were none
//   PairOptions<B>      bias: a tensor of B, [batch, head, row, key], or with the last two exchanged; numbers of
//   dropout
//                       (Dropout.h).  A kernel that has one of the two does not touch the other's
//
// They give a program what it adds to the logits of its pairs, and which of them it keeps.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_PAIROPTIONS_H
#define KILN_KERNELS_ATTENTION_PAIROPTIONS_H

#include "kernels/attention/BiasType.h"
#include "kernels/attention/PairBias.h"
#include "kernels/attention/PairDropout.h"

namespace kiln::kernels {

class NoPairOptions {
public:
  static constexpr unsigned argumentCount = 0;
  template <typename Recording> NoPairOptions(const Recording &, unsigned) {}
  static void describe(std::vector<language::KernelArgument> &) {}

  PairBias bias(BiasType, const PairBias::Block &, const PairBias::Number &, const PairBias::Number &,
                const PairBias::Number &) const {
    return {};
  }
  PairDropout dropout(bool, const PairBias::Number &, const PairBias::Number &) const { return {}; }
  std::optional<PairDropout::Factor> dropoutFactor(bool) const { return {}; }
};

template <language::Element B> class PairOptions {
  using Bias = language::TensorArg<B, 4, "bias", language::maybe>;
  using Key0 = language::Arg<language::u32, "dropout_key0">;
  using Key1 = language::Arg<language::u32, "dropout_key1">;
  using Base = language::Arg<language::u32, "dropout_base">;
  using Below = language::Arg<language::u32, "dropout_below">;
  using Factor = language::Arg<language::f32, "dropout_factor">;

public:
  static constexpr unsigned argumentCount = Bias::argumentCount + 5;
  template <typename Recording>
  PairOptions(const Recording &recording, unsigned first)
      : tensor(recording, first), numbers(numbersOf(recording, first + Bias::argumentCount)) {}
  static void describe(std::vector<language::KernelArgument> &out) {
    Bias::describe(out);
    Key0::describe(out), Key1::describe(out), Base::describe(out), Below::describe(out), Factor::describe(out);
  }

  /// For a program whose own rows (or keys) begin at `own0`.
  PairBias bias(BiasType type, const PairBias::Block &block, const PairBias::Number &batch,
                const PairBias::Number &head, const PairBias::Number &own0) const {
    return type == BiasType::None ? PairBias() : PairBias(tensor, block, batch, head, own0);
  }

  /// Of a sequence and a query head.
  PairDropout dropout(bool isThere, const PairBias::Number &sequence, const PairBias::Number &head) const {
    return isThere ? PairDropout(numbers, sequence, head) : PairDropout();
  }
  /// What kept probabilities are multiplied by.
  std::optional<PairDropout::Factor> dropoutFactor(bool isThere) const {
    return isThere ? std::optional(numbers.factor) : std::nullopt;
  }

private:
  template <typename Recording> static PairDropout::Arguments numbersOf(const Recording &recording, unsigned first) {
    return {Key0(recording, first), Key1(recording, first + 1), Base(recording, first + 2), Below(recording, first + 3),
            Factor(recording, first + 4)};
  }

  Bias tensor;
  PairDropout::Arguments numbers;
};

/// Calls `make.template operator()<Options>()` for the options that a configuration has.
template <typename Config, typename F> language::Kernel withPairOptions(const Config &c, F &&make) {
  switch (c.bias) {
  case BiasType::None:
    if (!c.dropout)
      break;
    [[fallthrough]];
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
