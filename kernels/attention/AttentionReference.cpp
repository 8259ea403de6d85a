#include "kernels/attention/AttentionReference.h"

#include "kernels/attention/AttentionCall.h"
#include "kernels/support/Sampling.h"

#include <cmath>

namespace kiln::kernels {
namespace {

class RowByRow {
public:
  RowByRow(const HostTensors &inputs, const OptionValues &options, std::optional<DType> working)
      : inputs(inputs), options(options), isEighth(working == DType::F8E4M3),
        format(working && !isEighth ? dtypeFloatFormat(*working) : nullptr) {}

  Result<HostTensors> operator()() {
    KILN_TRY(place());
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
    o = &out["o"];
    o->shape = types.at("o").shape;
    lse = withLse ? &out["lse"] : nullptr;
    if (lse)
      lse->shape = types.at("lse").shape;
    if (whole) {
      o->values.assign(types.at("o").elements(), 0.0);
      if (lse)
        lse->values.assign(types.at("lse").elements(), -INFINITY);
    }
    findSequences();
    for (std::uint64_t i = 0, n = whole ? rows : chosen.size(); i < n; ++i)
      row(static_cast<std::int64_t>(whole ? i : chosen[i]), whole);
    return out;
  }

private:
  static double rounded(double v, const FloatFormat &to) { return decodeFloat(encodeFloat(v, to), to); }
  double rounded(double v) const { return format ? rounded(v, *format) : v; }
  double roundedOutput(double v) const { return isEighth ? rounded(v, *dtypeFloatFormat(DType::BF16)) : rounded(v); }
  /// A power of a row, the largest being 1, as a share of their sum.
  double shareOf(double power, double total) const {
    constexpr double unit = 0x1p8;
    return isEighth ? rounded(power * unit, *dtypeFloatFormat(DType::F8E4M3)) / unit / total : rounded(power / total);
  }

  /// Where everything lies; addresses count elements, because the tensors' elements have one byte here.
  Status place() {
    for (const auto &[name, tensor] : inputs)
      types[name] = {DType::U8, tensor.shape};
    const auto outputs = attentionOutputs(types, options);
    if (!outputs.ok())
      return outputs.status();
    Tensors tensors = tensorsOfTypes(types);
    KILN_ASSIGN(arguments, argumentsOfCall(tensors, options));
    KILN_ASSIGN(const AttentionLayout layout, layoutOfCall(tensors, options));
    KILN_ASSIGN(sequences, sequencesOf(arguments, tablesOf(inputs)));
    for (const auto &[name, type] : *outputs)
      types[name] = {DType::U8, type.shape};
    tensors = tensorsOfTypes(types);
    KILN_ASSIGN(oView, attentionOutputView(layout, tensors.at("o"), {arguments.q, arguments.k, arguments.v}));
    const AttentionExtents e = extentsOf(arguments);
    rowsQ = e.rowsQ, heads = e.heads, dim = e.dim, dimV = e.dimV;
    batchOfQ = arguments.cuQ ? 1 : e.batch;
    group = heads / std::max<std::int64_t>(1, e.keyHeads);
    scale = arguments.scale ? static_cast<double>(*arguments.scale) : 1 / std::sqrt(static_cast<double>(dim));
    for (const char *name : {"q", "qkv"})
      if (inputs.count(name))
        qData = inputs.find(name)->second.values.data();
    for (const char *name : {"k", "kv", "qkv"})
      if (const auto found = inputs.find(name); found != inputs.end())
        kData = found->second.values.data(), kSize = found->second.values.size();
    for (const char *name : {"v", "kv", "qkv"})
      if (inputs.count(name))
        vData = inputs.find(name)->second.values.data();
    scaledK.resize(kSize); // of an interleaved buffer more than k: what is not k is not read
    for (std::size_t i = 0; i < kSize; ++i)
      scaledK[i] = rounded(kData[i] * scale);
    return {};
  }

