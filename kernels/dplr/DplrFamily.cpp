// `dplr` and `rwkv7` for commands and tests: parameters, inputs, tolerance.  The reference is DplrReference.cpp.
#include "kernels/dplr/DplrOperation.h"
#include "kernels/dplr/DplrReference.h"
#include "kernels/support/Runner.h"
#include "kernels/support/Sampling.h"
#include "kernels/support/Settings.h"
#include "support/Text.h"

#include <cmath>
#include <random>

namespace kiln::kernels {
namespace {

/// What the two operations call their arguments.
struct DplrNames {
  std::string_view operation, q, g, summary;
};

/// The extents of a call, from the types of its tensors.
struct DplrExtents {
  std::uint64_t batch = 0, tokens = 0, heads = 0, dim = 0, dimV = 0, sequences = 0;
};

/// More multiplications than this in a reference and only some of the heads are computed.
constexpr double longReference = 2e9;

class DplrFamily : public Family {
public:
  explicit DplrFamily(DplrNames names) : names(names) {}
  std::string_view name() const override { return names.operation; }
  std::string_view summary() const override { return names.summary; }
  std::vector<DType> dtypes() const override { return {DType::Bf16, DType::F16}; }

  std::vector<TensorParameter> tensors() const override {
    return {{std::string(names.q), false, false, "B x T x H x K, f16 or bf16"},
            {"k", false, false, "B x T x H x K"},
            {"v", false, false, "B x T x H x V"},
            {"a", false, false, "B x T x H x K: reads the state before it decays"},
            {"b", false, false, "B x T x H x K: where what was read is added"},
            {std::string(names.g), false, false, "B x T x H x K, f32 or as " + std::string(names.q) +
                                                     ": natural logarithms of decays, at most 0"},
            {"initial_state", false, true, "N x H x K x V, f32, f16 or bf16"},
            {"cu_seqlens", false, true, "N + 1, int32 or int64: where each sequence starts; B is 1"},
            {"o", true, false, "B x T x H x V"},
            {"final_state", true, true, "N x H x K x V, f32"}};
  }
  std::vector<NumberParameter> numbers() const override {
    const bool isRwkv = names.operation == "rwkv7";
    return {{"scale", {}, isRwkv ? "of the outputs; default 1" : "of the outputs; default 1 / sqrt(K)"},
            {"chunk_size", 0, "tokens of a chunk: 16, 32, 64; 0: chosen"},
            {"lower_bound", {}, "no log decay is below this"},
            {"safe_gate", {}, "no log decay is below -5", {}, true}};
  }
  /// Gates and states keep the type of their files.
  std::optional<DType> inputType(const TensorParameter &parameter, std::optional<DType> called,
                                 const Numbers &) const override {
    const bool keeps = parameter.name == names.g || parameter.name == "initial_state" || parameter.name == "cu_seqlens";
    return keeps ? std::nullopt : called;
  }

  Result<TensorTypes> outputs(const TensorTypes &inputs, const Numbers &numbers) const override {
    KILN_ASSIGN(const DplrExtents e, extentsOf(inputs));
    TensorTypes out{{"o", {inputs.find(names.q)->second.dtype, {e.batch, e.tokens, e.heads, e.dimV}}}};
    if (numbers.count("final_state"))
      out["final_state"] = {DType::F32, {e.sequences, e.heads, e.dim, e.dimV}};
    return out;
  }

  Status complete(const Arrays &inputs, Numbers &) const override {
    const auto cu = inputs.find("cu_seqlens");
    if (cu == inputs.end())
      return {};
    const std::vector<double> offsets = toHost(cu->second).values;
    const auto tokens = static_cast<double>(inputs.find(names.q)->second.shape[1]);
    const auto wrong = [&](std::size_t at, const std::string &what) {
      return Status::invalid(format("%s: cu_seqlens[%zu] = %.0f: ", std::string(names.operation).c_str(), at,
                                    at < offsets.size() ? offsets[at] : 0.0) +
                                 what,
                             "give offsets that begin at 0, never fall, and end at T");
    };
    if (offsets.empty() || offsets.front() != 0)
      return wrong(0, "it must be 0");
    for (std::size_t i = 1; i < offsets.size(); ++i)
      if (offsets[i] < offsets[i - 1])
        return wrong(i, format("below the one before it, %.0f", offsets[i - 1]));
    if (offsets.back() != tokens)
      return wrong(offsets.size() - 1, format("it must be T, %.0f", tokens));
    return {};
  }

