// `attention` for commands and tests: parameters, layouts by name, tolerance.  The reference is AttentionReference.cpp.
#include "kernels/attention/AttentionCall.h"
#include "kernels/attention/AttentionReference.h"
#include "kernels/attention/AttentionTolerance.h"
#include "kernels/attention/CallFunctions.h"
#include "kernels/support/Family.h"
#include "kernels/support/Grid.h"
#include "kernels/support/Runner.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace kiln::kernels {
namespace {

class AttentionCallable : public Callable {
public:
  std::string_view name() const override { return "attention"; }
  std::string_view summary() const override {
    return "o = softmax(mask(softcap(scale q k^T) + alibi + bias)) v for every head; lse: the softmax's logarithm";
  }
  std::vector<DType> dtypes() const override { return {DType::BF16, DType::F16, DType::F8E4M3}; }

  std::vector<TensorParameter> tensors() const override {
    std::vector<TensorParameter> out = {
        {"q", false, true, "B x Sq x H x D, f16, bf16 or e4m3; other layouts by --layout"},
        {"k", false, true, "B x Sk x Hk x D"},
        {"v", false, true, "B x Sk x Hk x Dv"},
        {"kv", false, true, "instead of k and v: B x Sk x 2 x Hk x D"},
        {"qkv", false, true, "instead of all three: B x S x 3 x H x D, or with --heads S x B x (H + 2 Hk) x D"}};
    std::ranges::move(optionalParameters(), std::back_inserter(out));
    out.insert(out.end(),
               {{"q_descale", false, true, "B x Hk, f32: what e4m3 numbers of q are multiplied by", DType::F32},
                {"k_descale", false, true, "B x Hk, f32: the same of k", DType::F32},
                {"v_descale", false, true, "B x Hk, f32: the same of v", DType::F32},
                {"o", true, false, "as q, with the columns of v; bf16 for e4m3"},
                {"lse", true, true, "B x H x Sq, packed H x T, f32"}});
    return out;
  }

  std::vector<OptionInfo> options() const override {
    return optionsOf<AttentionWords, FunctionWords, AttentionArguments>();
  }

  std::optional<DType> inputType(const TensorParameter &parameter, std::optional<DType> called,
                                 const OptionValues &options) const override {
    return inputTypeOfCall(parameter, called);
  }

  Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &options) const override {
    return attentionOutputs(inputs, options);
  }

  Status complete(const Arrays &inputs, OptionValues &options) const override { return completeCall(inputs, options); }

  Result<Arrays> tables(const Arrays &inputs, const OptionValues &options) const override {
    return blockTables(inputs, options);
  }

  Planner bind(Jit &jit) const override {
    return [operation = std::make_shared<AttentionOperation>(jit),
            functions = std::make_shared<KnownFunctions>()](const Call &call, Plan &plan) -> Status {
      AttentionArguments a;
      KILN_ASSIGN(const AttentionLayout *const layout, readCall(call.tensors, call.options, a));
      KILN_ASSIGN(a.functions, functions->of(call.tensors, call.options));
      KILN_ASSIGN(a.o, attentionOutputView(*layout, call.tensors.at("o"), {a.q, a.k, a.v}));
      if (const auto lse = call.tensors.find("lse"); lse != call.tensors.end())
        a.lse = lse->second;
      return operation->describe(a, plan);
    };
  }

  std::string sizeText(const TensorTypes &inputs, const OptionValues &options) const override {
    return sizeTextOfCall(inputs, options);
  }

  /// 2 pairs (D + Dv) of each head.
  double flops(const Call &call) const override {
    const auto a = argumentsOfCall(call.tensors, call.options);
    if (!a.ok())
      return 0;
    const AttentionExtents e = extentsOf(*a);
    return 2 * valueOr(call.options, pairsValue, 0.0) * static_cast<double>(e.heads) *
           static_cast<double>(e.dim + e.dimV);
  }

