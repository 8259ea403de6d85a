#include "kernels/attention/AttentionBackwardReference.h"

#include "kernels/attention/AttentionOnHost.h"
#include "kernels/support/Sampling.h"

#include <cmath>

namespace kiln::kernels {
namespace {

class PairByPair : AttentionOnHost {
public:
  PairByPair(const HostTensors &inputs, const OptionValues &options, std::optional<DType> working)
      : AttentionOnHost(inputs, options, working ? dtypeFloatFormat(*working) : nullptr) {}

  Result<HostTensors> operator()() {
    KILN_TRY(place());
    KILN_ASSIGN(const AttentionLayout *const layout, layoutOfCall(tensorsOfTypes(types), options));
    KILN_ASSIGN(oView,
                attentionOutputView(*layout, tensorsOfTypes(types).at("o"), {arguments.q, arguments.k, arguments.v}));
    oData = input("o"), doData = input("do"), lse = input("lse");
    dlse = inputs.count("dlse") ? input("dlse") : nullptr;
    double work = 0; // of dq; dk and dv take as much
    for (const AttentionSequence &s : sequences)
      work += static_cast<double>(s.queries * s.keys) * static_cast<double>(heads * (2 * dim + dimV));
    HostTensors out;
    rowGradients();
    const auto compute = [&](std::initializer_list<const char *> names, std::int64_t count, auto one) {
      const auto all = static_cast<std::uint64_t>(count);
      const double affordable = affordableWork(options) / 2;
      const bool whole = work <= affordable;
      const std::vector<std::uint64_t> chosen =
          whole ? std::vector<std::uint64_t>{}
                : sampleOf(all, static_cast<std::uint64_t>(static_cast<double>(count) * affordable / work));
      for (const char *name : names) {
        out[name].shape = inputs.find(name + 1)->second.shape; // dq is as q
        if (whole)
          out[name].values.assign(types.at(name + 1).elements(), 0.0);
      }
      std::vector<HostTensor *> outputs;
      for (const char *name : names)
        outputs.push_back(&out[name]);
      forEach(all, chosen, outputs, [&](std::int64_t i, Outputs to) { one(i, to, whole); });
    };
    compute({"dq"}, rowsQ * batchOfQ * heads, [&](std::int64_t i, Outputs to, bool whole) { row(i, *to[0], whole); });
    compute({"dk", "dv"}, rowsK * batchOfK * keyHeads,
            [&](std::int64_t i, Outputs to, bool whole) { key(i, *to[0], *to[1], whole); });
    if (isSet(options, "dsink"))
      out["dsink"] = {{static_cast<std::uint64_t>(heads)}, sinks()};
    if (isSet(options, "dbias"))
      compute({"dbias"}, static_cast<std::int64_t>(types.at("bias").elements()),
              [&](std::int64_t i, Outputs to, bool whole) { bias(i, *to[0], whole); });
    return out;
  }

private:
  /// A row and a head of a sequence, and where it stands among the keys.
  struct Row {
    const AttentionSequence *s;
    std::int64_t r, head, p;
    const double *query, *gradient; ///< of q and do
    double lse, shared;             ///< dlse - delta
  };
  Row rowAt(const AttentionSequence &s, std::int64_t r, std::int64_t head) const {
    const std::int64_t at = atNumber(s.batchQ, r, head);
    return {&s,
            r,
            head,
            r - s.startQ + shiftOf(s, arguments),
            qData + atRow(arguments.q, s.batchQ, r, head),
            doData + atRow(oView, s.batchQ, r, head),
            lse[at],
            shared[static_cast<std::size_t>(at)]};
  }

  /// dlse - delta of every row that counts.
  void rowGradients() {
    shared.assign(static_cast<std::size_t>(rowsQ * batchOfQ * heads), 0);
    for (const AttentionSequence &s : sequences)
      for (std::int64_t r = s.startQ; r < s.startQ + s.queries; ++r)
        for (std::int64_t head = 0; head < heads; ++head) {
          const std::int64_t at = atNumber(s.batchQ, r, head), first = atRow(oView, s.batchQ, r, head);
          shared[static_cast<std::size_t>(at)] =
              (dlse && lse[at] != -INFINITY ? dlse[at] : 0) - dot(doData + first, oData + first, dimV);
        }
  }

  /// Of a row and a key of its sequence, `j` counted from its first; `weight`: p after dropout.
  struct Pair {
    double weight = 0, dz = 0, dx = 0;
  };
  Pair pairOf(const Row &row, std::int64_t j) const {
    const AttentionSequence &s = *row.s;
    if (!sees(s, row.head, row.p, j) || row.lse == -INFINITY)
      return {};
    const std::int64_t keyHead = row.head / group;
    const std::int64_t k = atKey(arguments.k, s.batchK, s.startK + j, keyHead),
                       v = atKey(arguments.v, s.batchK, s.startK + j, keyHead);
    const Logit logit = logitOf(rounded(dot(row.query, scaledK.data() + k, dim)), s, row.head, row.p, j);
    const double p = rounded(std::exp(logit.z - row.lse));
    const double kept = keptShare(s, row.head, row.p, j);
    const double dp = kept == 0 ? 0 : kept * rounded(dot(row.gradient, vData + v, dimV));
    const double dz = rounded(p * (dp + row.shared));
    return {kept * p, dz, rounded(dz * logit.slope)};
  }

