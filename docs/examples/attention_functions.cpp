// attention_functions [DEVICE]: attention with masks and scores of one's own, each compared with float64.
#include "kernels/attention/AttentionOperation.h"
#include "kernels/attention/FunctionText.h"
#include "kiln/OwnedTensor.h"

#include <cmath>
#include <cstdio>
#include <random>

using namespace kiln;
using namespace kiln::kernels;
using kiln::language::bf16, kiln::language::i32, kiln::language::i64;

/// Keys of the query's own document: aux 0 says which one each token belongs to, [sequence, token].
static AttentionFunctions documents() {
  return {{.mask = [](const AttentionPairs &at) {
    return at.load<i32>(0, at.batch, at.query) == at.load<i32>(0, at.batch, at.key);
  }}};
}

/// All of a prefix, of a length for each sequence, and no later token after it.
static AttentionFunctions prefixes() {
  return {
      {.mask = [](const AttentionPairs &at) { return (at.key <= at.query) | (at.key < at.load<i32>(0, at.batch)); }}};
}

/// The last `window` tokens, and the first `sinks`.
static AttentionFunctions slidingWindow(int window, int sinks) {
  return {{.mask = [=](const AttentionPairs &at) {
    return (at.key <= at.query) & ((at.key >= at.query - window) | (at.key < sinks));
  }}};
}

/// A bias for each head and distance, [head, distance], and scores of at most 20; no later token.  The score is generic
/// over x, so that the backward direction differentiates it.
static AttentionFunctions relativeBias() {
  return {{.score =
               [](const auto &x, const AttentionPairs &at) {
                 const auto bias = cast<language::f32>(at.load<bf16>(0, at.head, max(at.query - at.key, 0)));
                 return 20 * tanh((x + bias) / 20);
               },
           .mask = [](const AttentionPairs &at) { return at.key <= at.query; }}};
}

/// The same as text, as it may come from a file.
static Result<AttentionFunctions> relativeBiasAsText() {
  return parseAttentionFunctions(
      {.score = "20 * tanh((x + bias[h, max(i - j, 0)]) / 20)", .mask = "j <= i", .aux = {{"bias", DType::BF16, 2}}});
}

constexpr std::int64_t batch = 2, rows = 300, heads = 2, dim = 64;

/// The same on the host: scores and pairs.
struct Wanted {
  std::function<double(double x, std::int64_t h, std::int64_t i, std::int64_t j)> score;
  BlockMaskOnHost::Predicate sees;
};

using Numbers = std::vector<float>;

static double largestError(const Numbers &q, const Numbers &k, const Numbers &v, const Numbers &o, const Wanted &w) {
  double largest = 0;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < rows; ++i) {
        const auto at = [&](std::int64_t row) { return ((b * rows + row) * heads + h) * dim; };
        std::vector<double> sums(dim);
        double total = 0;
        for (std::int64_t j = 0; j < rows; ++j) {
          if (!w.sees(b, h, i, j))
            continue;
          double x = 0;
          for (std::int64_t d = 0; d < dim; ++d)
            x += double(q[at(i) + d]) * k[at(j) + d];
          x /= std::sqrt(double(dim));
          const double weight = std::exp(w.score ? w.score(x, h, i, j) : x);
          total += weight;
          for (std::int64_t d = 0; d < dim; ++d)
            sums[d] += weight * v[at(j) + d];
        }
        for (std::int64_t d = 0; d < dim; ++d) {
          const double error = std::abs(o[at(i) + d] - sums[d] / total);
          largest = error <= largest ? largest : error; // NaN counts
        }
      }
  return largest;
}

