//===- AttentionLargeTest.cpp - Attention: more than 2^16 keys; forward: 2^31 elements ---===//
//
// On a GPU only, as LargeTest.cpp.  The numbers are functions of the index, so that the host holds the slices alone
// that it compares with float64; of every other element it sees that it was written.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionBackwardHarness.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace kiln::test {
namespace {

using namespace kernels;

class LargeAttention : public AttentionBackward {
protected:
  void SetUp() override {
    AttentionForward::SetUp();
    if (on && on->emulated())
      GTEST_SKIP() << "more than 2^16 keys or 2^31 elements run on a GPU only: --device cuda:0";
  }
};

std::vector<Problem> problemsOfManyKeys() {
  std::vector<Problem> problems;
  for (unsigned number = 0; number < 8; ++number) {
    Problem p = with(number % 2 ? 5 : 70, 70003, number % 2 ? DType::F16 : DType::BF16);
    p.heads = 2, p.keyHeads = 1;
    p.causal = number / 2 % 2;
    p.left = number >= 4 ? 100 : -1;
    if (number == 5)
      p.lengthsQ = {3, 70}, p.lengthsK = {66000, 70001};
    problems.push_back(p);
  }
  return problems;
}

TEST_P(LargeAttention, MoreThan2To16Keys) {
  bothOfAll(problemsOfManyKeys());
}
TEST_P(LargeAttention, MoreThan2To16KeysBackward) {
  const std::vector<Problem> problems = problemsOfManyKeys();
  inParallel(problems.size(), [&](std::size_t i, std::mt19937_64 &engine) { all(problems[i], i % 2, engine); });
}

/// q, k and v are parts of one buffer: [tokens, heads, 128], each from another element on.
class OneBuffer {
public:
  static constexpr std::int64_t dim = 128, left = 63;
  static constexpr std::array<std::int64_t, 3> offsets = {0, 17 * dim, 41 * dim};

  OneBuffer(Opened &on, std::int64_t tokens, std::int64_t heads) : on(on), tokens(tokens), heads(heads), table(8192) {
    std::mt19937_64 random(11);
    std::normal_distribution<double> normal;
    Numbers values(table.size());
    for (double &v : values)
      v = rounded(normal(random), DType::F16);
    const Array halves = arrayOf(DType::F16, {values.size()}, values);
    std::memcpy(table.data(), halves.data.data(), halves.data.size());
    numbers = values;
    inputs = allocate(elements() + offsets.back(), 2);
    o = allocate(elements(), 2);
    lse = allocate(tokens * heads, 4);
    std::vector<std::uint16_t> part(1 << 25);
    for (std::int64_t at = 0; !testing::Test::HasFailure() && at < elements() + offsets.back();
         at += std::ssize(part)) {
      const auto n = std::min<std::int64_t>(std::ssize(part), elements() + offsets.back() - at);
      for (std::int64_t i = 0; i < n; ++i)
        part[static_cast<std::size_t>(i)] = table[placeOf(at + i)];
      const Status s = inputs->copyFromHost(static_cast<std::size_t>(2 * at),
                                            std::as_bytes(std::span(part).first(static_cast<std::size_t>(n))));
      EXPECT_TRUE(s.ok()) << s.toString();
    }
  }
  std::int64_t elements() const { return tokens * heads * dim; }
  double at(unsigned tensor, std::int64_t token, std::int64_t head, std::int64_t column) const {
    return numbers[placeOf((token * heads + head) * dim + column + offsets[tensor])];
  }

  /// One sequence, or two packed ones of which the second starts at `cut`.
  void run(std::int64_t cut) {
    ASSERT_TRUE(o->poison(outputPoison).ok() && lse->poison(outputPoison).ok());
    const auto cutOut = [&](Buffer &buffer, std::int64_t offset) {
      const std::vector<std::int64_t> shape = {1, tokens, heads, dim}, strides = {elements(), heads * dim, dim, 1};
      const std::span<const std::int64_t> extents(shape), steps(strides);
      auto t = Tensor::strided(*on.device, buffer, DType::F16, extents.subspan(cut ? 1 : 0), steps.subspan(cut ? 1 : 0),
                               static_cast<std::size_t>(2 * offset));
      EXPECT_TRUE(t.ok()) << t.status().toString();
      return t.ok() ? *t : Tensor();
    };
    AttentionArguments a;
    a.q = cutOut(*inputs, offsets[0]), a.k = cutOut(*inputs, offsets[1]), a.v = cutOut(*inputs, offsets[2]);
    a.o = cutOut(*o, 0);
    const std::vector<std::int64_t> shape = {1, heads, tokens}, strides = {tokens * heads, tokens, 1};
    auto logs = Tensor::strided(*on.device, *lse, DType::F32, std::span(shape).subspan(cut ? 1 : 0),
                                std::span(strides).subspan(cut ? 1 : 0), 0);
    ASSERT_TRUE(logs.ok()) << logs.status().toString();
    a.lse = *logs;
    a.windowLeft = left, a.windowRight = 0;
    Operand starts;
    if (cut) {
      starts = upload(*on.device, DType::I32, {3}, {0, static_cast<double>(cut), static_cast<double>(tokens)});
      a.cuQ = a.cuK = starts.tensor;
      a.maxQueries = tokens;
    }
    AttentionOperation operation(*on.jit);
    Status s = operation.run(a);
    ASSERT_TRUE(s.ok()) << s.toString();
    s = on.device->defaultStream().synchronize();
    ASSERT_TRUE(s.ok()) << s.toString();
  }

