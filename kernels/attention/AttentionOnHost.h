//===- AttentionOnHost.h - A call of attention in host memory, as float64 -------===//
//
// What the references of both directions share: where rows lie, which keys a row sees, and logits by their definition
// (specification "Attention kernels", sections 2 and 3).  With a format every step is rounded to it: what a computation
// in that type costs by itself.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONONHOST_H
#define KILN_KERNELS_ATTENTION_ATTENTIONONHOST_H

#include "kernels/attention/CallFunctions.h"
#include "kernels/attention/Dropout.h"
#include "kernels/support/HostTensor.h"

#include <functional>
#include <span>

namespace kiln::kernels {

class AttentionOnHost {
public:
  /// `format`: of every step; none: they are not rounded.  Both must outlive it.
  AttentionOnHost(const HostTensors &inputs, const OptionValues &options, const FloatFormat *format)
      : inputs(inputs), options(options), format(format) {}

  /// Where everything lies; addresses count elements.  To be called first.
  Status place();

  /// Where a row of q, or of what lies as it, begins; heads may be split.
  std::int64_t atRow(const Tensor &t, std::int64_t batch, std::int64_t row, std::int64_t head) const {
    const bool packed = arguments.cuQ.has_value();
    const unsigned first = packed ? 1 : 2;
    const bool split = t.rank == first + 3;
    return at(t, packed, batch, row) +
           (split ? head / group * t.strides[first] + head % group * t.strides[first + 1] : head * t.strides[first]);
  }
  /// The same of a row of k or v, counted from the first of all.
  std::int64_t atKey(const Tensor &t, std::int64_t batch, std::int64_t row, std::int64_t keyHead) const {
    const bool packed = arguments.cuK.has_value();
    return at(t, packed, batch, row) + keyHead * t.strides[packed ? 1 : 2];
  }
  /// Of a row in lse, or in what is as it.
  std::int64_t atNumber(std::int64_t batch, std::int64_t row, std::int64_t head) const {
    return arguments.cuQ ? head * rowsQ + row : (batch * heads + head) * rowsQ + row;
  }

  /// Key j of those that a row of a head at position p among them sees, if it exists.
  bool sees(const AttentionSequence &s, std::int64_t head, std::int64_t p, std::int64_t j) const {
    const std::int64_t right = arguments.causal ? 0 : arguments.windowRight;
    return (right < 0 || j <= p + right) && (arguments.windowLeft < 0 || j >= p - arguments.windowLeft) &&
           (!own.functions.hasMask() || own.functions.mask(pairOf(s, head, p, j)).at(0));
  }

  struct Logit {
    double z;
    double slope = 1; ///< of z by the scaled score
    double error = 0; ///< what a score function's approximate code may lose
  };
  /// Of a rounded product times the scale.
  Logit logitOf(double x, const AttentionSequence &s, std::int64_t head, std::int64_t p, std::int64_t j) const;

  static double rounded(double v, const FloatFormat &to) { return decodeFloat(encodeFloat(v, to), to); }
  double rounded(double v) const { return format ? rounded(v, *format) : v; }
  static double dot(const double *a, const double *b, std::int64_t n);

  /// What dropout multiplies the probability of a row at position p and key j by.
  double keptShare(const AttentionSequence &s, std::int64_t head, std::int64_t p, std::int64_t j) const;
  /// Where the bias, or what is as it, has an element for row i and key j of a sequence, whichever it is the same for.
  std::size_t atBias(const AttentionSequence &s, std::int64_t head, std::int64_t i, std::int64_t j) const;

  /// Calls one(i, where) for each of `chosen`, or if nothing is for each i below n, on several threads unless functions
  /// of the call are asked; what they put there (below) is in `outputs` then, as if one after the other.
  using Outputs = std::span<HostTensor *const>;
  void forEach(std::uint64_t n, const std::vector<std::uint64_t> &chosen, Outputs outputs,
               const std::function<void(std::int64_t, Outputs)> &one) const;

  /// `values` from element `first` on, into all of a tensor (`whole`), or appended to the sample that it is.
  static void put(HostTensor &to, std::int64_t first, std::span<const double> values, bool whole);

  const double *input(std::string_view name) const { return inputs.find(name)->second.values.data(); }

  const HostTensors &inputs;
  const OptionValues &options;
  const FloatFormat *format;
  TensorTypes types; ///< of the inputs; an element is a byte
  AttentionArguments arguments;
  std::optional<Dropout> dropout; ///< of the arguments
  CallOnHost own;                 ///< functions of the call
  std::vector<AttentionSequence> sequences;
  /// Which sequence each row of q, and each row of k, belongs to; none: -1.
  std::vector<std::int64_t> sequenceOfRow, sequenceOfKey;
  const double *qData = nullptr, *kData = nullptr, *vData = nullptr;
  std::vector<double> scaledK; ///< k times the scale, rounded
  std::int64_t rowsQ = 0, rowsK = 0, batchOfQ = 0, batchOfK = 0, group = 1, heads = 0, keyHeads = 0, dim = 0, dimV = 0;
  double scale = 0;

private:
  PairsOnHost pairOf(const AttentionSequence &s, std::int64_t head, std::int64_t p, std::int64_t j) const {
    const auto i32 = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
    return {i32(&s - sequences.data()), i32(head), host::Wholes(i32(p - shiftOf(s, arguments))), host::Wholes(i32(j)),
            own.aux};
  }
  static std::int64_t at(const Tensor &t, bool packed, std::int64_t batch, std::int64_t row) {
    return static_cast<std::int64_t>(t.address) + (packed ? 0 : batch * t.strides[0]) + row * t.strides[packed ? 0 : 1];
  }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONONHOST_H
