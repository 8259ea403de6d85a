// The backward operations for commands and tests.  The reference is DplrReference.cpp: the exact reverse of the
// recurrence, token by token.
#include "kernels/dplr/DplrBackwardOperation.h"
#include "kernels/dplr/DplrCall.h"
#include "kernels/dplr/DplrHeads.h"
#include "kernels/dplr/DplrSamples.h"
#include "kernels/support/Family.h"

#include <cmath>
#include <map>

namespace kiln::kernels {
namespace {

/// Inputs that have gradients, but for the state.
std::vector<std::string> differentiated(const DplrNames &names) {
  std::vector<std::string> out{std::string(names.q), "k", "v"};
  if (names.rule == ChunkRule::Dplr)
    out.insert(out.end(), {"a", "b"});
  if (names.rule == ChunkRule::Delta)
    out.push_back("beta");
  if (names.gate != GateKind::None)
    out.emplace_back(names.g);
  return out;
}

class BackwardCallable : public DplrCallable {
public:
  using DplrCallable::DplrCallable;

  std::vector<TensorParameter> tensors() const override {
    std::vector<TensorParameter> out = inputParameters();
    out.push_back({"do", false, false, "B x T x H x V: the loss's gradient by o"});
    out.push_back({"saved", false, true, "u8: what " + maker() + " saved of the same inputs", DType::U8, {}, maker()});
    out.push_back({"dht", false, true, "N x H x K x V, f32 or as do: the loss's gradient by the last state"});
    for (const std::string &of : differentiated(names))
      out.push_back({"d" + of, true, false, "as " + of});
    out.push_back({"dh0", true, true, "N x H x K x V, f32: the gradient by the first state"});
    return out;
  }

  Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &options) const override {
    KILN_ASSIGN(const Extents e, extentsOf(inputs));
    TensorTypes out;
    for (const std::string &of : differentiated(names))
      out["d" + of] = inputs.find(of)->second;
    if (isSet(options, "dh0"))
      out["dh0"] = {DType::F32, {e.sequences, e.heads, e.dim, e.dimV}};
    return out;
  }

  Planner bind(Jit &jit) const override {
    const DplrWords words{names.operation.data(), names.q.data(), names.g.data()};
    switch (names.rule) {
    case ChunkRule::Dplr:
      return names.isRwkv() ? bound<DplrBackwardArguments>(std::make_shared<Rwkv7BackwardOperation>(jit))
                            : bound<DplrBackwardArguments>(std::make_shared<DplrBackwardOperation>(jit, words));
    case ChunkRule::Delta:
      return bound<DeltaRuleBackwardArguments>(std::make_shared<DeltaRuleBackwardOperation>(jit, words));
    case ChunkRule::Linear:
      return bound<LinearAttentionBackwardArguments>(std::make_shared<LinearAttentionBackwardOperation>(jit, words));
    }
    return {};
  }

  std::vector<FieldInfo> settings() const override {
    return fieldsOf(DplrLaunch{3}, DplrConfig{names.rule, names.gate});
  }
  language::Kernel record(DType element, const Settings &settings) const override {
    DplrConfig c;
    c.rule = names.rule, c.gate = names.gate;
    DplrLaunch which{3};
    if (Status s = applySettings(settings, which, c); !s.ok())
      return language::Kernel::failed(std::move(s));
    c.gradients = true;
    if (which.launch >= 4 && !c.segment)
      c.segment = 16;
    return which.launch == 0   ? dplrMapsBackward(element, ofChunks(c))
           : which.launch == 1 ? dplrChains(element, ofChain(c))
           : which.launch == 2 ? dplrValueGrads(element, ofChunks(c))
           : which.launch == 3 ? dplrGrads(element, ofChunks(c))
           : which.launch == 4 ? dplrCompose(element, ofChain(c))
                               : dplrChains(element, ofWalkOfSegments(c));
  }

private:
  /// The family of the forward direction.
  std::string maker() const {
    std::string name(names.operation);
    name.resize(name.size() - std::string_view("_backward").size());
    return name;
  }

