// `attention_decode` for commands and tests: parameters, tolerance, samples.  The reference is
// AttentionDecodeReference.cpp.
#include "kernels/attention/AttentionCall.h"
#include "kernels/attention/AttentionTolerance.h"
#include "kernels/attention_decode/AttentionDecodeCall.h"
#include "kernels/attention_decode/AttentionDecodeOperation.h"
#include "kernels/attention_decode/AttentionDecodeReference.h"
#include "kernels/support/Family.h"
#include "kernels/support/Rounding.h"
#include "kernels/support/Runner.h"

#include <cmath>

namespace kiln::kernels {
namespace {

Array tableOf(const Shape &shape, const std::vector<std::int32_t> &values) {
  Array out{DType::I32, shape, {}};
  const auto bytes = std::as_bytes(std::span(values));
  out.data.assign(bytes.begin(), bytes.end());
  return out;
}

class AttentionDecodeCallable : public Callable {
public:
  std::string_view name() const override { return "attention_decode"; }
  std::string_view summary() const override {
    return "attention of few queries over a cache of keys and values, contiguous or in pages; appends new rows to it";
  }
  std::vector<DType> dtypes() const override { return {DType::BF16, DType::F16, DType::F8E4M3}; }

  std::vector<TensorParameter> tensors() const override {
    const auto table = [](const char *name, const char *text) {
      return TensorParameter{name, false, true, text, DType::I32};
    };
    const auto number = [](const char *name, const char *text) {
      return TensorParameter{name, false, true, text, DType::F32};
    };
    return {{"q", false, false, "B x Sq x H x D, f16, bf16 or e4m3"},
            {"k_cache", false, false, "B or more x capacity x Hk x D; with a page table pages x page size x Hk x D"},
            {"v_cache", false, false, "as k_cache, with Dv columns"},
            table("cache_seqlens", "B, int32: how many rows of the cache are keys of each sequence; default: all"),
            {"k_new", false, true, "B x Snew x Hk x D: keys that come after the cached ones", {}, "v_new"},
            {"v_new", false, true, "B x Snew x Hk x Dv", {}, "k_new"},
            number("rotary_cos", "n x r / 2, f32: a row for each position; rotates r columns of q and k_new"),
            number("rotary_sin", "n x r / 2, f32"),
            table("page_table", "B x pages of a sequence, int32: pages of the cache"),
            table("cache_batch_idx", "B, int32: where each sequence lies in the cache; default: in order"),
            table("leftpad_k", "B, int32: rows of the cache before each sequence's first key"),
            number("sink", "H, f32: a logit of each head that has no value"),
            number("alibi", "H or B x H, f32: slopes"),
            number("q_descale", "B x Hk, f32: what e4m3 numbers of q are multiplied by"),
            number("k_descale", "B x Hk, f32: the same of keys, new ones included"),
            number("v_descale", "B x Hk, f32: the same of values"),
            {"o", true, false, "as q, with the columns of v; bf16 for e4m3"},
            {"lse", true, true, "B x H x Sq, f32"},
            {.name = "k_cache_after",
             .output = true,
             .optional = true,
             .description = "k_cache with the new rows",
             .inPlaceOf = "k_cache"},
            {.name = "v_cache_after",
             .output = true,
             .optional = true,
             .description = "v_cache with the new rows",
             .inPlaceOf = "v_cache"}};
  }

  std::vector<OptionInfo> options() const override { return optionsOf<AttentionDecodeArguments>(); }

  Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &options) const override {
    KILN_ASSIGN(const DecodeSizes s, decodeSizes(inputs));
    const auto at = [&](const char *name) -> const TensorType & { return inputs.find(name)->second; };
    TensorTypes out;
    out["o"] = {outputOf(at("q").dtype), at("q").shape};
    out["o"].shape.back() = s.dimV;
    if (isSet(options, "lse"))
      out["lse"] = {DType::F32, {s.batch, s.heads, s.tokens}};
    for (const auto &[after, cache] : {std::pair("k_cache_after", "k_cache"), std::pair("v_cache_after", "v_cache")})
      if (isSet(options, after))
        out[after] = at(cache);
    return out;
  }

