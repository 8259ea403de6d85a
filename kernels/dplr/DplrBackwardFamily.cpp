// `dplr_backward` and `rwkv7_backward` for commands and tests.  The reference is DplrReference.cpp: the exact reverse of
// the recurrence, token by token.
#include "kernels/dplr/DplrBackwardOperation.h"
#include "kernels/dplr/DplrCall.h"
#include "kernels/support/Settings.h"

namespace kiln::kernels {
namespace {

class DplrBackwardFamily : public DplrFamilyBase {
public:
  using DplrFamilyBase::DplrFamilyBase;

  std::vector<TensorParameter> tensors() const override {
    std::vector<TensorParameter> out = inputParameters();
    out.push_back({"do", false, false, "B x T x H x V: the loss's gradient by o"});
    out.push_back({"dht", false, true, "N x H x K x V, f32 or as do: the loss's gradient by the last state"});
    for (const std::string_view of : {names.q, std::string_view("k"), std::string_view("v"), std::string_view("a"),
                                      std::string_view("b"), names.g})
      out.push_back({"d" + std::string(of), true, false, "as " + std::string(of)});
    out.push_back({"dh0", true, true, "N x H x K x V, f32: the gradient by the first state"});
    return out;
  }

  Result<TensorTypes> outputs(const TensorTypes &inputs, const Numbers &numbers) const override {
    KILN_ASSIGN(const Extents e, extentsOf(inputs));
    TensorTypes out;
    for (const std::string_view of : {names.q, std::string_view("k"), std::string_view("v"), std::string_view("a"),
                                      std::string_view("b"), names.g})
      out["d" + std::string(of)] = inputs.find(of)->second;
    if (numbers.count("dh0"))
      out["dh0"] = {DType::F32, {e.sequences, e.heads, e.dim, e.dimV}};
    return out;
  }

  Planner bind(Jit &jit) const override {
    return [this, operation = std::make_shared<DplrBackwardOperation>(jit, names.isRwkv())](const Call &call,
                                                                                            Plan &plan) -> Status {
      DplrBackwardArguments a;
      KILN_TRY(fillInputs(call, names, a));
      const auto out = [&](std::string_view of) { return call.tensors.find("d" + std::string(of))->second; };
      a.dO = call.tensors.find("do")->second, a.dFinal = optionalTensor(call, "dht");
      a.dq = out(names.q), a.dk = out("k"), a.dv = out("v"), a.da = out("a"), a.db = out("b"), a.dg = out(names.g);
      a.dInitial = optionalTensor(call, "dh0");
      return operation->describe(a, plan);
    };
  }

  Result<HostTensors> reference(const HostTensors &inputs, const Numbers &numbers) const override {
    const HostTensor &q = inputs.find(names.q)->second, &v = inputs.find("v")->second;
    const HostTensor &dO = inputs.find("do")->second;
    const auto cu = inputs.find("cu_seqlens"), last = inputs.find("dht");
    const std::uint64_t sequences = cu == inputs.end() ? q.shape[0] : cu->second.shape[0] - 1;
    const std::string dq = "d" + std::string(names.q), dg = "d" + std::string(names.g);
    TensorTypes types{{"dv", {DType::F64, v.shape}}};
    for (const std::string &name : {dq, dg, std::string("dk"), std::string("da"), std::string("db")})
      types[name] = {DType::F64, q.shape};
    if (numbers.count("dh0"))
      types["dh0"] = {DType::F64, {sequences, q.shape[2], q.shape[3], v.shape[3]}};
    return everyHead(inputs, numbers, types, [&](const PlacedHead &at, const Put &put) {
      std::vector<double> dLast;
      const std::uint64_t size = at.head.dim * at.head.dimV;
      if (last != inputs.end()) {
        const auto from = last->second.values.begin() + static_cast<std::ptrdiff_t>(at.state);
        dLast.assign(from, from + static_cast<std::ptrdiff_t>(size));
      }
      const DplrHeadGradients d = dplrBackward(at.head, rowsOf(dO, at), dLast);
      const auto rows = [&](std::string_view name, const Shape &shape, const std::vector<double> &values) {
        for (std::uint64_t i = 0; i < at.head.tokens; ++i)
          for (std::uint64_t j = 0; j < shape[3]; ++j)
            put(name, rowAt(shape, at, i) + j, values[i * shape[3] + j]);
      };
      rows(dq, q.shape, d.q), rows("dk", q.shape, d.k), rows("dv", v.shape, d.v), rows("da", q.shape, d.a);
      rows("db", q.shape, d.b), rows(dg, q.shape, d.g);
      for (std::uint64_t i = 0; types.count("dh0") && i < size; ++i)
        put("dh0", at.state + i, d.first[i]);
    });
  }

  std::vector<Sample> samples(DType dtype, SampleUse use, bool gpu) const override {
    const auto call = [&](std::uint64_t batch, std::uint64_t tokens, std::uint64_t heads, std::uint64_t dim,
                          std::uint64_t dimV, Numbers numbers) {
      Sample out{inputTypes(dtype, batch, tokens, heads, dim, dimV), std::move(numbers)};
      out.inputs["do"] = out.inputs["v"];
      return out;
    };
    const Numbers safe = safeNumbers();
    if (use == SampleUse::Demo)
      return {call(1, gpu ? 4096 : 128, gpu ? 32 : 2, 64, 64, safe)};
    if (use == SampleUse::Bench) {
      if (!gpu)
        return {call(1, 256, 2, 64, 64, safe)};
      return {call(8, 4096, 32, 64, 64, safe), call(1, 32768, 32, 64, 64, safe), call(1, 4096, 2, 128, 128, safe),
              call(1, 8192, 96, 128, 128, safe)};
    }
    Sample states = call(2, 70, 2, 40, 24, {{"dh0", 1}});
    states.inputs["initial_state"] = states.inputs["dht"] = {DType::F32, {2, 2, 40, 24}};
    return {call(1, 1, 1, 16, 16, {{"dh0", 1}}), call(2, 130, 1, 64, 64, safe), states,
            call(1, 100, 1, 32, 64, {{"chunk_size", 16}})};
  }

  language::Kernel record(language::ElementType element, const Settings &settings) const override {
    DplrConfig c;
    if (Status s = applySettings(settings, {{"chunk", &c.chunk},
                                            {"dim", &c.dim},
                                            {"dimV", &c.dimV},
                                            {"warps", &c.warps},
                                            {"bounded", &c.bounded},
                                            {"packed", &c.packed}});
        !s.ok())
      return language::Kernel::failed(std::move(s));
    return dplrGrads(element, c);
  }
};

} // namespace

std::unique_ptr<Family> makeDplrBackward() {
  return std::make_unique<DplrBackwardFamily>(
      DplrNames{"dplr_backward", "q", "g", "gradients of the DPLR delta rule by all its inputs"});
}
std::unique_ptr<Family> makeRwkv7Backward() {
  return std::make_unique<DplrBackwardFamily>(
      DplrNames{"rwkv7_backward", "r", "w", "gradients of RWKV7 by all its inputs"});
}

} // namespace kiln::kernels