  Planner bind(Jit &jit) const override {
    if (names.operation == "rwkv7")
      return [this, operation = std::make_shared<Rwkv7Operation>(jit)](const Call &call, Plan &plan) -> Status {
        KILN_ASSIGN(const DplrArguments a, argumentsOf(call));
        return operation->describe({a.q, a.g, a.k, a.v, a.a, a.b, a.o, a.initialState, a.finalState, a.cuSeqlens,
                                    a.scale, a.safeGate, a.lowerBound, a.chunkSize},
                                   plan);
      };
    return [this, operation = std::make_shared<DplrOperation>(jit)](const Call &call, Plan &plan) -> Status {
      KILN_ASSIGN(const DplrArguments a, argumentsOf(call));
      return operation->describe(a, plan);
    };
  }

  Result<HostTensors> reference(const HostTensors &inputs, const Numbers &numbers) const override {
    const HostTensor &q = inputs.find(names.q)->second, &v = inputs.find("v")->second;
    const std::uint64_t batch = q.shape[0], tokens = q.shape[1], heads = q.shape[2], dim = q.shape[3],
                        dimV = v.shape[3];
    const auto cu = inputs.find("cu_seqlens"), first = inputs.find("initial_state");
    const std::uint64_t sequences = cu == inputs.end() ? batch : cu->second.shape[0] - 1;
    HostTensor o{{batch, tokens, heads, dimV}, {}}, last{{sequences, heads, dim, dimV}, {}};
    const double all = 4.0 * static_cast<double>(batch * tokens * heads * dim * dimV);
    const std::uint64_t every = all <= longReference ? 1 : static_cast<std::uint64_t>(all / longReference) + 1;
    if (every == 1)
      o.values.resize(batch * tokens * heads * dimV), last.values.resize(sequences * heads * dim * dimV);
    for (std::uint64_t n = 0; n < sequences; ++n)
      for (std::uint64_t h = 0; h < heads; ++h) {
        if ((n * heads + h) % every)
          continue;
        const std::uint64_t b = cu == inputs.end() ? n : 0;
        const auto begin = cu == inputs.end() ? 0 : static_cast<std::uint64_t>(cu->second.values[n]);
        const auto end = cu == inputs.end() ? tokens : static_cast<std::uint64_t>(cu->second.values[n + 1]);
        const auto rows = [&](std::string_view name) {
          const HostTensor &t = inputs.find(name)->second;
          const std::uint64_t columns = t.shape[3];
          std::vector<double> out;
          for (std::uint64_t i = begin; i < end; ++i) {
            const auto from = t.values.begin() + static_cast<std::ptrdiff_t>(((b * tokens + i) * heads + h) * columns);
            out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(columns));
          }
          return out;
        };
        DplrHead head{end - begin, dim, dimV, scaleOf(numbers, dim), rows(names.q), rows("k"), rows("v"), rows("a"),
                      rows("b"),   rows(names.g), {}};
        const std::uint64_t state = (n * heads + h) * dim * dimV;
        if (first != inputs.end()) {
          const auto from = first->second.values.begin() + static_cast<std::ptrdiff_t>(state);
          head.first.assign(from, from + static_cast<std::ptrdiff_t>(dim * dimV));
        }
        const DplrHeadResult result = dplrForward(head);
        const auto put = [&](HostTensor &to, std::uint64_t at, double value) {
          if (every == 1) {
            to.values[at] = value;
            return;
          }
          to.sample.push_back(at);
          to.values.push_back(value);
        };
        for (std::uint64_t i = begin; i < end; ++i)
          for (std::uint64_t j = 0; j < dimV; ++j)
            put(o, ((b * tokens + i) * heads + h) * dimV + j, result.o[(i - begin) * dimV + j]);
        for (std::uint64_t i = 0; i < dim * dimV; ++i)
          put(last, state + i, result.last[i]);
      }
    HostTensors out{{"o", std::move(o)}};
    if (numbers.count("final_state"))
      out["final_state"] = std::move(last);
    return out;
  }

