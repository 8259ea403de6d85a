// `attention_backward` for commands and tests.  The reference is AttentionBackwardReference.cpp.
#include "kernels/attention/AttentionBackwardOperation.h"
#include "kernels/attention/AttentionBackwardReference.h"
#include "kernels/attention/AttentionCall.h"
#include "kernels/attention/AttentionTolerance.h"
#include "kernels/attention/CallFunctions.h"
#include "kernels/support/Family.h"

#include <algorithm>
#include <iterator>

namespace kiln::kernels {
namespace {

/// Names of layouts with a tensor each for q, k and v: dq, dk and dv lie as these.
std::span<const std::string_view> layoutsOfThree() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const AttentionLayout &layout : attentionLayouts())
      if (layout.tensors.size() == 3)
        out.emplace_back(layout.name);
    return out;
  }();
  return names;
}

struct BackwardWords {
  std::string_view layout = {};

  template <typename Self, typename Visitor> static void options(Self &w, Visitor &&v) {
    v(CallOption{"layout", "how q, k and v lie in memory, and dq, dk and dv as they", {}, nullptr, layoutsOfThree()},
      w.layout);
  }
};

struct BackwardLaunch {
  AttentionBackwardLaunch launch = AttentionBackwardLaunch::Keys;
  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("launch", &BackwardLaunch::launch, anyValue, "which kernel of the call");
  }
};

class BackwardCallable : public Callable {
public:
  std::string_view name() const override { return "attention_backward"; }
  std::string_view summary() const override { return "gradients of attention by q, k, v, the bias and the sink"; }
  std::vector<DType> dtypes() const override { return {DType::BF16, DType::F16}; }

  std::vector<TensorParameter> tensors() const override {
    std::vector<TensorParameter> out = {
        {"q", false, false, "B x Sq x H x D, f16 or bf16; other layouts by --layout"},
        {"k", false, false, "B x Sk x Hk x D"},
        {"v", false, false, "B x Sk x Hk x Dv"},
        {"o", false, false, "what attention gave for these inputs", {}, {}, "attention"},
        {"lse", false, false, "f32: its lse", DType::F32, {}, "attention"},
        {"do", false, false, "as o: the loss's gradient by o"},
        {"dlse", false, true, "as lse: the loss's gradient by lse", DType::F32}};
    std::ranges::move(optionalParameters(), std::back_inserter(out));
    out.insert(out.end(), {{"dq", true, false, "as q"},
                           {"dk", true, false, "as k"},
                           {"dv", true, false, "as v"},
                           {"dsink", true, true, "H, f32: the gradient by the sink"},
                           {"dbias", true, true, "as bias: the gradient by it"}});
    return out;
  }

  std::vector<OptionInfo> options() const override {
    return optionsOf<BackwardWords, FunctionWords, AttentionBackwardArguments>();
  }

