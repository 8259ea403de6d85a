#include "kernels/dplr/DplrFamilies.h"

#include "kernels/dplr/KeptChunks.h"
#include "kernels/support/Runner.h"
#include "support/Text.h"

#include <cmath>
#include <random>

namespace kiln::kernels {
namespace {

/// More multiplications than this in a reference and only some of the heads are computed.
constexpr double longReference = 2e9;

} // namespace

std::vector<NumberParameter> DplrFamilyBase::numbers() const {
  std::vector<NumberParameter> out{
      {"scale", {}, names.isRwkv() ? "of the outputs; default 1" : "of the outputs; default 1 / sqrt(K)"},
      {"chunk_size", 0, "tokens of a chunk: 16, 32, 64; 0: chosen"},
      {"warps", 0, "of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen"},
      {"segment_size", 0, "chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen"}};
  if (names.gate != GateKind::None) {
    out.push_back({"lower_bound", {}, "no log decay is below this"});
    out.push_back({"safe_gate", {}, "no log decay is below -5", {}, true});
  }
  return out;
}

std::optional<DType> DplrFamilyBase::inputType(const TensorParameter &parameter, std::optional<DType> called,
                                               const Numbers &) const {
  const bool keeps = parameter.name == names.g || parameter.name == "initial_state" || parameter.name == "dht" ||
                     parameter.name == "cu_seqlens" || parameter.name == "beta";
  return keeps ? std::nullopt : parameter.dtype ? parameter.dtype : called;
}

std::vector<TensorParameter> DplrFamilyBase::inputParameters() const {
  const std::string q(names.q);
  std::vector<TensorParameter> out{{q, false, false, "B x T x H x K, f16 or bf16"},
                                   {"k", false, false, "B x T x H x K"},
                                   {"v", false, false, "B x T x H x V"}};
  if (names.rule == ChunkRule::Dplr) {
    out.push_back({"a", false, false, "B x T x H x K: reads the state before it decays"});
    out.push_back({"b", false, false, "B x T x H x K: where what was read is added"});
  }
  if (names.gate != GateKind::None)
    out.push_back({std::string(names.g), false, false,
                   std::string(names.gate == GateKind::Head ? "B x T x H" : "B x T x H x K") + ", f32 or as " + q +
                       ": natural logarithms of decays, at most 0"});
  if (names.rule == ChunkRule::Delta)
    out.push_back({"beta", false, false, "B x T x H, f32 or as " + q + ": how much of what k reads is taken back"});
  out.push_back({"initial_state", false, true, "N x H x K x V, f32, f16 or bf16"});
  out.push_back({"cu_seqlens", false, true, "N + 1, int32 or int64: where each sequence starts; B is 1"});
  return out;
}

TensorTypes DplrFamilyBase::inputTypes(DType dtype, std::uint64_t batch, std::uint64_t tokens, std::uint64_t heads,
                                       std::uint64_t dim, std::uint64_t dimV) const {
  TensorTypes out;
  const Shape keys{batch, tokens, heads, dim}, head{batch, tokens, heads};
  out[std::string(names.q)] = out["k"] = {dtype, keys};
  out["v"] = {dtype, {batch, tokens, heads, dimV}};
  if (names.rule == ChunkRule::Dplr)
    out["a"] = out["b"] = {dtype, keys};
  if (names.gate != GateKind::None)
    out[std::string(names.g)] = {DType::F32, names.gate == GateKind::Head ? head : keys};
  if (names.rule == ChunkRule::Delta)
    out["beta"] = {DType::F32, head};
  return out;
}

Numbers DplrFamilyBase::safeNumbers() const {
  return names.isRwkv() ? Numbers{{"lower_bound", -0.60653067}} : Numbers{};
}

double DplrFamilyBase::scaleOf(const Numbers &numbers, std::uint64_t dim) const {
  return static_cast<float>(numberOr(numbers, "scale", names.isRwkv() ? 1 : 1 / std::sqrt(static_cast<float>(dim))));
}

Result<DplrFamilyBase::Extents> DplrFamilyBase::extentsOf(const TensorTypes &inputs) const {
  const Shape &q = inputs.find(names.q)->second.shape, &v = inputs.find("v")->second.shape;
  for (const auto &[name, shape] : {std::pair(names.q, &q), {std::string_view("v"), &v}})
    if (shape->size() != 4)
      return Status::invalid(std::string(names.operation) + ": argument '" + std::string(name) + "' has " +
                                 std::to_string(shape->size()) + " dimensions",
                             "give it four: B x T x H x columns");
  if (const auto g = inputs.find(names.g); names.gate != GateKind::None && g != inputs.end()) {
    const std::size_t wanted = names.gate == GateKind::Head ? 3 : 4;
    if (g->second.shape.size() != wanted)
      return Status::invalid(format("%s: argument '%s' has %zu dimensions", std::string(names.operation).c_str(),
                                    std::string(names.g).c_str(), g->second.shape.size()),
                             wanted == 3 ? "give it three, a gate for each head: B x T x H"
                                         : "give it four, a gate for each channel: B x T x H x K");
  }
  Extents e{q[0], q[1], q[2], q[3], v[3], q[0]};
  if (const auto cu = inputs.find("cu_seqlens"); cu != inputs.end()) {
    if (cu->second.shape.size() != 1 || cu->second.shape[0] == 0)
      return Status::invalid(std::string(names.operation) + ": cu_seqlens is no list of N + 1 offsets",
                             "give it one dimension");
    e.sequences = cu->second.shape[0] - 1;
  }
  return e;
}

TensorType DplrFamilyBase::savedType(const Extents &e, bool packed, const Numbers &numbers) const {
  DplrInputs in;
  const auto n = [](std::uint64_t x) { return static_cast<std::int64_t>(x); };
  in.q.shape = {n(e.batch), n(e.tokens), n(e.heads), n(e.dim)};
  in.v.shape = {n(e.batch), n(e.tokens), n(e.heads), n(e.dimV)};
  in.q.dtype = in.v.dtype = dtypes().front(); // all of them have two bytes
  in.rule = names.rule, in.gate = names.gate;
  if (packed)
    in.cuSeqlens.emplace().shape[0] = n(e.sequences) + 1;
  const double chunk = numberOr(numbers, "chunk_size", 0);
  if (chunk == 16 || chunk == 32) // a call with any other than these and 64 is refused
    in.chunkSize = static_cast<std::int64_t>(chunk);
  return {DType::U8, {static_cast<std::uint64_t>(savedBytes(in))}};
}

Status DplrFamilyBase::complete(const Arrays &inputs, Numbers &) const {
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

std::uint64_t DplrFamilyBase::rowAt(const Shape &shape, const PlacedHead &at, std::uint64_t i) {
  return ((at.batch * shape[1] + at.begin + i) * shape[2] + at.h) * (shape.size() == 4 ? shape[3] : 1);
}

std::vector<double> DplrFamilyBase::rowsOf(const HostTensor &tensor, const PlacedHead &at) {
  std::vector<double> out;
  for (std::uint64_t i = 0; i < at.head.tokens; ++i) {
    const auto from = tensor.values.begin() + static_cast<std::ptrdiff_t>(rowAt(tensor.shape, at, i));
    out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(tensor.shape.size() == 4 ? tensor.shape[3] : 1));
  }
  return out;
}

Result<HostTensors> DplrFamilyBase::everyHead(const HostTensors &inputs, const Numbers &numbers,
                                              const TensorTypes &types,
                                              const std::function<void(const PlacedHead &, const Put &)> &f) const {
  const HostTensor &q = inputs.find(names.q)->second, &v = inputs.find("v")->second;
  const std::uint64_t batch = q.shape[0], tokens = q.shape[1], heads = q.shape[2], dim = q.shape[3], dimV = v.shape[3];
  const auto cu = inputs.find("cu_seqlens"), first = inputs.find("initial_state");
  const bool packed = cu != inputs.end();
  const std::uint64_t sequences = packed ? cu->second.shape[0] - 1 : batch;
  HostTensors out;
  for (const auto &[name, type] : types)
    out[name].shape = type.shape;
  const double all = 4.0 * static_cast<double>(batch * tokens * heads * dim * dimV);
  const std::uint64_t every = all <= longReference ? 1 : static_cast<std::uint64_t>(all / longReference) + 1;
  if (every == 1)
    for (const auto &[name, type] : types)
      out[name].values.resize(type.elements());
  const Put put = [&](std::string_view name, std::uint64_t at, double value) {
    HostTensor &to = out.find(name)->second;
    if (every == 1) {
      to.values[at] = value;
      return;
    }
    to.sample.push_back(at);
    to.values.push_back(value);
  };
  for (std::uint64_t n = 0; n < sequences; ++n)
    for (std::uint64_t h = 0; h < heads; ++h) {
      if ((n * heads + h) % every)
        continue;
      const auto begin = packed ? static_cast<std::uint64_t>(cu->second.values[n]) : 0;
      const auto end = packed ? static_cast<std::uint64_t>(cu->second.values[n + 1]) : tokens;
      PlacedHead at{{end - begin, dim, dimV, scaleOf(numbers, dim), {}, {}, {}, {}, {}, {}, {}},
                    packed ? 0 : n,
                    begin,
                    (n * heads + h) * dim * dimV,
                    h,
                    {},
                    {}};
      const auto rows = [&](std::string_view name) { return rowsOf(inputs.find(name)->second, at); };
      DplrHead &head = at.head;
      head.q = rows(names.q), head.k = rows("k"), head.v = rows("v");
      head.g.assign(head.k.size(), 0);
      if (names.gate == GateKind::Channel)
        head.g = rows(names.g);
      else if (const auto each = names.gate == GateKind::Head ? rows(names.g) : std::vector<double>(); !each.empty())
        for (std::uint64_t i = 0; i < head.g.size(); ++i)
          head.g[i] = each[i / dim];
      if (names.rule == ChunkRule::Dplr)
        head.a = rows("a"), head.b = rows("b");
      else
        head.a = head.b = std::vector<double>(head.k.size());
      if (names.rule == ChunkRule::Delta) {
        at.key = head.k, at.beta = rows("beta");
        for (std::uint64_t i = 0; i < head.k.size(); ++i) {
          head.a[i] = -at.key[i] * std::exp(head.g[i]);
          head.b[i] = head.k[i] = at.beta[i / dim] * at.key[i];
        }
      }
      if (first != inputs.end()) {
        const auto from = first->second.values.begin() + static_cast<std::ptrdiff_t>(at.state);
        head.first.assign(from, from + static_cast<std::ptrdiff_t>(dim * dimV));
      }
      f(at, put);
    }
  return out;
}

std::vector<TensorParameter> DplrForwardFamily::tensors() const {
  std::vector<TensorParameter> out = inputParameters();
  out.push_back({"o", true, false, "B x T x H x V"});
  out.push_back({"final_state", true, true, "N x H x K x V, f32"});
  out.push_back({"saved", true, true, "u8: what gradients by the same inputs take in place of making it again"});
  return out;
}

Result<TensorTypes> DplrForwardFamily::outputs(const TensorTypes &inputs, const Numbers &numbers) const {
  KILN_ASSIGN(const Extents e, extentsOf(inputs));
  TensorTypes out{{"o", {inputs.find(names.q)->second.dtype, {e.batch, e.tokens, e.heads, e.dimV}}}};
  if (numbers.count("final_state"))
    out["final_state"] = {DType::F32, {e.sequences, e.heads, e.dim, e.dimV}};
  if (numbers.count("saved"))
    out["saved"] = savedType(e, inputs.count("cu_seqlens") != 0, numbers);
  return out;
}

Result<HostTensors> DplrForwardFamily::reference(const HostTensors &inputs, const Numbers &numbers) const {
  const HostTensor &q = inputs.find(names.q)->second, &v = inputs.find("v")->second;
  const auto cu = inputs.find("cu_seqlens");
  const std::uint64_t sequences = cu == inputs.end() ? q.shape[0] : cu->second.shape[0] - 1;
  TensorTypes types{{"o", {DType::F64, v.shape}}};
  if (numbers.count("final_state"))
    types["final_state"] = {DType::F64, {sequences, q.shape[2], q.shape[3], v.shape[3]}};
  return everyHead(inputs, numbers, types, [&](const PlacedHead &at, const Put &put) {
    const DplrHeadResult result = dplrForward(at.head);
    for (std::uint64_t i = 0; i < at.head.tokens; ++i)
      for (std::uint64_t j = 0; j < at.head.dimV; ++j)
        put("o", rowAt(v.shape, at, i) + j, result.o[i * at.head.dimV + j]);
    for (std::uint64_t i = 0; types.count("final_state") && i < result.last.size(); ++i)
      put("final_state", at.state + i, result.last[i]);
  });
}

/// The specification's metric is of whole tensors (S5): see allowedRatio.  An element by itself is wrong if it is off
/// by a quarter of the tensor's root mean square.
std::vector<double> DplrFamilyBase::allowed(std::string_view name, DType, const HostTensors &,
                                            const HostTensors &reference, const Numbers &) const {
  const HostTensor &wanted = reference.find(name)->second;
  double squares = 0;
  for (const double x : wanted.values)
    squares += x * x;
  const double each = wanted.values.empty() ? 0 : std::sqrt(squares / static_cast<double>(wanted.values.size())) / 4;
  return std::vector<double>(wanted.values.size(), each + 1e-6);
}

std::optional<double> DplrFamilyBase::allowedRatio(std::string_view name) const {
  return name == "o" ? 0.007 : 0.008;
}

/// As the specification's tests: q, k, v, dO and states normal; a of length 1, b its opposite; g = logsigmoid of normal
/// numbers, of rwkv7 -exp(-1/2) sigmoid.  Of the delta rule k of length 1, beta = sigmoid of normal numbers.
Array DplrFamilyBase::input(std::string_view name, const TensorType &type, std::uint64_t seed) const {
  if (name == "cu_seqlens")
    return Family::input(name, type, seed);
  std::mt19937_64 random(seed * 31 + (name == "a" || name == "b" ? 1 : std::hash<std::string_view>()(name)));
  std::normal_distribution<double> normal(0, 1);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<float> values(type.elements());
  const bool isGate = name == names.g, isPositive = name == "a" || name == "b",
             isVector = isPositive || (name == "k" && names.rule == ChunkRule::Delta);
  for (float &x : values) {
    const double z = isPositive ? uniform(random) : normal(random);
    x = static_cast<float>(name == "beta"   ? 1 / (1 + std::exp(-z))
                           : !isGate        ? z
                           : names.isRwkv() ? -std::exp(-0.5) / (1 + std::exp(-z))
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

std::string DplrFamilyBase::sizeText(const TensorTypes &inputs, const Numbers &) const {
  const auto e = extentsOf(inputs);
  if (!e.ok())
    return {};
  const auto n = [](std::uint64_t v) { return std::to_string(v); };
  return "B" + n(e->batch) + " T" + n(e->tokens) + " H" + n(e->heads) + " D" + n(e->dim) +
         (e->dim == e->dimV ? "" : "," + n(e->dimV)) +
         (inputs.count("cu_seqlens") ? " in " + n(e->sequences) + " sequences" : "");
}

} // namespace kiln::kernels