  Status complete(const Arrays &inputs, OptionValues &options) const override {
    TensorTypes types;
    HostTensors tables;
    for (const auto &[name, array] : inputs) {
      types[name] = {array.type, array.shape};
      if (array.type == DType::I32)
        tables[name] = toHost(array);
    }
    KILN_ASSIGN(const DecodeSizes s, decodeSizes(types));
    KILN_ASSIGN(const std::vector<DecodeSequence> sequences, decodeSequences(s, tables));
    KILN_ASSIGN(const auto a, readOptions<AttentionDecodeArguments>("attention_decode", options));
    AttentionArguments same;
    same.causal = a.causal, same.windowLeft = a.windowLeft, same.windowRight = a.windowRight;
    double keys = 0, pairs = 0;
    for (const DecodeSequence &sequence : sequences) {
      AttentionSequence rows;
      rows.queries = static_cast<std::int64_t>(s.tokens), rows.keys = static_cast<std::int64_t>(sequence.keys);
      keys += static_cast<double>(sequence.keys), pairs += pairsOf(rows, same);
    }
    options[std::string(keysValue)] = keys, options[std::string(pairsValue)] = pairs;
    return {};
  }

  Planner bind(Jit &jit) const override {
    return [operation = std::make_shared<AttentionDecodeOperation>(jit)](const Call &call, Plan &plan) -> Status {
      const auto given = [&](std::string_view name) -> std::optional<Tensor> {
        const auto found = call.tensors.find(name);
        return found == call.tensors.end() ? std::optional<Tensor>() : found->second;
      };
      AttentionDecodeArguments a;
      a.q = *given("q"), a.kCache = *given("k_cache"), a.vCache = *given("v_cache"), a.o = *given("o");
      a.lse = given("lse"), a.cacheSeqlens = given("cache_seqlens"), a.kNew = given("k_new"), a.vNew = given("v_new");
      a.rotaryCos = given("rotary_cos"), a.rotarySin = given("rotary_sin"), a.pageTable = given("page_table");
      a.cacheBatchIdx = given("cache_batch_idx"), a.leftPadK = given("leftpad_k");
      a.sink = given("sink"), a.alibi = given("alibi");
      a.descaleQ = given("q_descale"), a.descaleK = given("k_descale"), a.descaleV = given("v_descale");
      KILN_TRY(readOptions("attention_decode", call.options, a));
      return operation->describe(a, plan);
    };
  }

  std::string sizeText(const TensorTypes &inputs, const OptionValues &) const override {
    const auto s = decodeSizes(inputs);
    if (!s.ok())
      return {};
    const auto n = [](std::uint64_t v) { return std::to_string(v); };
    return "B" + n(s->batch) + " S" + n(s->tokens) + "," + n(s->capacity()) + " H" + n(s->heads) + "/" +
           n(s->keyHeads) + " D" + n(s->dim) + (s->dim == s->dimV ? "" : "," + n(s->dimV)) +
           (s->paged ? " pages of " + n(s->rows) : "");
  }

  /// Keys and values that are attended to, q and o.
  double bytes(const Call &call) const override {
    const auto at = [&](const char *name) -> const Tensor & { return call.tensors.find(name)->second; };
    const auto of = [](const Tensor &t) { return static_cast<double>(t.elements()); };
    const Tensor &k = at("k_cache"), &v = at("v_cache");
    const double keys = valueOr(call.options, keysValue, 0.0) * static_cast<double>(k.shape[2]) *
                        static_cast<double>(k.shape[3] + v.shape[3]);
    return (keys + of(at("q"))) * static_cast<double>(dtypeBytes(k.dtype)) +
           of(at("o")) * static_cast<double>(dtypeBytes(at("o").dtype));
  }

  /// 2 pairs (D + Dv) of each head, as of attention.
  double flops(const Call &call) const override {
    const auto at = [&](const char *name) -> const Tensor & { return call.tensors.find(name)->second; };
    const Tensor &q = at("q"), &v = at("v_cache");
    const std::int64_t heads = q.shape[2] * (q.rank == 5 ? q.shape[3] : 1), columns = q.shape[q.rank - 1] + v.shape[3];
    return 2 * valueOr(call.options, pairsValue, 0.0) * static_cast<double>(heads * columns);
  }

  std::vector<FieldInfo> settings() const override { return fieldsOf<AttentionDecodeConfig>(); }
  language::Kernel record(DType element, const Settings &settings) const override {
    return recordWith(settings, AttentionDecodeConfig(),
                      [&](const AttentionDecodeConfig &c) { return attentionDecode(element, c); });
  }
};

class AttentionDecodeReference : public Reference {
public:
  Result<HostTensors> compute(const HostTensors &inputs, const OptionValues &options) const override {
    return withWorkingValues(inputs.find("q")->second.dtype, [&](std::optional<DType> working) {
      return attentionDecodeReference(inputs, options, working);
    });
  }