  /// Scores of a step and sums are held in registers, keys and values in flight in shared memory.
  std::optional<ProgramNeeds> needs(const Call &call, const Target &code) const override {
    const auto a = argumentsOfCall(call.tensors, call.options);
    const Tiling t = a.ok() ? a->tiling : Tiling();
    if (!t.blockM || !t.blockN || !t.warps || !t.stages)
      return {};
    const AttentionExtents e = extentsOf(*a);
    const int threads = 32 * t.warps;
    const std::int64_t queries = a->cuQ ? a->maxQueries : e.rowsQ, columns = e.dim + e.dimV;
    const auto bytes = static_cast<double>(dtypeBytes(a->q.dtype));
    ProgramNeeds n;
    n.warps = static_cast<unsigned>(t.warps);
    n.registers = static_cast<unsigned>((t.blockM * (e.dimV + t.blockN) + threads - 1) / threads);
    n.overlapped = t.stages > 1 && code.has(Capability::CpAsync);
    n.programs = static_cast<double>(ceilDiv(queries, t.blockM) * e.heads * e.batch);
    if (n.programs == 0)
      return {};
    n.flops = flops(call) / n.programs;
    n.steps = std::ceil(n.flops / 2 / t.blockM / static_cast<double>(columns) / t.blockN);
    n.bytes = (n.flops / 2 / t.blockM + t.blockM * static_cast<double>(columns)) * bytes;
    n.rate = 2 / bytes;
    n.warpgroups = t.blockM >= 64 && t.warps % 4 == 0 && code.has(Capability::Wgmma);
    // Warpgroups read q from shared memory, too, and each 64 rows of it the keys and the values.  Powers of the round
    // before wait in registers for its values.
    const auto ofQueries = static_cast<double>(t.blockM * e.dim), ofGroups = t.blockM / 64.0 * t.blockN;
    if (n.overlapped)
      n.sharedBytes =
          static_cast<std::uint64_t>(t.stages * t.blockN * columns + (n.warpgroups ? t.blockM * e.dim : 0)) *
          dtypeBytes(a->q.dtype);
    // One chain from scores to values.  Fitted to three calls (an H200, causal, 2,048 keys): at D = 128 a step of 128 x
    // 128 takes 3,700 cycles and one of 256 x 32 3,150, at D = 64 one of 64 x 128 in three programs 1,260.
    n.latency = 800;
    n.special = n.steps * t.blockM * t.blockN;
    if (n.warpgroups) {
      n.operands = n.steps * bytes * (ofQueries + ofGroups * static_cast<double>(columns));
      n.carried = static_cast<unsigned>(t.blockM * t.blockN * static_cast<int>(bytes) / 4 / threads);
    }
    return n;
  }

  std::vector<FieldInfo> settings() const override { return fieldsOf(AttentionConfig(), FunctionSettings()); }
  language::Kernel record(DType element, const Settings &settings) const override {
    AttentionConfig c;
    FunctionSettings functions;
    Status s = applySettings(settings, c, functions);
    if (s.ok())
      s = functions.apply(c.hooks);
    return s.ok() ? attention(element, c) : language::Kernel::failed(std::move(s));
  }
};

class AttentionReference : public Reference {
public:
  Result<HostTensors> compute(const HostTensors &inputs, const OptionValues &options) const override {
    const auto q = inputs.count("q") ? inputs.find("q") : inputs.find("qkv");
    return withWorkingValues(
        q->second.dtype, [&](std::optional<DType> working) { return attentionReference(inputs, options, working); });
  }

