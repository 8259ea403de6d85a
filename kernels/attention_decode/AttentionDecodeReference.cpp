#include "kernels/attention_decode/AttentionDecodeReference.h"

#include "kernels/attention/EighthOnHost.h"
#include "kernels/attention_decode/AttentionDecodeCall.h"
#include "kernels/attention_decode/AttentionDecodeOperation.h"
#include "kernels/support/Rounding.h"
#include "kernels/support/Sampling.h"

#include <cmath>

namespace kiln::kernels {
namespace {

class Definition {
public:
  Definition(const HostTensors &inputs, const OptionValues &options, std::optional<DType> working)
      : inputs(inputs), options(options),
        format(working && working != DType::F8E4M3 ? dtypeFloatFormat(*working) : nullptr),
        isEighth(working == DType::F8E4M3) {}

  Result<HostTensors> operator()() {
    TensorTypes types;
    for (const auto &[name, tensor] : inputs)
      types[name] = {DType::U8, tensor.shape};
    KILN_ASSIGN(s, decodeSizes(types));
    KILN_ASSIGN(sequences, decodeSequences(s, inputs));
    KILN_ASSIGN(a, readOptions<AttentionDecodeArguments>("attention_decode", options));
    scale = a.scale ? static_cast<double>(*a.scale) : 1 / std::sqrt(static_cast<double>(s.dim));
    masked = a.causal || a.windowLeft >= 0 || a.windowRight >= 0;
    cache[0] = &inputs.find("k_cache")->second, cache[1] = &inputs.find("v_cache")->second;
    keys = &cache[0]->values, values = &cache[1]->values;
    if (s.newTokens > 0) // a GPU's cache is large
      append();

    HostTensors out;
    HostTensor &o = out["o"], *lse = isSet(options, "lse") ? &out["lse"] : nullptr;
    o.shape = inputs.find("q")->second.shape, o.shape.back() = s.dimV;
    if (lse)
      lse->shape = {s.batch, s.heads, s.tokens};
    double work = 0;
    for (const DecodeSequence &of : sequences)
      work += static_cast<double>(of.keys * s.heads * s.tokens * (s.dim + s.dimV));
    const double affordable = affordableWork(options) / 8; // each product rounds a key
    const std::uint64_t rows = s.batch * s.tokens * s.heads;
    const std::vector<std::uint64_t> chosen =
        work <= affordable ? std::vector<std::uint64_t>()
                           : sampleOf(rows, static_cast<std::uint64_t>(static_cast<double>(rows) * affordable / work));
    const bool whole = chosen.empty();
    o.values.resize(whole ? rows * s.dimV : 0);
    if (lse)
      lse->values.resize(whole ? rows : 0);
    for (std::uint64_t n = 0; n < (whole ? rows : chosen.size()); ++n) {
      const std::uint64_t at = whole ? n : chosen[n], h = at % s.heads, i = at / s.heads % s.tokens,
                          b = at / s.heads / s.tokens;
      std::vector<double> row(s.dimV);
      const double sum = compute(b, i, h, row);
      const auto put = [&](HostTensor &to, std::uint64_t at, double value) {
        if (whole) {
          to.values[at] = value;
        } else {
          to.sample.push_back(at);
          to.values.push_back(value);
        }
      };
      for (std::uint64_t c = 0; c < s.dimV; ++c)
        put(o, at * s.dimV + c, row[c]);
      if (lse)
        put(*lse, (b * s.heads + h) * s.tokens + i, sum);
    }
    for (const auto &[name, which] : {std::pair("k_cache_after", 0), std::pair("v_cache_after", 1)})
      if (isSet(options, name))
        out[name] = {cache[which]->shape, which ? *values : *keys};
    return out;
  }

private:
  double rounded(double v) const { return format ? decodeFloat(encodeFloat(v, *format), *format) : v; }
  double ofType(double v) const {
    const FloatFormat &type = *dtypeFloatFormat(inputs.find("q")->second.dtype);
    return decodeFloat(encodeFloat(v, type), type);
  }
  /// Of a sequence's key head; 1 where there is no such table.
  double descale(std::string_view name, std::uint64_t b, std::uint64_t kvHead) const {
    const auto found = inputs.find(name);
    return found == inputs.end() ? 1 : found->second.values[b * s.keyHeads + kvHead];
  }
  const double *input(std::string_view name, std::uint64_t at) const {
    return inputs.find(name)->second.values.data() + at;
  }

  /// A row of q or k_new at its position, as the cache has it: of the type.
  std::vector<double> rotated(const double *x, std::uint64_t position) const {
    std::vector<double> out(x, x + s.dim);
    for (std::uint64_t t = 0; t < s.angles; ++t) {
      const double cosine = *input("rotary_cos", position * s.angles + t),
                   sine = *input("rotary_sin", position * s.angles + t);
      const std::uint64_t first = a.rotaryInterleaved ? 2 * t : t,
                          second = a.rotaryInterleaved ? first + 1 : t + s.angles;
      out[first] = ofType(x[first] * cosine - x[second] * sine);
      out[second] = ofType(x[first] * sine + x[second] * cosine);
    }
    return out;
  }

