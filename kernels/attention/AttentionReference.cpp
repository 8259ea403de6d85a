#include "kernels/attention/AttentionReference.h"

#include "kernels/attention/AttentionOnHost.h"
#include "kernels/attention/EighthOnHost.h"
#include "kernels/support/Sampling.h"

#include <cmath>

namespace kiln::kernels {
namespace {

class RowByRow : AttentionOnHost {
public:
  RowByRow(const HostTensors &inputs, const OptionValues &options, std::optional<DType> working)
      : AttentionOnHost(inputs, options, working && working != DType::F8E4M3 ? dtypeFloatFormat(*working) : nullptr),
        isEighth(working == DType::F8E4M3) {}

  Result<HostTensors> operator()() {
    KILN_TRY(place());
    KILN_TRY(placeOutputs());
    double work = 0;
    const double affordable = affordableWork(options);
    for (const AttentionSequence &s : sequences)
      work += static_cast<double>(s.queries * s.keys) * static_cast<double>(heads * (dim + dimV));
    const auto rows = static_cast<std::uint64_t>(rowsQ * batchOfQ * heads);
    const std::vector<std::uint64_t> chosen =
        work <= affordable ? std::vector<std::uint64_t>{}
                           : sampleOf(rows, static_cast<std::uint64_t>(static_cast<double>(rows) * affordable / work));
    const bool whole = chosen.empty();
    const bool withLse = isSet(options, "lse");
    HostTensors out;
    HostTensor &o = out["o"], none, &lse = withLse ? out["lse"] : none;
    o.shape = types.at("o").shape;
    if (withLse)
      lse.shape = types.at("lse").shape;
    if (whole) {
      o.values.assign(types.at("o").elements(), 0.0);
      if (withLse)
        lse.values.assign(types.at("lse").elements(), -INFINITY), lse.besides.assign(lse.values.size(), 0.0);
    }
    std::vector<HostTensor *> outputs = {&o};
    if (withLse)
      outputs.push_back(&lse);
    forEach(rows, chosen, outputs,
            [&](std::int64_t i, Outputs to) { row(i, *to[0], withLse ? to[1] : nullptr, whole); });
    return out;
  }

private:
  double roundedOutput(double v) const { return isEighth ? rounded(v, *dtypeFloatFormat(DType::BF16)) : rounded(v); }
  /// A power of a row, the largest being 1, as a share of their sum.
  double shareOf(double power, double total) const {
    return isEighth ? powerOfEighth(power) / total : rounded(power / total);
  }

  Status placeOutputs() {
    KILN_ASSIGN(const TensorTypes outputs, attentionOutputs(types, options));
    for (const auto &[name, type] : outputs)
      types[name] = {DType::U8, type.shape};
    KILN_ASSIGN(const AttentionLayout *const layout, layoutOfCall(tensorsOfTypes(types), options));
    KILN_ASSIGN(oView,
                attentionOutputView(*layout, tensorsOfTypes(types).at("o"), {arguments.q, arguments.k, arguments.v}));
    return {};
  }

  /// The logarithm of a row's sum, and what a score function's approximate code may lose of it.
  struct Sum {
    double log = -INFINITY, loss = 0;
  };

  /// `index` counts heads first, then rows of q, then the batch.
  void row(std::int64_t index, HostTensor &o, HostTensor *lse, bool whole) const {
    const std::int64_t head = index % heads, rowAt = index / heads, batch = rowAt / rowsQ, r = rowAt % rowsQ;
    std::vector<double> values(static_cast<std::size_t>(dimV));
    Sum sum;
    if (const std::int64_t s = sequenceOfRow[static_cast<std::size_t>(rowAt)]; s >= 0)
      sum = compute(sequences[static_cast<std::size_t>(s)], batch, r, head, values);
    put(o, atRow(oView, batch, r, head), values, whole);
    if (lse) {
      put(*lse, atNumber(batch, r, head), {&sum.log, 1}, whole);
      if (whole)
        lse->besides[static_cast<std::size_t>(atNumber(batch, r, head))] = sum.loss;
      else
        lse->besides.push_back(sum.loss);
    }
  }

  /// One row of o.
  Sum compute(const AttentionSequence &s, std::int64_t batch, std::int64_t r, std::int64_t head,
              std::vector<double> &values) const {
    const std::int64_t keyHead = head / group, i = r - s.startQ, p = i + shiftOf(s, arguments);
    const double *const query = qData + atRow(arguments.q, batch, r, head);
    const auto keyAt = [&](const Tensor &t, std::int64_t j) { return atKey(t, s.batchK, s.startK + j, keyHead); };
    double descaleQK = descale("q_descale", s, keyHead) * descale("k_descale", s, keyHead);
    if (descaleQK < 0) // AttentionOperation.h
      descaleQK = NAN;
    std::vector<double> z(static_cast<std::size_t>(s.keys), -INFINITY);
    double most = -INFINITY, mostOfProducts = 0, loss = 0;
    // A NaN stays: nothing is larger than it.
    const auto meet = [&](double x) { most = std::isnan(x) || x > most ? x : most; };
    for (std::int64_t j = 0; j < s.keys; ++j) {
      if (!sees(s, head, p, j))
        continue;
      const double x = rounded(descaleQK * dot(query, scaledK.data() + keyAt(arguments.k, j), dim));
      if (isEighth) {
        const double *const key = scaledK.data() + keyAt(arguments.k, j);
        mostOfProducts = std::max(mostOfProducts, std::abs(descaleQK) * lossOfEighth(query, key, dim));
      }
      const Logit logit = logitOf(x, s, head, p, j);
      meet(z[static_cast<std::size_t>(j)] = logit.z);
      loss = std::max(loss, logit.error);
    }
    const double *const sink =
        arguments.sink ? &inputs.find("sink")->second.values[static_cast<std::size_t>(head)] : nullptr;
    if (sink)
      meet(*sink);
    const double base = most == -INFINITY ? 0 : most;
    double total = sink ? std::exp(*sink - base) : 0;
    for (double &e : z)
      total += e = std::exp(e - base);
    for (std::int64_t j = 0; j < s.keys && total != 0; ++j) {
      if (z[static_cast<std::size_t>(j)] == 0)
        continue;
      const double share = shareOf(z[static_cast<std::size_t>(j)], total) * keptShare(s, head, p, j);
      if (share == 0)
        continue;
      const double *const value = vData + keyAt(arguments.v, j);
      for (std::int64_t c = 0; c < dimV; ++c)
        values[static_cast<std::size_t>(c)] += share * value[c];
    }
    for (double &v : values)
      v = roundedOutput(v * descale("v_descale", s, keyHead));
    return {total == 0 ? -INFINITY : base + std::log(total) + 0x1p-13 * mostOfProducts, loss};
  }

  /// Of a sequence's key head; 1 where there is no such table.
  double descale(std::string_view name, const AttentionSequence &s, std::int64_t keyHead) const {
    const auto found = inputs.find(name);
    if (found == inputs.end())
      return 1;
    const std::int64_t sequence = &s - sequences.data();
    return found->second.values[static_cast<std::size_t>(sequence * (heads / group) + keyHead)];
  }

  bool isEighth; ///< what e4m3 brings is asked for
  Tensor oView;
};

} // namespace

Result<HostTensors> attentionReference(const HostTensors &inputs, const OptionValues &options,
                                       std::optional<DType> working) {
  return RowByRow(inputs, options, working)();
}

} // namespace kiln::kernels