  /// The specification's section 10: with `base` the same computation in the working type,
  /// f max |base - reference| + a for each element and 1.5 mean |base - reference| + a / 8 for their mean, where
  /// a = 2 u max |reference| + 1e-5, u = 2^-9 (bf16) or 2^-12 (f16), f = 2, with softcap or a score function 3; of e4m3
  /// f = 4, and 3 in place of 1.5.  lse: 1e-4 + 1e-5 |lse|, with softcap X 1e-3 X; with a score function also what its
  /// approximate code may lose (FunctionNumbers.h), of e4m3 what the products' 14 bits bring (AttentionReference.h).
  std::vector<double> allowed(std::string_view name, DType dtype, const HostTensors &inputs,
                              const HostTensors &reference, const OptionValues &options) const override {
    const HostTensor &wanted = reference.find(name)->second;
    const auto arguments = readOptions<AttentionArguments>("attention", options);
    if (!arguments.ok())
      return {};
    const double cap = static_cast<double>(arguments->softcap);
    const bool isCapped = cap > 0 || hasScore(options);
    if (name == "o") {
      const WorkingError base(wanted, dtype);
      return std::vector<double>(wanted.values.size(), (isEighth(inputs) ? 4
                                                        : isCapped       ? 3
                                                                         : 2) *
                                                               base.worst +
                                                           base.rest);
    }
    std::vector<double> limits;
    for (std::size_t i = 0; i < wanted.values.size(); ++i) {
      const double lse = wanted.values[i], ofProducts = isEighth(inputs) ? std::abs(wanted.rounded[i] - lse) : 0,
                   ofScores = wanted.besides.empty() ? 0 : wanted.besides[i];
      limits.push_back(std::isinf(lse) ? 0
                                       : (cap > 0 ? 1e-3 * cap : 1e-4) + 1e-5 * std::abs(lse) + ofProducts + ofScores);
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
  static bool isEighth(const HostTensors &inputs) {
    return std::ranges::any_of(inputs, [](const auto &i) { return i.second.dtype == DType::F8E4M3; });
  }
};

class AttentionSamples : public Samples {
public:
  /// Demo: a layer of Llama 3 8B.  Bench: 16,384 tokens in sequences of 8,192 and 2,048 columns in all heads, full and
  /// causal.  Check: each option somewhere.
  std::vector<Sample> calls(DType dtype, SampleUse use, bool gpu) const override {
    const auto unit = static_cast<std::uint64_t>(headDimUnit(dtype));
    const auto call = [&](std::uint64_t batch, std::uint64_t queries, std::uint64_t keys, std::uint64_t heads,
                          std::uint64_t keyHeads, std::uint64_t width, OptionValues options) {
      const std::uint64_t dim = (width + unit - 1) / unit * unit;
      return Sample{{{"q", {dtype, {batch, queries, heads, dim}}},
                     {"k", {dtype, {batch, keys, keyHeads, dim}}},
                     {"v", {dtype, {batch, keys, keyHeads, dim}}}},
                    std::move(options)};
    };
    const OptionValues causal = {{"causal", true}};
    if (use == SampleUse::Demo)
      return {call(1, gpu ? 8192 : 256, gpu ? 8192 : 256, 32, 8, 128, causal)};
    if (use == SampleUse::Bench) {
      if (!gpu)
        return {call(1, 256, 256, 2, 2, 64, {}), call(1, 256, 256, 2, 2, 64, causal)};
      return {call(2, 8192, 8192, 32, 32, 64, {}), call(2, 8192, 8192, 32, 32, 64, causal),
              call(2, 8192, 8192, 16, 16, 128, {}), call(2, 8192, 8192, 16, 16, 128, causal)};
    }
    Sample windowed =
        call(1, 40, 150, 3, 1, 40, {{"window_left", 30}, {"window_right", 4}, {"softcap", 20.0}, {"lse", true}});
    windowed.inputs["sink"] = {DType::F32, {3}};
    Sample sloped = call(1, 97, 97, 2, 2, 64, {{"causal", true}, {"align", "top_left"}});
    sloped.inputs["alibi"] = {DType::F32, {1, 2}};
    std::vector<Sample> all = {call(1, 1, 1, 1, 1, 8, {{"lse", true}}),
                               call(2, 70, 133, 4, 2, 64, {{"causal", true}, {"lse", true}}), windowed, sloped};
    all.push_back(call(2, 40, 70, 4, 2, 64, {{"causal", true}, {"lse", true}}));
    all.back().inputs["bias"] = {DType::F32, {2, 4, 40, 70}};
    all.push_back(call(2, 40, 70, 4, 2, 64, {{"lse", true}}));
    all.back().inputs["bias"] = {DType::BF16, {2, 1, 1, 70}};
    for (OptionValues &options : optionsToTry<AttentionArguments>()) {
      options["causal"] = options["lse"] = true;
      all.push_back(call(1, 37, 150, 2, 1, 64, std::move(options)));
    }
    if (dtype == DType::F8E4M3) {
      all.push_back(call(2, 70, 133, 4, 2, 64, causal));
      all.back().inputs["v_descale"] = {DType::F32, {2, 2}}; // those of q and k must not be below 0
    }
    return all;
  }
};

} // namespace

Family makeAttention() {
  return {std::make_unique<AttentionCallable>(), std::make_unique<AttentionReference>(),
          std::make_unique<AttentionSamples>()};
}

} // namespace kiln::kernels