  template <typename Arguments, typename Operation> Planner bound(std::shared_ptr<Operation> operation) const {
    return [this, operation = std::move(operation)](const Call &call, Plan &plan) -> Status {
      Arguments a;
      KILN_TRY(fillInputs(call, names, a));
      const auto out = [&](std::string_view of) { return call.tensors.find("d" + std::string(of))->second; };
      a.dO = call.tensors.find("do")->second, a.dFinal = optionalTensor(call, "dht");
      a.saved = optionalTensor(call, "saved");
      a.dq = out(names.q), a.dk = out("k"), a.dv = out("v");
      if constexpr (requires { a.da; })
        a.da = out("a"), a.db = out("b");
      if constexpr (requires { a.dBeta; })
        a.dBeta = out("beta");
      if (names.gate != GateKind::None)
        a.dg = out(names.g);
      a.dInitial = optionalTensor(call, "dh0");
      return operation->describe(a, plan);
    };
  }
};

class BackwardReference : public DplrHeads {
public:
  using DplrHeads::DplrHeads;

  Result<HostTensors> compute(const HostTensors &inputs, const OptionValues &options) const override {
    const Shape &q = inputs.find(names.q)->second.shape, &v = inputs.find("v")->second.shape;
    const HostTensor &dO = inputs.find("do")->second;
    const auto cu = inputs.find("cu_seqlens"), last = inputs.find("dht");
    const std::uint64_t sequences = cu == inputs.end() ? q[0] : cu->second.shape[0] - 1;
    TensorTypes types;
    for (const std::string &of : differentiated(names))
      types["d" + of] = {DType::F64, inputs.find(of)->second.shape};
    if (isSet(options, "dh0"))
      types["dh0"] = {DType::F64, {sequences, q[2], q[3], v[3]}};
    return everyHead(inputs, options, types, [&](const PlacedHead &at, const Put &put) {
      std::vector<double> dLast;
      const std::uint64_t size = at.head.dim * at.head.dimV;
      if (last != inputs.end()) {
        const auto from = last->second.values.begin() + static_cast<std::ptrdiff_t>(at.state);
        dLast.assign(from, from + static_cast<std::ptrdiff_t>(size));
      }
      const auto found = byName(at, dplrBackward(at.head, rowsOf(dO, at), dLast));
      for (const auto &[name, type] : types) {
        const std::vector<double> &values = found.at(name);
        if (name == "dh0") {
          for (std::uint64_t i = 0; i < size; ++i)
            put("dh0", at.state + i, values[i]);
          continue;
        }
        const std::uint64_t columns = type.shape.size() == 4 ? type.shape[3] : 1;
        for (std::uint64_t i = 0; i < at.head.tokens * columns; ++i)
          put(name, rowAt(type.shape, at, i / columns) + i % columns, values[i]);
      }
    });
  }

private:
  /// Gradients by what the rule was given, of one head, from those of the general rule.
  std::map<std::string, std::vector<double>> byName(const PlacedHead &at, const DplrHeadGradients &d) const {
    const DplrHead &head = at.head;
    std::vector<double> k = d.k, g = d.g, beta(at.beta.size());
    for (std::uint64_t i = 0; names.rule == ChunkRule::Delta && i < k.size(); ++i) {
      const std::uint64_t t = i / head.dim;
      const double written = d.k[i] + d.b[i]; // both are beta k
      beta[t] += at.key[i] * written;
      k[i] = at.beta[t] * written - std::exp(head.g[i]) * d.a[i];
      g[i] += head.a[i] * d.a[i]; // a = -k e^g
    }
    if (names.gate == GateKind::Head) {
      std::vector<double> sums(head.tokens);
      for (std::uint64_t i = 0; i < g.size(); ++i)
        sums[i / head.dim] += g[i];
      g = std::move(sums);
    }
    return {{"d" + std::string(names.q), d.q}, {"dk", k},       {"dv", d.v},     {"da", d.a}, {"db", d.b},
            {"d" + std::string(names.g), g},   {"dbeta", beta}, {"dh0", d.first}};
  }
};

class BackwardSamples : public DplrSamples {
public:
  using DplrSamples::DplrSamples;

