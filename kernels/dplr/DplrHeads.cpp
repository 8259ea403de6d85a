#include "kernels/dplr/DplrHeads.h"

#include "kernels/dplr/DplrOperation.h"
#include "support/Parallel.h"

#include <cmath>

namespace kiln::kernels {
namespace {

/// More multiplications than this in a reference and only some of the heads are computed.
constexpr double longReference = 2e9;

} // namespace

std::uint64_t DplrHeads::rowAt(const Shape &shape, const PlacedHead &at, std::uint64_t i) {
  return ((at.batch * shape[1] + at.begin + i) * shape[2] + at.h) * (shape.size() == 4 ? shape[3] : 1);
}

std::vector<double> DplrHeads::rowsOf(const HostTensor &tensor, const PlacedHead &at) {
  std::vector<double> out;
  for (std::uint64_t i = 0; i < at.head.tokens; ++i) {
    const auto from = tensor.values.begin() + static_cast<std::ptrdiff_t>(rowAt(tensor.shape, at, i));
    out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(tensor.shape.size() == 4 ? tensor.shape[3] : 1));
  }
  return out;
}

Result<HostTensors> DplrHeads::everyHead(const HostTensors &inputs, const OptionValues &options,
                                         const TensorTypes &types,
                                         const std::function<void(const PlacedHead &, const Put &)> &f) const {
  KILN_ASSIGN(const DplrArguments arguments, readOptions<DplrArguments>(names.operation, options));
  const HostTensor &q = inputs.find(names.q)->second, &v = inputs.find("v")->second;
  const std::uint64_t batch = q.shape[0], tokens = q.shape[1], heads = q.shape[2], dim = q.shape[3], dimV = v.shape[3];
  const auto cu = inputs.find("cu_seqlens"), first = inputs.find("initial_state");
  const float usualScale = names.isRwkv() ? 1 : 1 / std::sqrt(static_cast<float>(dim));
  const auto scale = static_cast<double>(arguments.scale.value_or(usualScale));
  const bool packed = cu != inputs.end();
  const std::uint64_t sequences = packed ? cu->second.shape[0] - 1 : batch;
  HostTensors out;
  for (const auto &[name, type] : types)
    out[name].shape = type.shape;
  const double all = 4.0 * static_cast<double>(batch * tokens * heads * dim * dimV);
  const std::uint64_t every = all <= longReference ? 1 : static_cast<std::uint64_t>(all / longReference) + 1;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> chosen; // sequences and heads
  for (std::uint64_t i = 0; i < sequences * heads; i += every)
    chosen.emplace_back(i / heads, i % heads);
  // Heads write to places of their own; of a sample each has a list, and the lists are joined in their order.
  std::vector<HostTensors> samples(every == 1 ? 0 : chosen.size());
  if (every == 1)
    for (const auto &[name, type] : types)
      out[name].values.resize(type.elements());
  inParallel(chosen.size(), [&](std::size_t number) {
    const auto [n, h] = chosen[number];
    const Put put = [&](std::string_view name, std::uint64_t at, double value) {
      if (every == 1) {
        out.find(name)->second.values[at] = value;
        return;
      }
      HostTensor &to = samples[number][std::string(name)];
      to.sample.push_back(at);
      to.values.push_back(value);
    };
    const auto begin = packed ? static_cast<std::uint64_t>(cu->second.values[n]) : 0;
    const auto end = packed ? static_cast<std::uint64_t>(cu->second.values[n + 1]) : tokens;
    PlacedHead at{{end - begin, dim, dimV, scale, {}, {}, {}, {}, {}, {}, {}},
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
  });
  for (HostTensors &sample : samples)
    for (auto &[name, from] : sample) {
      HostTensor &to = out.find(name)->second;
      to.sample.insert(to.sample.end(), from.sample.begin(), from.sample.end());
      to.values.insert(to.values.end(), from.values.begin(), from.values.end());
    }
  return out;
}

Result<HostTensors> DplrForwardReference::compute(const HostTensors &inputs, const OptionValues &options) const {
  const HostTensor &q = inputs.find(names.q)->second, &v = inputs.find("v")->second;
  const auto cu = inputs.find("cu_seqlens");
  const std::uint64_t sequences = cu == inputs.end() ? q.shape[0] : cu->second.shape[0] - 1;
  TensorTypes types{{"o", {DType::F64, v.shape}}};
  if (isSet(options, "final_state"))
    types["final_state"] = {DType::F64, {sequences, q.shape[2], q.shape[3], v.shape[3]}};
  return everyHead(inputs, options, types, [&](const PlacedHead &at, const Put &put) {
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
std::vector<double> DplrHeads::allowed(std::string_view name, DType, const HostTensors &, const HostTensors &reference,
                                       const OptionValues &) const {
  const HostTensor &wanted = reference.find(name)->second;
  double squares = 0;
  for (const double x : wanted.values)
    squares += x * x;
  const double each = wanted.values.empty() ? 0 : std::sqrt(squares / static_cast<double>(wanted.values.size())) / 4;
  return std::vector<double>(wanted.values.size(), each + 1e-6);
}

std::optional<double> DplrHeads::allowedRatio(std::string_view name) const {
  return name == "o" ? 0.007 : 0.008;
}

} // namespace kiln::kernels