  /// The specification's metric is of whole tensors (S5): see allowedRatio.  An element by itself is wrong if it is off by
  /// a quarter of the tensor's root mean square.
  std::vector<double> allowed(std::string_view name, DType, const HostTensors &, const HostTensors &reference,
                              const Numbers &) const override {
    const HostTensor &wanted = reference.find(name)->second;
    double squares = 0;
    for (const double x : wanted.values)
      squares += x * x;
    const double each = wanted.values.empty() ? 0 : std::sqrt(squares / static_cast<double>(wanted.values.size())) / 4;
    return std::vector<double>(wanted.values.size(), each + 1e-6);
  }
  std::optional<double> allowedRatio(std::string_view name) const override { return name == "o" ? 0.007 : 0.008; }

  /// As the specification's tests: q, k, v normal; a of length 1, b its opposite; g = logsigmoid of normal numbers, of
  /// rwkv7 -exp(-1/2) sigmoid.
  Array input(std::string_view name, const TensorType &type, std::uint64_t seed) const override {
    if (name == "cu_seqlens")
      return Family::input(name, type, seed);
    std::mt19937_64 random(seed * 31 + (name == "a" || name == "b" ? 1 : std::hash<std::string_view>()(name)));
    std::normal_distribution<double> normal(0, 1);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::vector<float> values(type.elements());
    const bool isGate = name == names.g, isVector = name == "a" || name == "b";
    for (float &x : values) {
      const double z = isVector ? uniform(random) : normal(random);
      x = static_cast<float>(!isGate                       ? z
                             : names.operation == "rwkv7" ? -std::exp(-0.5) / (1 + std::exp(-z))
                                                          : -std::log1p(std::exp(-z)));
    }
    const std::uint64_t columns = type.shape.empty() ? 1 : type.shape.back();
    for (std::uint64_t row = 0; isVector && columns && row < values.size() / columns; ++row) {
      double squares = 1e-30;
      for (std::uint64_t j = 0; j < columns; ++j)
        squares += static_cast<double>(values[row * columns + j]) * static_cast<double>(values[row * columns + j]);
      for (std::uint64_t j = 0; j < columns; ++j)
        values[row * columns + j] *= static_cast<float>((name == "b" ? -1 : 1) / std::sqrt(squares));
    }
    return arrayOf(type, values);
  }

  double flops(const Call &call) const override {
    const Tensor &q = call.tensors.find(names.q)->second, &v = call.tensors.find("v")->second;
    // As the specification counts chunks of 64: 8 C K + 2 C^2 + 2 C (K + V) + 8 K V + 4 C V of each token and head.
    const auto K = static_cast<double>(q.shape[3]), V = static_cast<double>(v.shape[3]), C = 64.0;
    return static_cast<double>(q.shape[0] * q.shape[1] * q.shape[2]) *
           (8 * C * K + 2 * C * C + 2 * C * (K + V) + 8 * K * V + 4 * C * V);
  }

  std::vector<Sample> samples(DType dtype, SampleUse use, bool gpu) const override {
    const auto call = [&](std::uint64_t batch, std::uint64_t tokens, std::uint64_t heads, std::uint64_t dim,
                          std::uint64_t dimV, Numbers numbers) {
      Sample out{{}, std::move(numbers)};
      for (const std::string_view name : {names.q, std::string_view("k"), std::string_view("a"), std::string_view("b")})
        out.inputs[std::string(name)] = {dtype, {batch, tokens, heads, dim}};
      out.inputs["v"] = {dtype, {batch, tokens, heads, dimV}};
      out.inputs[std::string(names.g)] = {DType::F32, {batch, tokens, heads, dim}};
      return out;
    };
    const Numbers safe = names.operation == "rwkv7" ? Numbers{{"safe_gate", 1}} : Numbers{};
    if (use == SampleUse::Demo)
      return {call(1, gpu ? 4096 : 128, gpu ? 32 : 4, 64, 64, safe)};
    if (use == SampleUse::Bench) {
      if (!gpu)
        return {call(1, 256, 2, 64, 64, safe)};
      return {call(8, 4096, 32, 64, 64, safe), call(1, 32768, 32, 64, 64, safe), call(1, 4096, 2, 128, 128, safe),
              call(1, 8192, 96, 128, 128, safe)};
    }
    Sample states = call(2, 70, 2, 40, 24, {{"final_state", 1}});
    states.inputs["initial_state"] = {DType::F32, {2, 2, 40, 24}};
    return {call(1, 1, 1, 16, 16, {{"final_state", 1}}), call(2, 130, 1, 64, 64, safe), states,
            call(1, 100, 1, 32, 64, {{"chunk_size", 16}})};
  }