  /// `index` counts heads first, then rows of q, then the batch.
  void row(std::int64_t index, HostTensor &dq, bool whole) {
    const std::int64_t head = index % heads, at = index / heads, r = at % rowsQ;
    std::vector<double> sums(static_cast<std::size_t>(dim));
    if (const std::int64_t n = sequenceOfRow[static_cast<std::size_t>(at)]; n >= 0) {
      const AttentionSequence &s = sequences[static_cast<std::size_t>(n)];
      const Row row = rowAt(s, r, head);
      for (std::int64_t j = 0; j < s.keys; ++j)
        add(sums, pairOf(row, j).dx, kData + atKey(arguments.k, s.batchK, s.startK + j, head / group));
    }
    for (double &x : sums)
      x = rounded(x * scale);
    put(dq, atRow(arguments.q, at / rowsQ, r, head), sums, whole);
  }

  /// `index` counts key heads first, then rows of k, then the batch.
  void key(std::int64_t index, HostTensor &dk, HostTensor &dv, bool whole) {
    const std::int64_t keyHead = index % keyHeads, at = index / keyHeads, j = at % rowsK;
    std::vector<double> ofK(static_cast<std::size_t>(dim)), ofV(static_cast<std::size_t>(dimV));
    if (const std::int64_t n = sequenceOfKey[static_cast<std::size_t>(at)]; n >= 0) {
      const AttentionSequence &s = sequences[static_cast<std::size_t>(n)];
      for (std::int64_t head = keyHead * group; head < (keyHead + 1) * group; ++head)
        for (std::int64_t r = s.startQ; r < s.startQ + s.queries; ++r) {
          const Row row = rowAt(s, r, head);
          const Pair pair = pairOf(row, j - s.startK);
          add(ofK, pair.dx, row.query);
          add(ofV, pair.weight, row.gradient);
        }
    }
    for (double &x : ofK)
      x = rounded(x * scale);
    for (double &x : ofV)
      x = rounded(x);
    put(dk, atKey(arguments.k, at / rowsK, j, keyHead), ofK, whole);
    put(dv, atKey(arguments.v, at / rowsK, j, keyHead), ofV, whole);
  }

  /// What is hidden is left out: 0 times what it holds may be no number.
  static void add(std::vector<double> &to, double factor, const double *values) {
    for (std::size_t c = 0; factor != 0 && c < to.size(); ++c)
      to[c] += factor * values[c];
  }

  /// `index` counts elements of dbias.
  void bias(std::int64_t index, HostTensor &dbias, bool whole) {
    const Tensor &of = *arguments.bias;
    std::array<std::int64_t, 4> at;
    for (std::int64_t d = 3, rest = index; d >= 0; rest /= of.shape[static_cast<std::size_t>(d--)])
      at[static_cast<std::size_t>(d)] = rest % of.shape[static_cast<std::size_t>(d)];
    // One, or of what the bias is the same for, all.
    const auto each = [&](unsigned d, std::int64_t count, auto one) {
      const bool isShared = of.shape[d] == 1;
      for (std::int64_t i = isShared ? 0 : at[d], end = isShared ? count : std::min(count, at[d] + 1); i < end; ++i)
        one(i);
    };
    double sum = 0;
    each(0, std::ssize(sequences), [&](std::int64_t b) {
      const AttentionSequence &s = sequences[static_cast<std::size_t>(b)];
      each(1, heads, [&](std::int64_t head) {
        each(2, s.queries, [&](std::int64_t i) {
          const Row row = rowAt(s, s.startQ + i, head);
          each(3, s.keys, [&](std::int64_t j) { sum += pairOf(row, j).dz; });
        });
      });
    });
    if (const FloatFormat *const own = dtypeFloatFormat(inputs.find("bias")->second.dtype); own && format)
      sum = rounded(sum, *own);
    put(dbias, index, {&sum, 1}, whole);
  }

  std::vector<double> sinks() const {
    const double *const sink = input("sink");
    std::vector<double> out(static_cast<std::size_t>(heads));
    for (const AttentionSequence &s : sequences)
      for (std::int64_t r = s.startQ; r < s.startQ + s.queries; ++r)
        for (std::int64_t head = 0; head < heads; ++head)
          if (const Row row = rowAt(s, r, head); row.lse != -INFINITY)
            out[static_cast<std::size_t>(head)] += std::exp(sink[head] - row.lse) * row.shared;
    return out;
  }

  Tensor oView;
  const double *oData = nullptr, *doData = nullptr, *lse = nullptr, *dlse = nullptr;
  std::vector<double> shared; ///< dlse - delta, as lse
};

} // namespace

Result<HostTensors> attentionBackwardReference(const HostTensors &inputs, const OptionValues &options,
                                               std::optional<DType> working) {
  return PairByPair(inputs, options, working)();
}

} // namespace kiln::kernels