  /// The call that gives `rows` rows from `first` on of one head, in a sequence that starts at `start`.
  std::pair<Problem, Data> slice(std::int64_t start, std::int64_t first, std::int64_t rows, std::int64_t head) const {
    const std::int64_t firstKey = std::max(start, first - left);
    Problem p = with(rows, first + rows - firstKey, DType::F16);
    p.heads = p.keyHeads = 1, p.dim = p.dimV = dim, p.left = left, p.right = 0;
    Data d;
    for (std::int64_t i = 0; i < p.queries * dim; ++i)
      d.q.push_back(at(0, first + i / dim, head, i % dim));
    for (std::int64_t i = 0; i < p.keys * dim; ++i) {
      d.k.push_back(at(1, firstKey + i / dim, head, i % dim));
      d.v.push_back(at(2, firstKey + i / dim, head, i % dim));
    }
    return {p, d};
  }
  Results results(std::int64_t first, std::int64_t rows, std::int64_t head) const {
    Results out;
    for (std::int64_t i = 0; i < rows; ++i)
      read(*o, DType::F16, ((first + i) * heads + head) * dim, dim, out.o);
    read(*lse, DType::F32, head * tokens + first, rows, out.lse);
    return out;
  }
  /// Elements of o that nobody wrote.
  std::int64_t untouched() const {
    std::int64_t count = 0;
    std::vector<std::uint16_t> part(1 << 25);
    for (std::int64_t at = 0; at < elements(); at += std::ssize(part)) {
      part.resize(static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(part), elements() - at)));
      EXPECT_TRUE(o->copyToHost(static_cast<std::size_t>(2 * at), std::as_writable_bytes(std::span(part))).ok());
      count += std::count(part.begin(), part.end(), std::uint16_t(0xCDCD)); // -23.2 is no mean of normal numbers
    }
    return count;
  }

private:
  static std::size_t placeOf(std::int64_t i) {
    return static_cast<std::size_t>((i + (i >> 13) * 977 + (i >> 31)) & 8191);
  }
  std::unique_ptr<Buffer> allocate(std::int64_t count, std::int64_t bytes) {
    auto made = on.device->allocate(static_cast<std::size_t>(count * bytes));
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return made.ok() ? std::move(*made) : nullptr;
  }
  static void read(const Buffer &from, DType type, std::int64_t first, std::int64_t count, Numbers &to) {
    const std::size_t size = dtypeBytes(type);
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size);
    EXPECT_TRUE(from.copyToHost(static_cast<std::size_t>(first) * size, bytes).ok());
    for (std::size_t i = 0; i < bytes.size(); i += size)
      to.push_back(loadElement(&bytes[i], type));
  }

  Opened &on;
  const std::int64_t tokens, heads;
  std::vector<std::uint16_t> table;
  Numbers numbers;
  std::unique_ptr<Buffer> inputs, o, lse;
};

TEST_P(LargeAttention, MoreThan2To31Elements) {
  constexpr std::int64_t tokens = 131200, heads = 128, rows = 40; // token 131072 starts at element 2^31
  static_assert(tokens * heads * OneBuffer::dim > std::int64_t(1) << 31);
  OneBuffer call(*on, tokens, heads);
  for (const std::int64_t cut : {0, 1000}) {
    if (HasFailure())
      return;
    call.run(cut);
    EXPECT_EQ(call.untouched(), 0);
    for (const std::int64_t first : {std::int64_t(0), std::int64_t(1000), tokens / 2 - 20, tokens - 148, tokens - rows})
      for (const std::int64_t head : {std::int64_t(0), std::int64_t(1), heads - 1}) {
        SCOPED_TRACE("cut " + std::to_string(cut) + ", token " + std::to_string(first) + ", head " +
                     std::to_string(head));
        const auto [p, d] = call.slice(first >= cut ? cut : 0, first, rows, head);
        compare(p, d, call.results(first, rows, head));
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LargeAttention, testing::Values(0));

} // namespace
} // namespace kiln::test