static Result<bool> compare(const char *deviceName) {
  KILN_ASSIGN(const std::unique_ptr<Device> device, openDevice(deviceName));
  KILN_ASSIGN(const std::unique_ptr<Jit> jit, Jit::create(*device));
  const AttentionOperation attention(*jit);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto drawn = [&](std::int64_t n) {
    Numbers out(n);
    for (float &x : out)
      x = bfloat16(normal(random));
    return out;
  };
  const Numbers q = drawn(batch * rows * heads * dim), k = drawn(q.size()), v = drawn(q.size());
  const std::vector<std::int64_t> shape = {batch, rows, heads, dim};
  KILN_ASSIGN(const OwnedTensor qOn, device->tensor(shape, DType::BF16, q));
  KILN_ASSIGN(const OwnedTensor kOn, device->tensor(shape, DType::BF16, k));
  KILN_ASSIGN(const OwnedTensor vOn, device->tensor(shape, DType::BF16, v));
  KILN_ASSIGN(const OwnedTensor o, device->empty(shape, DType::BF16));
  bool good = true;
  const auto run = [&](const char *name, const AttentionFunctions &functions, std::vector<Tensor> aux,
                       const std::optional<BlockMask> &blocks, const Wanted &wanted) -> Status {
    KILN_TRY(attention.run(
        {.q = qOn, .k = kOn, .v = vOn, .o = o, .functions = functions, .aux = std::move(aux), .blockMask = blocks}));
    KILN_ASSIGN(const Numbers result, o.toHost<float>());
    const double error = largestError(q, k, v, result, wanted);
    std::printf("%-16s largest error %.1e\n", name, error);
    good &= error < 0.02;
    return {};
  };

  std::vector<std::int32_t> ids(batch * rows), lengths = {40, 130};
  for (std::int64_t i = 0; i < batch * rows; ++i)
    ids[i] = static_cast<std::int32_t>(i / 70);
  const auto sameDocument = [&](auto b, auto, auto i, auto j) { return ids[b * rows + i] == ids[b * rows + j]; };
  KILN_ASSIGN(const OwnedTensor idsOn, device->tensor({batch, rows}, ids));
  KILN_TRY(run("documents", documents(), {idsOn}, {}, {{}, sameDocument}));

  KILN_ASSIGN(const OwnedTensor lengthsOn, device->tensor({batch}, lengths));
  KILN_TRY(run("prefixes", prefixes(), {lengthsOn}, {},
               {{}, [&](auto b, auto, auto i, auto j) { return j <= i || j < lengths[b]; }}));

  // Blocks of 64 x 64 pairs that the window hides are left out.
  const auto inWindow = [](auto, auto, auto i, auto j) { return j <= i && (j >= i - 50 || j < 4); };
  KILN_ASSIGN(const BlockMaskOnHost blocks, BlockMaskOnHost::from({1, 1, rows, rows}, {64, 64}, inWindow));
  KILN_ASSIGN(const OwnedBlockMask lists, blocks.upload(*device));
  KILN_TRY(run("sliding window", slidingWindow(50, 4), {}, lists.view(), {{}, inWindow}));
  std::printf("%lld of %lld blocks visited\n", static_cast<long long>(blocks.visited()),
              static_cast<long long>(blocks.rowBlocks() * blocks.keyBlocks()));

  const Numbers table = drawn(heads * rows);
  KILN_ASSIGN(const OwnedTensor tableOn, device->tensor({heads, rows}, DType::BF16, table));
  const Wanted biased{
      [&](double x, auto h, auto i, auto j) { return 20 * std::tanh((x + table[h * rows + i - j]) / 20); },
      [](auto, auto, auto i, auto j) { return j <= i; }};
  KILN_TRY(run("relative bias", relativeBias(), {tableOn}, {}, biased));
  KILN_ASSIGN(const AttentionFunctions text, relativeBiasAsText());
  KILN_TRY(run("as text", text, {tableOn}, {}, biased));
  return good;
}

int main(int argc, char **argv) {
  const Result<bool> good = compare(argc > 1 ? argv[1] : "auto");
  if (!good) {
    std::fprintf(stderr, "attention_functions: %s\n", good.status().toString().c_str());
    return good.status().exitCode();
  }
  return *good ? 0 : 1; // a bf16 near 4 is off by up to 0.008, and so are the weights before the sum
}