  std::string sizeText(const TensorTypes &inputs, const Numbers &) const override {
    const auto e = extentsOf(inputs);
    if (!e.ok())
      return {};
    const auto n = [](std::uint64_t v) { return std::to_string(v); };
    return "B" + n(e->batch) + " T" + n(e->tokens) + " H" + n(e->heads) + " D" + n(e->dim) +
           (e->dim == e->dimV ? "" : "," + n(e->dimV)) +
           (inputs.count("cu_seqlens") ? " in " + n(e->sequences) + " sequences" : "");
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
    return dplrMaps(element, c);
  }

private:
  double scaleOf(const Numbers &numbers, std::uint64_t dim) const {
    return static_cast<float>(
        numberOr(numbers, "scale", names.operation == "rwkv7" ? 1 : 1 / std::sqrt(static_cast<float>(dim))));
  }

  Result<DplrExtents> extentsOf(const TensorTypes &inputs) const {
    const Shape &q = inputs.find(names.q)->second.shape, &v = inputs.find("v")->second.shape;
    for (const auto &[name, shape] : {std::pair(names.q, &q), {std::string_view("v"), &v}})
      if (shape->size() != 4)
        return Status::invalid(std::string(names.operation) + ": argument '" + std::string(name) + "' has " +
                                   std::to_string(shape->size()) + " dimensions",
                               "give it four: B x T x H x columns");
    DplrExtents e{q[0], q[1], q[2], q[3], v[3], q[0]};
    if (const auto cu = inputs.find("cu_seqlens"); cu != inputs.end()) {
      if (cu->second.shape.size() != 1 || cu->second.shape[0] == 0)
        return Status::invalid(std::string(names.operation) + ": cu_seqlens is no list of N + 1 offsets",
                               "give it one dimension");
      e.sequences = cu->second.shape[0] - 1;
    }
    return e;
  }

  Result<DplrArguments> argumentsOf(const Call &call) const {
    const auto at = [&](std::string_view name) { return call.tensors.find(name)->second; };
    const auto maybe = [&](std::string_view name) {
      const auto found = call.tensors.find(name);
      return found == call.tensors.end() ? std::optional<Tensor>() : std::optional(found->second);
    };
    DplrArguments a{at(names.q), at("k"), at("v"), at("a"), at("b"), at(names.g), at("o")};
    a.initialState = maybe("initial_state"), a.finalState = maybe("final_state"), a.cuSeqlens = maybe("cu_seqlens");
    if (call.numbers.count("scale")) {
      KILN_ASSIGN(a.scale, floatOr(names.operation, call.numbers, "scale", 1));
    }
    if (call.numbers.count("lower_bound")) {
      KILN_ASSIGN(a.lowerBound, floatOr(names.operation, call.numbers, "lower_bound", 0));
    }
    a.safeGate = numberOr(call.numbers, "safe_gate", 0) != 0;
    const double chunk = numberOr(call.numbers, "chunk_size", 0);
    if (chunk != std::floor(chunk) || std::abs(chunk) > 1 << 20)
      return Status::invalid(format("%s: chunk_size = %g", std::string(names.operation).c_str(), chunk),
                             "give 16, 32 or 64, or 0 to have it chosen");
    a.chunkSize = static_cast<std::int64_t>(chunk);
    return a;
  }

  DplrNames names;
};

} // namespace

std::unique_ptr<Family> makeDplr() {
  return std::make_unique<DplrFamily>(
      DplrNames{"dplr", "q", "g", "the DPLR delta rule: a state that decays, is corrected and read, by chunks"});
}
std::unique_ptr<Family> makeRwkv7() {
  return std::make_unique<DplrFamily>(DplrNames{"rwkv7", "r", "w", "RWKV7: the DPLR delta rule under its own names"});
}

} // namespace kiln::kernels