  /// o and lse as of attention: f max |base - reference| + a for each element and 1.5 mean |base - reference| + a / 8
  /// for the mean, a = 2 u max |reference| + 1e-5, f = 2, with softcap 3, of e4m3 4 (and 3 in place of 1.5); lse 1e-4 +
  /// 1e-5 |lse|, with softcap X 1e-3 X, of e4m3 also what the products' 14 bits bring, and with rotated rows, which are
  /// rounded, what that costs.  Caches: one unit in the last place where keys were
  /// rotated, else exact.
  std::vector<double> allowed(std::string_view name, DType dtype, const HostTensors &inputs,
                              const HostTensors &reference, const OptionValues &options) const override {
    const HostTensor &wanted = reference.find(name)->second;
    const double cap = valueOr(options, "softcap", 0.0);
    const bool isRotated = inputs.contains("rotary_cos");
    std::vector<double> limits(wanted.values.size(), 0);
    if (name == "o") {
      const WorkingError base(wanted, dtype);
      limits.assign(limits.size(), (isEighth(inputs) ? 4 : cap > 0 ? 3 : 2) * base.worst + base.rest);
    } else if (name == "lse") {
      for (std::size_t i = 0; i < limits.size(); ++i)
        if (const double lse = wanted.values[i]; !std::isinf(lse))
          limits[i] = (cap > 0 ? 1e-3 * cap : 1e-4) + 1e-5 * std::abs(lse) +
                      (isEighth(inputs) ? std::abs(wanted.rounded[i] - lse) : 0);
    } else if (name == "k_cache_after" && isRotated) {
      const std::vector<double> &before = inputs.find("k_cache")->second.values;
      for (std::size_t i = 0; i < limits.size(); ++i)
        if (wanted.values[i] != before[i])
          limits[i] = ulp(wanted.values[i], dtype);
    }
    return limits;
  }
  std::optional<double> allowedMean(std::string_view name, DType dtype, const HostTensors &inputs,
                                    const HostTensor &reference) const override {
    if (name != "o")
      return {};
    const WorkingError base(reference, dtype);
    return (isEighth(inputs) ? 3 : 1.5) * base.mean + base.rest / 8;
  }

private:
  static bool isEighth(const HostTensors &inputs) { return inputs.find("q")->second.dtype == DType::F8E4M3; }
};

class AttentionDecodeSamples : public Samples {
public:
  /// Room of each sequence in samples that check; leftpad_k is at most `padding`.
  static constexpr std::uint64_t room = 160, newTokens = 3, padding = 5;