  /// The caches with the new rows.
  void append() {
    after[0] = *keys, after[1] = *values;
    keys = &after[0], values = &after[1];
    for (std::uint64_t b = 0; b < s.batch; ++b)
      for (std::uint64_t t = 0; t < s.newTokens; ++t)
        for (std::uint64_t h = 0; h < s.keyHeads; ++h) {
          const std::uint64_t from = (b * s.newTokens + t) * s.keyHeads + h,
                              to = sequences[b].rowOf[sequences[b].cached + t] * s.keyHeads + h;
          const std::vector<double> key = rotated(input("k_new", from * s.dim), sequences[b].cached + t);
          std::copy(key.begin(), key.end(), after[0].begin() + static_cast<std::ptrdiff_t>(to * s.dim));
          std::copy_n(input("v_new", from * s.dimV), s.dimV,
                      after[1].begin() + static_cast<std::ptrdiff_t>(to * s.dimV));
        }
  }

  /// One row of o; returns its lse.
  double compute(std::uint64_t b, std::uint64_t i, std::uint64_t h, std::vector<double> &o) const {
    const DecodeSequence &of = sequences[b];
    const std::uint64_t kvHead = h / (s.heads / s.keyHeads);
    const std::vector<double> query =
        rotated(input("q", ((b * s.tokens + i) * s.heads + h) * s.dim), of.cached + (masked ? i : 0));
    const auto p = static_cast<std::int64_t>(i + of.keys) - static_cast<std::int64_t>(s.tokens);
    const std::int64_t right = a.causal ? 0 : a.windowRight;
    std::vector<double> z(of.keys, -INFINITY);
    double most = -INFINITY, mostOfProducts = 0;
    double factor = descale("q_descale", b, kvHead) * descale("k_descale", b, kvHead);
    if (factor < 0) // AttentionDecodeOperation.h
      factor = NAN;
    const auto meet = [&](double x) { most = std::isnan(x) || x > most ? x : most; }; // a NaN stays
    for (std::uint64_t j = 0; j < of.keys; ++j) {
      const auto at = static_cast<std::int64_t>(j);
      if ((right >= 0 && at > p + right) || (a.windowLeft >= 0 && at < p - a.windowLeft))
        continue;
      const double *const key = &(*keys)[(of.rowOf[j] * s.keyHeads + kvHead) * s.dim];
      double x = 0;
      for (std::uint64_t c = 0; c < s.dim; ++c)
        x += query[c] * rounded(key[c] * scale);
      x = rounded(x * factor);
      if (isEighth)
        mostOfProducts =
            std::max(mostOfProducts,
                     std::abs(factor * scale) * lossOfEighth(query.data(), key, static_cast<std::int64_t>(s.dim)));
      if (a.softcap > 0)
        x = rounded(a.softcap * std::tanh(x / a.softcap));
      if (const auto alibi = inputs.find("alibi"); alibi != inputs.end())
        x = rounded(x - alibi->second.values[(alibi->second.shape.size() == 2 ? b * s.heads : 0) + h] *
                            static_cast<double>(std::abs(p - at)));
      meet(z[j] = x);
    }
    const auto sink = inputs.find("sink");
    const bool hasSink = sink != inputs.end();
    if (hasSink)
      meet(sink->second.values[h]);
    const double base = most == -INFINITY ? 0 : most;
    double total = hasSink ? std::exp(sink->second.values[h] - base) : 0;
    for (double &e : z)
      total += e = std::exp(e - base);
    for (std::uint64_t j = 0; j < of.keys && total != 0; ++j) {
      if (z[j] == 0)
        continue;
      const double share = isEighth ? powerOfEighth(z[j]) / total : rounded(z[j] / total);
      for (std::uint64_t c = 0; c < s.dimV; ++c)
        o[c] += share * (*values)[(of.rowOf[j] * s.keyHeads + kvHead) * s.dimV + c];
    }
    const FloatFormat &eighths = *dtypeFloatFormat(DType::BF16); // o of e4m3
    for (double &v : o) {
      v *= descale("v_descale", b, kvHead);
      v = isEighth ? decodeFloat(encodeFloat(v, eighths), eighths) : rounded(v);
    }
    return total == 0 ? -INFINITY : base + std::log(total) + 0x1p-13 * mostOfProducts;
  }

  const HostTensors &inputs;
  const OptionValues &options;
  const FloatFormat *format;
  bool isEighth; ///< what e4m3 brings is asked for (attention/AttentionReference.h)
  DecodeSizes s;
  AttentionDecodeArguments a; ///< its options
  std::vector<DecodeSequence> sequences;
  const HostTensor *cache[2] = {};                              ///< k, v
  std::vector<double> after[2];                                 ///< where there are new rows
  const std::vector<double> *keys = nullptr, *values = nullptr; ///< that are attended to
  double scale = 0;
  bool masked = false;
};

} // namespace

Result<HostTensors> attentionDecodeReference(const HostTensors &inputs, const OptionValues &options,
                                             std::optional<DType> working) {
  return Definition(inputs, options, working)();
}

} // namespace kiln::kernels