  std::optional<DType> inputType(const TensorParameter &parameter, std::optional<DType> called,
                                 const OptionValues &options) const override {
    return inputTypeOfCall(parameter, called);
  }

  Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &options) const override {
    KILN_ASSIGN(const BackwardWords words, readOptions<BackwardWords>(name(), options));
    (void)words; // a layout that is not there is refused
    KILN_TRY(checkFunctions(inputs, options));
    KILN_ASSIGN(const AttentionArguments a, argumentsOfCall(tensorsOfTypes(inputs), options));
    TensorTypes out;
    for (const auto &[gradient, of, partial] :
         {std::tuple("dq", "q", a.cuQ || a.usedQ), std::tuple("dk", "k", a.cuK || a.usedK),
          std::tuple("dv", "v", a.cuK || a.usedK)}) {
      TensorType &type = out[gradient] = inputs.find(of)->second;
      type.rest = {};
      if (partial) // rows that no sequence uses are left alone
        type.rest = 0;
    }
    if (isSet(options, "dsink"))
      out["dsink"] = {DType::F32, {static_cast<std::uint64_t>(extentsOf(a).heads)}};
    if (isSet(options, "dbias")) { // without a bias the operation refuses it
      const auto bias = inputs.find("bias");
      out["dbias"] = bias == inputs.end() ? TensorType{DType::F32, {1, 1, 1, 1}} : bias->second;
    }
    return out;
  }

  Status complete(const Arrays &inputs, OptionValues &options) const override { return completeCall(inputs, options); }

  Result<Arrays> tables(const Arrays &inputs, const OptionValues &options) const override {
    return blockTables(inputs, options);
  }

  Planner bind(Jit &jit) const override {
    return [operation = std::make_shared<AttentionBackwardOperation>(jit),
            functions = std::make_shared<KnownFunctions>()](const Call &call, Plan &plan) -> Status {
      AttentionBackwardArguments a;
      KILN_TRY(readOptions("attention_backward", call.options, a));
      KILN_ASSIGN(const AttentionLayout *const layout, readCall(call.tensors, call.options, a.of));
      KILN_ASSIGN(a.of.functions, functions->of(call.tensors, call.options));
      const auto optional = [&](std::string_view name) {
        const auto found = call.tensors.find(name);
        return found == call.tensors.end() ? std::nullopt : std::optional(found->second);
      };
      const AttentionViews views{a.of.q, a.of.k, a.of.v};
      KILN_ASSIGN(a.of.o, attentionOutputView(*layout, call.tensors.at("o"), views));
      KILN_ASSIGN(a.dO, attentionOutputView(*layout, call.tensors.at("do"), views, "do"));
      const Tensor gradients[] = {call.tensors.at("dq"), call.tensors.at("dk"), call.tensors.at("dv")};
      KILN_ASSIGN(const AttentionViews out, attentionViews(*layout, gradients));
      a.dq = out.q, a.dk = out.k, a.dv = out.v;
      a.of.lse = optional("lse"), a.dlse = optional("dlse"), a.dsink = optional("dsink");
      a.dbias = optional("dbias");
      a.maxKeys = valueOr<std::int64_t>(call.options, maxKeysValue, a.of.cuK ? extentsOf(a.of).rowsK : 0);
      return operation->describe(a, plan);
    };
  }

  std::string sizeText(const TensorTypes &inputs, const OptionValues &options) const override {
    return sizeTextOfCall(inputs, options);
  }

  /// 2 pairs (3 D + 2 Dv) of each head: five products.
  double flops(const Call &call) const override {
    const auto a = argumentsOfCall(call.tensors, call.options);
    if (!a.ok())
      return 0;
    const AttentionExtents e = extentsOf(*a);
    return 2 * valueOr(call.options, pairsValue, 0.0) * static_cast<double>(e.heads) *
           static_cast<double>(3 * e.dim + 2 * e.dimV);
  }

  std::vector<FieldInfo> settings() const override {
    return fieldsOf(BackwardLaunch(), AttentionBackwardConfig(), FunctionSettings());
  }
  language::Kernel record(DType element, const Settings &settings) const override {
    AttentionBackwardConfig c;
    BackwardLaunch which;
    FunctionSettings functions;
    Status s = applySettings(settings, which, c, functions);
    if (s.ok())
      s = functions.apply(c.hooks);
    if (!s.ok())
      return language::Kernel::failed(std::move(s));
    return attentionBackward(which.launch, element, ofLaunch(which.launch, c));
  }
};

class BackwardReference : public Reference {
public:
  Result<HostTensors> compute(const HostTensors &inputs, const OptionValues &options) const override {
    return withWorkingValues(inputs.find("q")->second.dtype, [&](std::optional<DType> working) {
      return attentionBackwardReference(inputs, options, working);
    });
  }