  /// Demo: a step of Llama 3 8B.  Bench: 1, 8 and 16 tokens of 32 sequences of 8,192, and 1 in pages of 16.  Check:
  /// each option somewhere.
  std::vector<Sample> calls(DType dtype, SampleUse use, bool gpu) const override {
    const auto unit = static_cast<std::uint64_t>(headDimUnit(dtype));
    const auto call = [&](std::uint64_t batch, std::uint64_t tokens, std::uint64_t keys, std::uint64_t heads,
                          std::uint64_t keyHeads, std::uint64_t width, OptionValues options) {
      const std::uint64_t dim = (width + unit - 1) / unit * unit;
      return Sample{{{"q", {dtype, {batch, tokens, heads, dim}}},
                     {"k_cache", {dtype, {batch, keys, keyHeads, dim}}},
                     {"v_cache", {dtype, {batch, keys, keyHeads, dim}}}},
                    std::move(options)};
    };
    /// In pages of so many rows.
    const auto inPages = [&](Sample sample, std::uint64_t pageSize) {
      const std::uint64_t batch = sample.inputs.at("q").shape[0],
                          pages = sample.inputs.at("k_cache").shape[1] / pageSize;
      for (const char *name : {"k_cache", "v_cache"}) {
        Shape &shape = sample.inputs.at(name).shape;
        shape[0] = batch * pages, shape[1] = pageSize;
      }
      sample.inputs["page_table"] = {DType::I32, {batch, pages}};
      return sample;
    };
    if (use == SampleUse::Demo)
      return {call(gpu ? 32 : 2, 1, gpu ? 8192 : 512, 32, 8, 128, {})};
    if (use == SampleUse::Bench) {
      if (!gpu)
        return {call(1, 1, 512, 8, 2, 64, {}), call(1, 8, 512, 8, 2, 64, {{"causal", true}})};
      std::vector<Sample> out;
      for (const std::uint64_t tokens : {1, 8, 16})
        out.push_back(call(32, tokens, 8192, 64, 8, 128, tokens > 1 ? OptionValues{{"causal", true}} : OptionValues()));
      out.push_back(inPages(out.front(), 16));
      return out;
    }
    const auto appending = [&](Sample sample) {
      const Shape &q = sample.inputs.at("q").shape, &k = sample.inputs.at("k_cache").shape;
      sample.inputs["k_new"] = sample.inputs["v_new"] = {dtype, {q[0], newTokens, k[2], q[3]}};
      sample.inputs["cache_seqlens"] = {DType::I32, {q[0]}};
      sample.options["k_cache_after"] = sample.options["v_cache_after"] = true;
      return sample;
    };
    std::vector<Sample> all = {call(1, 1, 1, 1, 1, 8, {{"lse", true}})};
    all.push_back(inPages(call(3, 2, room, 8, 2, 64, {{"causal", true}, {"lse", true}, {"splits", 3}}), 16));
    all.back().inputs["cache_seqlens"] = {DType::I32, {3}};
    all.push_back(
        inPages(call(2, 5, room, 5, 1, 40, {{"softcap", 20.0}, {"window_left", 30}, {"window_right", 4}}), 5));
    all.back().inputs["leftpad_k"] = all.back().inputs["cache_seqlens"] = {DType::I32, {2}};
    all.push_back(appending(call(3, newTokens, room, 4, 2, 64, {{"causal", true}, {"splits", 2}, {"lse", true}})));
    all.back().inputs["sink"] = {DType::F32, {4}};
    all.back().inputs["cache_batch_idx"] = {DType::I32, {3}};
    if (dtype == DType::F8E4M3) {
      for (const char *name : {"k_descale", "v_descale"})
        all.back().inputs[name] = {DType::F32, {3, 2}};
      return all;
    }
    for (const bool interleaved : {false, true}) {
      all.push_back(appending(inPages(call(2, newTokens, room, 4, 1, 64, {{"causal", !interleaved}}), 16)));
      all.back().options["rotary_interleaved"] = interleaved;
      all.back().inputs["rotary_cos"] = all.back().inputs["rotary_sin"] = {DType::F32, {room, interleaved ? 24u : 32u}};
      all.back().inputs["alibi"] = {DType::F32, {2, 4}};
    }
    return all;
  }

  std::optional<Array> input(std::string_view name, const TensorType &type, std::uint64_t seed) const override {
    const std::size_t n = type.elements();
    if (name == "k_descale") // not below 0
      return arrayOf(type, std::vector<float>(n, 0.75f));
    if (name != "rotary_cos" && name != "rotary_sin")
      return {};
    std::vector<float> angles;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t columns = type.shape.back(), position = i / columns, pair = i % columns;
      const double angle = static_cast<double>(position) / std::pow(1e4, double(pair) / static_cast<double>(columns));
      angles.push_back(static_cast<float>(name == "rotary_cos" ? std::cos(angle) : std::sin(angle)));
    }
    return arrayOf(type, angles);
  }

  std::optional<Array> table(std::string_view name, const TensorTypes &all, std::uint64_t seed) const override {
    const TensorType &type = all.find(name)->second;
    const std::size_t n = type.elements();
    const auto filled = [&](auto value) {
      std::vector<std::int32_t> values(n);
      for (std::size_t i = 0; i < n; ++i)
        values[i] = static_cast<std::int32_t>(value(i));
      return tableOf(type.shape, values);
    };
    if (name == "cache_seqlens") { // from all that there is room for to half of it; of the last sequence none
      DecodeSizes s;
      if (all.contains("q") && all.contains("k_cache") && all.contains("v_cache"))
        if (const auto known = decodeSizes(all); known.ok())
          s = *known;
      const std::uint64_t taken = s.newTokens + (all.contains("leftpad_k") ? padding : 0),
                          most = std::max(s.capacity(), taken) - taken;
      return filled(
          [&](std::size_t i) { return i > 0 && i == n - 1 ? 0 : most - i * (97 + seed % 3) % (most / 2 + 1); });
    }
    if (name == "page_table") // none twice
      return filled([&](std::size_t i) { return (i ^ 1) < n ? i ^ 1 : i; });
    if (name == "cache_batch_idx")
      return filled([&](std::size_t i) { return n - 1 - i; });
    if (name == "leftpad_k")
      return filled([&](std::size_t i) { return (i + 3) % (padding + 1); });
    return {};
  }
};

} // namespace

Family makeAttentionDecode() {
  return {std::make_unique<AttentionDecodeCallable>(), std::make_unique<AttentionDecodeReference>(),
          std::make_unique<AttentionDecodeSamples>()};
}

} // namespace kiln::kernels
