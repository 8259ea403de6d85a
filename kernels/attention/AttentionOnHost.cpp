#include "kernels/attention/AttentionOnHost.h"

#include "support/Parallel.h"

#include <algorithm>
#include <cmath>

namespace kiln::kernels {
namespace {

/// How far a kernel's scaled product is off, about: some roundings of fp32.
double lossOfScores(double x) {
  return 0x1p-21 * (std::abs(x) + 1);
}

} // namespace

Status AttentionOnHost::place() {
  for (const auto &[name, tensor] : inputs)
    types[name] = {DType::U8, tensor.shape};
  KILN_ASSIGN(arguments, argumentsOfCall(tensorsOfTypes(types), options));
  KILN_ASSIGN(sequences, sequencesOf(arguments, tablesOf(inputs)));
  KILN_ASSIGN(own, functionsOnHost(inputs, options));
  if (arguments.dropoutP > 0)
    dropout.emplace(arguments.dropoutP, arguments.seed, arguments.offset);
  const AttentionExtents e = extentsOf(arguments);
  rowsQ = e.rowsQ, rowsK = e.rowsK, heads = e.heads, keyHeads = e.keyHeads, dim = e.dim, dimV = e.dimV;
  batchOfQ = arguments.cuQ ? 1 : e.batch, batchOfK = arguments.cuK ? 1 : e.batch;
  group = heads / std::max<std::int64_t>(1, keyHeads);
  scale = arguments.scale ? static_cast<double>(*arguments.scale) : 1 / std::sqrt(static_cast<double>(dim));
  std::size_t kSize = 0;
  for (const char *name : {"q", "qkv"})
    if (inputs.count(name))
      qData = input(name);
  for (const char *name : {"k", "kv", "qkv"})
    if (const auto found = inputs.find(name); found != inputs.end())
      kData = found->second.values.data(), kSize = found->second.values.size();
  for (const char *name : {"v", "kv", "qkv"})
    if (inputs.count(name))
      vData = input(name);
  scaledK.resize(kSize); // of an interleaved buffer more than k: what is not k is not read
  for (std::size_t i = 0; i < kSize; ++i)
    scaledK[i] = rounded(kData[i] * scale);
  // Without heads there may be any number of rows.
  sequenceOfRow.assign(static_cast<std::size_t>(heads ? rowsQ * batchOfQ : 0), -1);
  sequenceOfKey.assign(static_cast<std::size_t>(keyHeads ? rowsK * batchOfK : 0), -1);
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const AttentionSequence &of = sequences[s];
    const auto mark = [&](std::vector<std::int64_t> &to, std::int64_t first, std::int64_t count) {
      std::fill_n(to.begin() + static_cast<std::ptrdiff_t>(first), count, static_cast<std::int64_t>(s));
    };
    if (heads)
      mark(sequenceOfRow, of.batchQ * rowsQ + of.startQ, of.queries);
    if (keyHeads)
      mark(sequenceOfKey, of.batchK * rowsK + of.startK, of.keys);
  }
  return {};
}

AttentionOnHost::Logit AttentionOnHost::logitOf(double x, const AttentionSequence &s, std::int64_t head, std::int64_t p,
                                                std::int64_t j) const {
  const double cap = arguments.softcap;
  Logit out{x};
  if (own.functions.hasScore()) {
    const host::Number y = own.functions.score(host::number(x, 1, lossOfScores(x)), pairOf(s, head, p, j)).at(0);
    out = {rounded(y.value), y.slope, y.error};
  }
  if (cap > 0) {
    out.z = rounded(cap * std::tanh(x / cap));
    const double inner = out.z / cap;
    out.slope = 1 - inner * inner;
  }
  if (arguments.alibi) {
    const HostTensor &alibi = inputs.find("alibi")->second;
    const std::ptrdiff_t sequence = alibi.shape.size() == 2 ? &s - sequences.data() : 0;
    const double slope = alibi.values[static_cast<std::size_t>(sequence * heads + head)];
    out.z = rounded(out.z - slope * static_cast<double>(std::abs(p - j)));
  }
  if (arguments.bias)
    out.z = rounded(out.z + input("bias")[atBias(s, head, p - shiftOf(s, arguments), j)]);
  return out;
}

double AttentionOnHost::keptShare(const AttentionSequence &s, std::int64_t head, std::int64_t p, std::int64_t j) const {
  if (!dropout)
    return 1;
  const auto u32 = [](std::int64_t v) { return static_cast<std::uint32_t>(v); };
  const bool kept = dropout->keeps(u32(&s - sequences.data()), u32(head), u32(p - shiftOf(s, arguments)), u32(j));
  return kept ? 1 / (1 - static_cast<double>(arguments.dropoutP)) : 0;
}

std::size_t AttentionOnHost::atBias(const AttentionSequence &s, std::int64_t head, std::int64_t i,
                                    std::int64_t j) const {
  const Tensor &bias = *arguments.bias;
  std::int64_t out = 0;
  unsigned d = 0;
  for (const std::int64_t at : {static_cast<std::int64_t>(&s - sequences.data()), head, i, j}) {
    out = out * bias.shape[d] + (bias.shape[d] == 1 ? 0 : at);
    ++d;
  }
  return static_cast<std::size_t>(out);
}

double AttentionOnHost::dot(const double *a, const double *b, std::int64_t n) {
  double sums[4] = {}; // float64 has bits to spare for another order
  for (std::int64_t c = 0; c + 4 <= n; c += 4)
    for (unsigned i = 0; i < 4; ++i)
      sums[i] += a[c + i] * b[c + i];
  for (std::int64_t c = n / 4 * 4; c < n; ++c)
    sums[0] += a[c] * b[c];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void AttentionOnHost::forEach(std::uint64_t n, const std::vector<std::uint64_t> &chosen, Outputs outputs,
                              const std::function<void(std::int64_t, Outputs)> &one) const {
  constexpr std::uint64_t mostParts = 64;
  const std::uint64_t count = chosen.empty() ? n : chosen.size();
  const std::uint64_t parts = own.functions.hasScore() || own.functions.hasMask() ? std::min<std::uint64_t>(1, count)
                                                                                  : std::min(mostParts, count);
  // Elements of all of a tensor have their places; those of a sample come one after the other.
  std::vector<std::vector<HostTensor>> sampled(chosen.empty() ? 0 : parts, std::vector<HostTensor>(outputs.size()));
  inParallel(parts, [&](std::size_t part) {
    std::vector<HostTensor *> where(outputs.begin(), outputs.end());
    for (std::size_t o = 0; o < where.size() && !sampled.empty(); ++o)
      where[o] = &sampled[part][o];
    for (std::uint64_t i = part * count / parts; i < (part + 1) * count / parts; ++i)
      one(static_cast<std::int64_t>(chosen.empty() ? i : chosen[i]), where);
  });
  const auto append = [](auto &to, const auto &from) { to.insert(to.end(), from.begin(), from.end()); };
  for (const std::vector<HostTensor> &part : sampled)
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      append(outputs[o]->values, part[o].values);
      append(outputs[o]->sample, part[o].sample);
      append(outputs[o]->besides, part[o].besides);
    }
}

void AttentionOnHost::put(HostTensor &to, std::int64_t first, std::span<const double> values, bool whole) {
  for (std::size_t c = 0; c < values.size(); ++c) {
    const std::size_t where = static_cast<std::size_t>(first) + c;
    if (whole) {
      to.values[where] = values[c];
    } else {
      to.sample.push_back(where);
      to.values.push_back(values[c]);
    }
  }
}

} // namespace kiln::kernels
