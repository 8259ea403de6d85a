#include "tests/barriers/KernelSubjects.h"

#include "tests/barriers/SubjectArguments.h"

#include "kernels/attention/Attention.h"
#include "kernels/attention/AttentionBackward.h"
#include "kernels/attention_decode/AttentionDecode.h"

#include <cmath>

namespace kiln::test {

using kernels::AttentionBackwardConfig;
using kernels::AttentionBackwardLaunch;
using kernels::AttentionConfig;
using kernels::AttentionDecodeConfig;

namespace {

Subject attentionOf(const char *target, bool aligned, int warps) {
  // An odd number of rounds without a mask: the last one reads the slot that the next loop's first copy writes.
  const std::int64_t S = 256, keys = S + 64, D = 64;
  AttentionConfig c;
  c.dim = c.dimV = static_cast<int>(D);
  c.right = true; // a loop without a mask, and one with
  c.lse = true;
  c.warps = warps;
  Subject s{"attention", kernels::attention(DType::F16, c), {target, "attention", {}, {}}, {}, {}, 0, {}};
  s.facts.divisible = divisibleFacts(s.kernel, aligned);
  s.facts.noTensorMaps = true; // launched here, with the arguments alone
  s.facts.equals = unitFacts(s.kernel);
  s.grid = {2};
  s.inputs = {std::size_t(S * D), std::size_t(keys * D), std::size_t(keys * D)};
  s.output = std::size_t(S * D); // o, of f16, in the first half; then lse
  const auto withKeys = [=, kernel = s.kernel](std::int64_t keys) {
    return [=](const std::vector<const Buffer *> &in, const Buffer &out) {
      return argumentsOf(kernel,
                         {{"q", {*in[0], {1, S, 1, 1, D}, {S * D, D, D, D, 1}}},
                          {"k", {*in[1], {1, keys, 1, D}, {keys * D, D, D, 1}}},
                          {"v", {*in[2], {1, keys, 1, D}, {keys * D, D, D, 1}}},
                          {"o", {out, {1, S, 1, 1, D}, {S * D, D, D, D, 1}}},
                          {"lse", {std::uint64_t(out.address() + 2 * S * D), {1, 1, S}, {S, S, 1}}}},
                         {{"queries", static_cast<std::int32_t>(S)},
                          {"window_left", std::int32_t(-1)},
                          {"window_right", std::int32_t(0)},
                          {"position_offset", std::int32_t(0)},
                          {"scale", 1 / std::sqrt(static_cast<float>(D))},
                          {"cap", 0.0f}});
    };
  };
  s.arguments = withKeys(keys);
  // An even number, and few keys: the result's scratch lies where the last round of all reads.
  s.moreArguments = {withKeys(S), withKeys(S - 64), withKeys(128)};
  // The warps of a block's only warpgroup have met when its product is done, which the proof does not know.
  s.coarse = warps == 4 && aligned && (*findTarget(target))->has(Capability::Wgmma);
  return s;
}

} // namespace

Subject attentionOf16Rows(const char *target, bool aligned) {
  return attentionOf(target, aligned, 8);
}
Subject attentionOf32Rows(const char *target, bool aligned) {
  return attentionOf(target, aligned, 4);
}

namespace {

/// dk and dv of a block of keys, with one pass sums of dq too; or dq of a block of rows.
Subject gradientsOf(const char *target, bool aligned, AttentionBackwardLaunch launch, bool onePass) {
  const bool ofKeys = launch == AttentionBackwardLaunch::Keys;
  const std::int64_t S = 192, keys = 128, D = 64, group = 2, N = group * S + keys;
  AttentionBackwardConfig c;
  c.dim = c.dimV = static_cast<int>(D);
  c.right = true;
  c.onePass = onePass;
  c.blockM = ofKeys ? 64 : 128, c.blockN = ofKeys ? 128 : 64;
  c.warps = 8;
  const char *const name = ofKeys ? "attention_key_gradients" : "attention_query_gradients";
  Subject s{name, kernels::attentionBackward(launch, DType::F16, c), {target, name, {}, {}}, {}, {}, 0, {}};
  s.facts.divisible = divisibleFacts(s.kernel, aligned);
  s.facts.noTensorMaps = true; // launched here, with the arguments alone
  s.facts.equals = unitFacts(s.kernel);
  s.copiesNumbers = ofKeys; // lse and delta of each step
  // Without copies of keys they are read before the loops, which needs a barrier before dk where no round follows; but
  // LLVM moves what only rounds use into them.
  s.coarse = ofKeys && !aligned;
  s.grid = {static_cast<std::uint32_t>(ofKeys ? 1 : group * ((S + 127) / 128))};
  const auto row = std::size_t(D);
  s.inputs = {N * row,    N * row, N * row, N * row, std::size_t(2 * N), std::size_t(2 * N),
              2 * N * row}; // from the fifth on: fp32
  s.output = std::size_t(N * D);
  const auto withRows = [=, kernel = s.kernel](std::int64_t rows) {
    return [=](const std::vector<const Buffer *> &in, const Buffer &out) {
      const auto query = [&](const Argument &at) {
        return Whole{at, {1, rows, 1, group, D}, {rows * group * D, group * D, group * D, D, 1}};
      };
      const auto key = [&](const Argument &at) { return Whole{at, {1, keys, 1, D}, {keys * D, D, D, 1}}; };
      const auto numbers = [&](const Argument &at) { return Whole{at, {1, group, rows}, {group * rows, rows, 1}}; };
      std::map<std::string, Whole> tensors = {{"q", query(*in[0])},      {"k", key(*in[1])},
                                              {"v", key(*in[2])},        {"do", query(*in[3])},
                                              {"lse2", numbers(*in[4])}, {"delta", numbers(*in[5])}};
      if (ofKeys) {
        tensors.emplace("dk", key(out));
        tensors.emplace("dv", key(std::uint64_t(out.address() + 2 * keys * D)));
        if (onePass)
          tensors.emplace("dq_sums", Whole{*in[6], {1, group, rows, D}, {group * rows * D, rows * D, D, 1}});
      } else {
        tensors.emplace("dq", query(out));
      }
      return argumentsOf(kernel, tensors,
                         {{"queries", static_cast<std::int32_t>(rows)},
                          {"keys", static_cast<std::int32_t>(keys)},
                          {"window_left", std::int32_t(-1)},
                          {"window_right", std::int32_t(0)},
                          {"position_offset", std::int32_t(0)},
                          {"scale", 1 / std::sqrt(static_cast<float>(D))},
                          {"cap", 0.0f}});
    };
  };
  s.arguments = withRows(S);
  s.moreArguments = {withRows(128), withRows(64), withRows(0)}; // the last: keys and values are stored, and no round
  return s;
}

} // namespace

Subject gradientsOfKeys(const char *target, bool aligned) {
  return gradientsOf(target, aligned, AttentionBackwardLaunch::Keys, false);
}
Subject gradientsInOnePass(const char *target, bool aligned) {
  return gradientsOf(target, aligned, AttentionBackwardLaunch::Keys, true);
}
Subject gradientsOfQueries(const char *target, bool aligned) {
  return gradientsOf(target, aligned, AttentionBackwardLaunch::Queries, false);
}

Subject decodeOf(const char *target, bool aligned) {
  const std::int64_t tokens = 4, group = 4, capacity = 256, D = 64, rows = tokens * group;
  AttentionDecodeConfig c;
  c.dim = c.dimV = static_cast<int>(D), c.group = static_cast<int>(group);
  c.blockM = 16, c.blockN = 64, c.warps = 4;
  c.right = c.lse = true;
  Subject s{
      "attention_decode", kernels::attentionDecode(DType::F16, c), {target, "attention_decode", {}, {}}, {}, {}, 0, {}};
  s.facts.divisible = divisibleFacts(s.kernel, aligned);
  s.facts.noTensorMaps = true; // launched here, with the arguments alone
  s.facts.equals = unitFacts(s.kernel);
  s.grid = {1};
  s.inputs = {std::size_t(rows * D), std::size_t(capacity * D), std::size_t(capacity * D)};
  s.output = std::size_t(rows * D); // o, of f16, in the first half; then lse
  const auto withKeys = [=, kernel = s.kernel](std::int64_t keys) {
    return [=](const std::vector<const Buffer *> &in, const Buffer &out) {
      return argumentsOf(
          kernel,
          {{"q", {*in[0], {1, tokens, 1, group, D}, {rows * D, group * D, group * D, D, 1}}},
           {"k", {*in[1], {1, keys, 1, D}, {keys * D, D, D, 1}}},
           {"v", {*in[2], {1, keys, 1, D}, {keys * D, D, D, 1}}},
           {"o", {out, {1, tokens, 1, group, D}, {rows * D, group * D, group * D, D, 1}}},
           {"lse", {std::uint64_t(out.address() + 2 * rows * D), {1, group, tokens}, {rows, tokens, 1}}}},
          {{"splits", std::int32_t(1)},
           {"window_left", std::int32_t(-1)},
           {"window_right", std::int32_t(0)},
           {"scale", 1 / std::sqrt(static_cast<float>(D))},
           {"cap", 0.0f}});
    };
  };
  s.arguments = withKeys(capacity);
  s.moreArguments = {withKeys(capacity - 64), withKeys(64), withKeys(0)}; // the last: no round
  return s;
}

} // namespace kiln::test