  /// Which sequence each row of q belongs to; none: -1.
  void findSequences() {
    sequenceOfRow.assign(static_cast<std::size_t>(rowsQ * batchOfQ), -1);
    for (std::size_t s = 0; s < sequences.size(); ++s)
      for (std::int64_t i = 0; i < sequences[s].queries; ++i)
        sequenceOfRow[static_cast<std::size_t>(sequences[s].batchQ * rowsQ + sequences[s].startQ + i)] =
            static_cast<std::int64_t>(s);
  }

  static std::int64_t at(const Tensor &t, bool packed, std::int64_t batch, std::int64_t row) {
    return static_cast<std::int64_t>(t.address) + (packed ? 0 : batch * t.strides[0]) + row * t.strides[packed ? 0 : 1];
  }
  /// Of q or o, whose heads may be split.
  std::int64_t atHead(const Tensor &t, bool packed, std::int64_t batch, std::int64_t row, std::int64_t head) const {
    const unsigned first = packed ? 1 : 2;
    const bool split = t.rank == first + 3;
    return at(t, packed, batch, row) +
           (split ? head / group * t.strides[first] + head % group * t.strides[first + 1] : head * t.strides[first]);
  }

  static double dot(const double *a, const double *b, std::int64_t n) {
    double sums[4] = {}; // float64 has bits to spare for another order
    for (std::int64_t c = 0; c + 4 <= n; c += 4)
      for (unsigned i = 0; i < 4; ++i)
        sums[i] += a[c + i] * b[c + i];
    for (std::int64_t c = n / 4 * 4; c < n; ++c)
      sums[0] += a[c] * b[c];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  /// `index` counts heads first, then rows of q, then the batch.
  void row(std::int64_t index, bool whole) {
    const std::int64_t head = index % heads, rowAt = index / heads, batch = rowAt / rowsQ, r = rowAt % rowsQ;
    std::vector<double> values(static_cast<std::size_t>(dimV));
    double logSum = -INFINITY;
    if (const std::int64_t s = sequenceOfRow[static_cast<std::size_t>(rowAt)]; s >= 0)
      logSum = compute(sequences[static_cast<std::size_t>(s)], batch, r, head, values);
    put(*o, atHead(oView, arguments.cuQ.has_value(), batch, r, head), values, whole);
    if (lse)
      put(*lse, arguments.cuQ ? head * rowsQ + r : (batch * heads + head) * rowsQ + r, {&logSum, 1}, whole);
  }

  static void put(HostTensor &to, std::int64_t first, std::span<const double> values, bool whole) {
    for (std::size_t c = 0; c < values.size(); ++c) {
      const std::size_t where = static_cast<std::size_t>(first) + c;
      if (whole) {
        to.values[where] = values[c];
      } else {
        to.sample.push_back(where);
        to.values.push_back(values[c]);
      }
    }
  }

  /// One row of o; returns its lse.
  double compute(const AttentionSequence &s, std::int64_t batch, std::int64_t r, std::int64_t head,
                 std::vector<double> &values) {
    const bool packedK = arguments.cuK.has_value();
    const std::int64_t keyHead = head / group, i = r - s.startQ, right = arguments.causal ? 0 : arguments.windowRight;
    const std::int64_t p = i + shiftOf(s, arguments);
    const double *const query = qData + atHead(arguments.q, arguments.cuQ.has_value(), batch, r, head);
    const unsigned headDim = packedK ? 1 : 2;
    const auto keyAt = [&](const Tensor &t, std::int64_t j) {
      return at(t, packedK, s.batchK, s.startK + j) + keyHead * t.strides[headDim];
    };
    const double slope = arguments.alibi ? alibiOf(&s - sequences.data(), head) : 0, cap = arguments.softcap;
    double descaleQK = descale("q_descale", s, keyHead) * descale("k_descale", s, keyHead);
    if (descaleQK < 0) // AttentionOperation.h
      descaleQK = NAN;
    std::vector<double> z(static_cast<std::size_t>(s.keys), -INFINITY);
    double most = -INFINITY, mostOfProducts = 0;
    // A NaN stays: nothing is larger than it.
    const auto meet = [&](double x) { most = std::isnan(x) || x > most ? x : most; };
    for (std::int64_t j = 0; j < s.keys; ++j) {
      if ((right >= 0 && j > p + right) || (arguments.windowLeft >= 0 && j < p - arguments.windowLeft))
        continue;
      double x = rounded(descaleQK * dot(query, scaledK.data() + keyAt(arguments.k, j), dim));
      if (isEighth) {
        const double *const key = scaledK.data() + keyAt(arguments.k, j);
        mostOfProducts = std::max(mostOfProducts, std::abs(descaleQK) * lossOf(query, key));
      }
      if (cap > 0)
        x = rounded(cap * std::tanh(x / cap));
      if (arguments.alibi)
        x = rounded(x - slope * static_cast<double>(std::abs(p - j)));
      meet(z[static_cast<std::size_t>(j)] = x);
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
      const double share = shareOf(z[static_cast<std::size_t>(j)], total);
      if (z[static_cast<std::size_t>(j)] == 0)
        continue;
      const double *const value = vData + keyAt(arguments.v, j);
      for (std::int64_t c = 0; c < dimV; ++c)
        values[static_cast<std::size_t>(c)] += share * value[c];
    }
    for (double &v : values)
      v = roundedOutput(v * descale("v_descale", s, keyHead));
    return total == 0 ? -INFINITY : base + std::log(total) + 0x1p-13 * mostOfProducts;
  }

  /// What a matrix unit may lose of a product of e4m3, in units of 2^-13: an instruction adds 32 terms to the sum so
  /// far, of each of which it drops what lies 13 bits below the largest.
  double lossOf(const double *query, const double *key) const {
    double sum = 0, loss = 0;
    for (std::int64_t first = 0; first < dim; first += 32) {
      double largest = std::abs(sum);
      for (std::int64_t c = first; c < std::min(dim, first + 32); ++c) {
        sum += query[c] * key[c];
        largest = std::max(largest, std::abs(query[c] * key[c]));
      }
      loss += 33 * std::max(largest, std::abs(sum));
    }
    return loss;
  }

  /// Of a sequence's key head; 1 where there is no such table.
  double descale(std::string_view name, const AttentionSequence &s, std::int64_t keyHead) const {
    const auto found = inputs.find(name);
    if (found == inputs.end())
      return 1;
    const std::int64_t sequence = &s - sequences.data();
    return found->second.values[static_cast<std::size_t>(sequence * (heads / group) + keyHead)];
  }

  double alibiOf(std::ptrdiff_t sequence, std::int64_t head) const {
    const HostTensor &alibi = inputs.find("alibi")->second;
    return alibi.values[static_cast<std::size_t>((alibi.shape.size() == 2 ? sequence * heads : 0) + head)];
  }

  const HostTensors &inputs;
  const OptionValues &options;
  bool isEighth;             ///< what e4m3 brings is asked for
  const FloatFormat *format; ///< of all steps; none: they are not rounded
  TensorTypes types;
  AttentionArguments arguments;
  std::vector<AttentionSequence> sequences;
  std::vector<std::int64_t> sequenceOfRow;
  Tensor oView;
  const double *qData = nullptr, *kData = nullptr, *vData = nullptr;
  std::size_t kSize = 0;
  std::vector<double> scaledK;
  std::int64_t rowsQ = 0, batchOfQ = 0, group = 1, heads = 0, dim = 0, dimV = 0;
  double scale = 0;
  HostTensor *o = nullptr, *lse = nullptr;
};

} // namespace

Result<HostTensors> attentionReference(const HostTensors &inputs, const OptionValues &options,
                                       std::optional<DType> working) {
  return RowByRow(inputs, options, working)();
}

} // namespace kiln::kernels
