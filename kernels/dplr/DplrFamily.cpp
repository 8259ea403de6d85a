// The forward operations for commands and tests: dplr, rwkv7 and the rest of the family (Rule.h).  The reference is
// DplrReference.cpp.
#include "kernels/dplr/DplrCall.h"
#include "kernels/dplr/DplrHeads.h"
#include "kernels/dplr/DplrOperation.h"
#include "kernels/dplr/DplrSamples.h"
#include "kernels/support/Family.h"

namespace kiln::kernels {
namespace {

class ChunkCallable : public DplrForwardCallable {
public:
  using DplrForwardCallable::DplrForwardCallable;

  Planner bind(Jit &jit) const override {
    const DplrWords words{names.operation.data(), names.q.data(), names.g.data()};
    switch (names.rule) {
    case ChunkRule::Dplr:
      return names.isRwkv() ? bound<Rwkv7Arguments>(std::make_shared<Rwkv7Operation>(jit))
                            : bound<DplrArguments>(std::make_shared<DplrOperation>(jit, words));
    case ChunkRule::Delta:
      return bound<DeltaRuleArguments>(std::make_shared<DeltaRuleOperation>(jit, words));
    case ChunkRule::Linear:
      return bound<LinearAttentionArguments>(std::make_shared<LinearAttentionOperation>(jit, words));
    }
    return {};
  }

  double flops(const Call &call) const override {
    if (names.rule != ChunkRule::Dplr)
      return 0;
    const Tensor &q = call.tensors.find(names.q)->second, &v = call.tensors.find("v")->second;
    // As the specification counts chunks of 64: 8 C K + 2 C^2 + 2 C (K + V) + 8 K V + 4 C V of each token and head.
    const auto K = static_cast<double>(q.shape[3]), V = static_cast<double>(v.shape[3]), C = 64.0;
    return static_cast<double>(q.shape[0] * q.shape[1] * q.shape[2]) *
           (8 * C * K + 2 * C * C + 2 * C * (K + V) + 8 * K * V + 4 * C * V);
  }

  std::vector<FieldInfo> settings() const override {
    return fieldsOf(DplrLaunch{0}, DplrConfig{names.rule, names.gate});
  }
  language::Kernel record(DType element, const Settings &settings) const override {
    DplrConfig c;
    c.rule = names.rule, c.gate = names.gate;
    DplrLaunch which{0};
    if (Status s = applySettings(settings, which, c); !s.ok())
      return language::Kernel::failed(std::move(s));
    if (which.launch >= 2 && !c.segment)
      c.segment = 16;
    return which.launch == 3   ? dplrChains(element, ofWalkOfSegments(c))
           : which.launch == 2 ? dplrCompose(element, ofChain(c))
           : which.launch == 1 ? dplrOut(element, ofChain(c))
                               : dplrMaps(element, ofChunks(c));
  }

private:
  template <typename Arguments, typename Operation> Planner bound(std::shared_ptr<Operation> operation) const {
    return [this, operation = std::move(operation)](const Call &call, Plan &plan) -> Status {
      Arguments a;
      a.o = call.tensors.find("o")->second, a.finalState = optionalTensor(call, "final_state");
      a.saved = optionalTensor(call, "saved");
      KILN_TRY(fillInputs(call, names, a));
      return operation->describe(a, plan);
    };
  }
};

class ChunkSamples : public DplrSamples {
public:
  using DplrSamples::DplrSamples;

  std::vector<Sample> calls(DType dtype, SampleUse use, bool gpu) const override {
    const auto call = [&](std::uint64_t batch, std::uint64_t tokens, std::uint64_t heads, std::uint64_t dim,
                          std::uint64_t dimV, OptionValues options) {
      return Sample{inputTypes(dtype, batch, tokens, heads, dim, dimV), std::move(options)};
    };
    const OptionValues safe = safeOptions();
    if (use == SampleUse::Demo)
      return {call(1, gpu ? 4096 : 128, gpu ? 32 : 4, 64, 64, safe)};
    if (use == SampleUse::Bench) {
      if (!gpu)
        return {call(1, 256, 2, 64, 64, safe)};
      return {call(8, 4096, 32, 64, 64, safe), call(1, 32768, 32, 64, 64, safe), call(1, 4096, 2, 128, 128, safe),
              call(1, 8192, 96, 128, 128, safe)};
    }
    Sample states = call(2, 70, 2, 40, 24, {{"final_state", true}});
    states.inputs["initial_state"] = {DType::F32, {2, 2, 40, 24}};
    return {call(1, 1, 1, 16, 16, {{"final_state", true}}),
            call(2, 130, 1, 64, 64, safe),
            states,
            call(1, 100, 1, 32, 64, {{"chunk_size", 16}}),
            call(1, 100, 1, 16, 32, {{"chunk_size", 16}, {"segment_size", 2}}),
            call(1, 40, 1, 16, 32, {{"chunk_size", 16}, {"saved", true}})};
  }
};

Family chunkFamily(const DplrNames &names) {
  return {std::make_unique<ChunkCallable>(names), std::make_unique<DplrForwardReference>(names),
          std::make_unique<ChunkSamples>(names)};
}

} // namespace

Family makeDplr() {
  return chunkFamily({"dplr", "q", "g", "the DPLR delta rule: a state that decays, is corrected and read, by chunks"});
}
Family makeRwkv7() {
  return chunkFamily({"rwkv7", "r", "w", "RWKV7: the DPLR delta rule under its own names"});
}
Family makeIplr() {
  return chunkFamily(
      {"iplr", "q", "g", "the IPLR delta rule: DPLR whose state does not decay", ChunkRule::Dplr, GateKind::None});
}
Family makeKda() {
  return chunkFamily(
      {"kda", "q", "g", "the delta rule with a gate for each channel (KDA)", ChunkRule::Delta, GateKind::Channel});
}
Family makeGatedDeltaRule() {
  return chunkFamily(
      {"gated_delta_rule", "q", "g", "the delta rule with a gate for each head", ChunkRule::Delta, GateKind::Head});
}
Family makeDeltaRule() {
  return chunkFamily({"delta_rule", "q", "g", "the delta rule: a state that forgets what a key held", ChunkRule::Delta,
                      GateKind::None});
}
Family makeGla() {
  return chunkFamily(
      {"gla", "q", "g", "linear attention with a gate for each channel (GLA)", ChunkRule::Linear, GateKind::Channel});
}
Family makeSimpleGla() {
  return chunkFamily({"simple_gla", "q", "g", "linear attention with a gate for each head (the SSD of Mamba 2)",
                      ChunkRule::Linear, GateKind::Head});
}

} // namespace kiln::kernels