  /// The specification's section 10, as of `attention`: f = 2; with softcap or a score function 3, and 3e-4
  /// besides.  u is that of q's
  /// type, of dsink too.
  std::vector<double> allowed(std::string_view name, DType dtype, const HostTensors &inputs,
                              const HostTensors &reference, const OptionValues &options) const override {
    const HostTensor &wanted = reference.find(name)->second;
    const auto arguments = readOptions<AttentionBackwardArguments>("attention_backward", options);
    if (!arguments.ok())
      return {};
    const bool hasCap = arguments->of.softcap > 0 || hasScore(options);
    const WorkingError base(wanted, inputs.find("q")->second.dtype);
    return std::vector<double>(wanted.values.size(), (hasCap ? 3 : 2) * base.worst + base.rest + (hasCap ? 3e-4 : 0));
  }
  std::optional<double> allowedMean(std::string_view name, DType dtype, const HostTensors &inputs,
                                    const HostTensor &reference) const override {
    const WorkingError base(reference, inputs.find("q")->second.dtype);
    return 1.5 * base.mean + base.rest / 8;
  }
};

class BackwardSamples : public Samples {
public:
  /// As of `attention`, with o and lse from there.
  std::vector<Sample> calls(DType dtype, SampleUse use, bool gpu) const override {
    const auto call = [&](std::uint64_t batch, std::uint64_t queries, std::uint64_t keys, std::uint64_t heads,
                          std::uint64_t keyHeads, std::uint64_t dim, std::uint64_t dimV, OptionValues options) {
      return Sample{{{"q", {dtype, {batch, queries, heads, dim}}},
                     {"k", {dtype, {batch, keys, keyHeads, dim}}},
                     {"v", {dtype, {batch, keys, keyHeads, dimV}}},
                     {"do", {dtype, {batch, queries, heads, dimV}}}},
                    std::move(options),
                    {"o", "lse"}};
    };
    const OptionValues causal = {{"causal", true}};
    if (use == SampleUse::Demo)
      return {call(1, gpu ? 8192 : 256, gpu ? 8192 : 256, gpu ? 32 : 8, gpu ? 8 : 2, 128, 128, causal)};
    if (use == SampleUse::Bench) {
      if (!gpu)
        return {call(1, 256, 256, 2, 2, 64, 64, {}), call(1, 256, 256, 2, 2, 64, 64, causal)};
      return {call(2, 8192, 8192, 32, 32, 64, 64, {}), call(2, 8192, 8192, 32, 32, 64, 64, causal),
              call(2, 8192, 8192, 16, 16, 128, 128, {}), call(2, 8192, 8192, 16, 16, 128, 128, causal)};
    }
    Sample windowed =
        call(1, 40, 150, 3, 1, 40, 24, {{"window_left", 30}, {"window_right", 4}, {"softcap", 20.0}, {"dsink", true}});
    windowed.inputs["sink"] = {DType::F32, {3}};
    Sample sloped = call(1, 97, 97, 2, 2, 64, 64, {{"causal", true}, {"align", "top_left"}});
    sloped.inputs["alibi"] = {DType::F32, {1, 2}};
    sloped.inputs["dlse"] = {DType::F32, {1, 2, 97}};
    std::vector<Sample> all = {call(1, 1, 1, 1, 1, 8, 8, {}), call(2, 70, 133, 4, 2, 64, 64, causal), windowed, sloped};
    all.push_back(call(2, 40, 70, 4, 2, 64, 64, {{"causal", true}, {"dbias", true}}));
    all.back().inputs["bias"] = {dtype, {1, 4, 40, 70}};
    all.push_back(call(2, 40, 70, 4, 2, 64, 64, {{"dbias", true}}));
    all.back().inputs["bias"] = {DType::F32, {2, 1, 1, 70}};
    for (OptionValues &options : optionsToTry<AttentionBackwardArguments>()) {
      options["causal"] = true;
      all.push_back(call(1, 37, 150, 2, 1, 64, 64, std::move(options)));
    }
    return all;
  }
};

} // namespace

Family makeAttentionBackward() {
  return {std::make_unique<BackwardCallable>(), std::make_unique<BackwardReference>(),
          std::make_unique<BackwardSamples>()};
}

} // namespace kiln::kernels