  std::vector<Sample> calls(DType dtype, SampleUse use, bool gpu) const override {
    const auto call = [&](std::uint64_t batch, std::uint64_t tokens, std::uint64_t heads, std::uint64_t dim,
                          std::uint64_t dimV, OptionValues options) {
      Sample out{inputTypes(dtype, batch, tokens, heads, dim, dimV), std::move(options)};
      out.inputs["do"] = out.inputs["v"];
      return out;
    };
    const OptionValues safe = safeOptions();
    if (use == SampleUse::Demo)
      return {call(1, gpu ? 4096 : 128, gpu ? 32 : 2, 64, 64, safe)};
    if (use == SampleUse::Bench) {
      if (!gpu)
        return {call(1, 256, 2, 64, 64, safe)};
      return {call(8, 4096, 32, 64, 64, safe), call(1, 32768, 32, 64, 64, safe), call(1, 4096, 2, 128, 128, safe),
              call(1, 8192, 96, 128, 128, safe)};
    }
    Sample states = call(2, 70, 2, 40, 24, {{"dh0", true}});
    states.inputs["initial_state"] = states.inputs["dht"] = {DType::F32, {2, 2, 40, 24}};
    Sample saved = call(1, 40, 1, 16, 32, {{"chunk_size", 16}});
    saved.made = {"saved"};
    return {call(1, 1, 1, 16, 16, {{"dh0", true}}),
            call(2, 130, 1, 64, 64, safe),
            states,
            call(1, 100, 1, 32, 64, {{"chunk_size", 16}}),
            call(1, 100, 1, 16, 32, {{"chunk_size", 16}, {"segment_size", 2}}),
            saved};
  }
};

Family backwardFamily(const DplrNames &names) {
  return {std::make_unique<BackwardCallable>(names), std::make_unique<BackwardReference>(names),
          std::make_unique<BackwardSamples>(names)};
}

} // namespace

Family makeDplrBackward() {
  return backwardFamily({"dplr_backward", "q", "g", "gradients of the DPLR delta rule by all its inputs"});
}
Family makeRwkv7Backward() {
  return backwardFamily({"rwkv7_backward", "r", "w", "gradients of RWKV7 by all its inputs"});
}
Family makeIplrBackward() {
  return backwardFamily({"iplr_backward", "q", "g", "gradients of the IPLR delta rule by all its inputs",
                         ChunkRule::Dplr, GateKind::None});
}
Family makeKdaBackward() {
  return backwardFamily({"kda_backward", "q", "g", "gradients of the delta rule with a gate for each channel",
                         ChunkRule::Delta, GateKind::Channel});
}
Family makeGatedDeltaRuleBackward() {
  return backwardFamily({"gated_delta_rule_backward", "q", "g", "gradients of the delta rule with a gate for each head",
                         ChunkRule::Delta, GateKind::Head});
}
Family makeDeltaRuleBackward() {
  return backwardFamily({"delta_rule_backward", "q", "g", "gradients of the delta rule by all its inputs",
                         ChunkRule::Delta, GateKind::None});
}
Family makeGlaBackward() {
  return backwardFamily({"gla_backward", "q", "g", "gradients of linear attention with a gate for each channel",
                         ChunkRule::Linear, GateKind::Channel});
}
Family makeSimpleGlaBackward() {
  return backwardFamily({"simple_gla_backward", "q", "g", "gradients of linear attention with a gate for each head",
                         ChunkRule::Linear, GateKind::Head});
}

} // namespace kiln::kernels
