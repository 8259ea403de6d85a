#include "tests/kernels/AttentionDecodeHarness.h"

#include "tests/kernels/PoisonedWorkspace.h"

#include "kernels/support/Rounding.h"
#include "tests/support/TestTier.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace kiln::test {

using namespace kernels;

namespace {

std::size_t size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

std::vector<std::byte> bytesOf(const Operand &of) {
  std::vector<std::byte> out(of.buffer->size());
  EXPECT_TRUE(of.buffer->copyToHost(0, out).ok());
  return out;
}

/// Row `position` of the tables applied to each head of a token.
void rotate(const DecodeProblem &p, const DecodeData &d, double *token, std::int64_t heads, std::int64_t position,
            bool isRounded) {
  const std::int64_t half = p.rotary / 2;
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t t = 0; t < half; ++t) {
      double *const x = token + h * p.of.dim;
      double &a = x[p.interleaved ? 2 * t : t], &b = x[p.interleaved ? 2 * t + 1 : t + half];
      const double c = d.cosines[size(position * half + t)], s = d.sines[size(position * half + t)];
      const double first = a * c - b * s, second = a * s + b * c;
      a = isRounded ? rounded(first, p.of.type) : first, b = isRounded ? rounded(second, p.of.type) : second;
    }
}

/// One sequence as the definition takes it.
Problem sequenceOf(const DecodeProblem &p, std::int64_t b) {
  Problem out = p.of;
  out.batch = 1, out.keys = p.cached(b) + p.newTokens;
  return out;
}

/// With what is rotated as the cache has it, or exact.
Data dataOf(const DecodeProblem &p, const DecodeData &d, std::int64_t b, bool isRounded) {
  Data out = d.keys[size(b)];
  const std::int64_t row = p.of.heads * p.of.dim, first = b * p.of.queries * row;
  out.q.assign(d.q.begin() + first, d.q.begin() + first + p.of.queries * row);
  for (std::int64_t i = 0; p.rotary && i < p.of.queries; ++i)
    rotate(p, d, &out.q[size(i * row)], p.of.heads, p.cached(b) + (p.masked() ? i : 0), isRounded);
  for (std::int64_t t = 0; p.rotary && t < p.newTokens; ++t)
    rotate(p, d, &out.k[size((p.cached(b) + t) * p.of.keyHeads * p.of.dim)], p.of.keyHeads, p.cached(b) + t, isRounded);
  return out;
}

} // namespace

std::string DecodeProblem::text() const {
  std::string out = of.text() + " lengths";
  for (std::int64_t b = 0; b < of.batch; ++b)
    out += " " + std::to_string(cached(b));
  const auto add = [&](const char *name, std::int64_t n) { out += n ? std::string(name) + std::to_string(n) : ""; };
  add(" page ", pageSize), add(" new ", newTokens), add(" rotary ", rotary), add(" splits ", splits);
  return out + (interleaved ? " interleaved" : "") + (leftPad.empty() ? "" : " leftpad") +
         (batchIndex.empty() ? "" : " batch_idx");
}

DecodeProblem decoding(std::int64_t tokens, std::vector<std::int64_t> lengths, DType type) {
  DecodeProblem p;
  p.of.type = type, p.of.queries = tokens, p.of.batch = std::ssize(lengths);
  p.of.keys = *std::ranges::max_element(lengths) + 7; // rows after the longest are no keys either
  p.of.heads = 4, p.of.keyHeads = 1;
  p.lengths = std::move(lengths);
  return p;
}

DecodeData randomDecodeData(const DecodeProblem &p, std::mt19937_64 &random) {
  DecodeData d;
  Problem all = p.of;
  all.keys = 0;
  d.q = randomData(all, random).q;
  for (std::int64_t b = 0; b < p.of.batch; ++b) {
    d.keys.push_back(randomData(sequenceOf(p, b), random));
    d.keys.back().sink = d.keys.front().sink;
  }
  for (std::int64_t i = 0; i < p.positions() * (p.rotary / 2); ++i) {
    // Of few bits: fp32 holds a rotated number exactly, so that it is rounded here as the kernel rounds it.
    const double angle = std::uniform_real_distribution<double>(0, 6)(random);
    d.cosines.push_back(std::round(32 * std::cos(angle)) / 32),
        d.sines.push_back(std::round(32 * std::sin(angle)) / 32);
  }
  return d;
}

DecodeData decodeProbe(const DecodeProblem &p, std::int64_t by, std::mt19937_64 &random) {
  DecodeData d = randomDecodeData(p, random);
  d.isProbe = true;
  std::fill(d.q.begin(), d.q.end(), 0.0);
  for (std::int64_t b = 0; b < p.of.batch; ++b) {
    const Problem one = sequenceOf(p, b);
    Data &keys = d.keys[size(b)];
    keys.v = probeData(one, by, random).v;
    std::fill(keys.alibi.begin(), keys.alibi.end(), 0.0);
  }
  return d;
}

PreparedDecode prepare(Device &device, const DecodeProblem &p, const DecodeData &d, std::mt19937_64 &random) {
  PreparedDecode out;
  const Problem &of = p.of;
  AttentionDecodeArguments &a = out.arguments;
  const auto table = [&](std::optional<Tensor> &to, const std::vector<std::int64_t> &shape, const Numbers &values,
                         DType type = DType::I32) {
    out.tables.push_back(upload(device, type, shape, values));
    to = out.tables.back().tensor;
  };
  // Where rows lie: pages in any order, one of them nobody's.
  const std::int64_t pages = p.pageSize ? (of.keys + p.pageSize - 1) / p.pageSize : 0,
                     parts = p.pageSize             ? of.batch * pages + 1
                             : p.batchIndex.empty() ? of.batch
                                                    : *std::ranges::max_element(p.batchIndex) + 2,
                     rows = p.pageSize ? p.pageSize : of.keys;
  std::vector<std::size_t> order(size(parts));
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random);
  Numbers entries;
  for (std::int64_t b = 0; b < of.batch; ++b) {
    std::vector<std::size_t> &rowOf = out.rowOf.emplace_back();
    const std::int64_t keys = p.cached(b) + p.newTokens, pad = p.leftPad.empty() ? 0 : p.leftPad[size(b)];
    for (std::int64_t t = pad; t < pad + keys; ++t)
      rowOf.push_back((p.pageSize             ? order[size(b * pages + t / rows)]
                       : p.batchIndex.empty() ? size(b)
                                              : size(p.batchIndex[size(b)])) *
                          size(rows) +
                      size(t % rows));
    for (std::int64_t n = 0; n < pages; ++n)
      entries.push_back(n * rows < pad + keys ? double(order[size(b * pages + n)])
                                              : (n % 2 ? 0x7fffffff : -0x7ffffff0));
  }
  if (p.pageSize)
    table(a.pageTable, {of.batch, pages}, entries);
  const auto cacheOf = [&](std::int64_t width, Numbers Data::*values) {
    const auto row = size(of.keyHeads * width);
    Numbers all(size(parts * rows) * row, NAN);
    for (std::int64_t b = 0; b < of.batch; ++b)
      for (std::size_t t = 0; t < size(p.cached(b)); ++t)
        std::copy_n((d.keys[size(b)].*values).begin() + std::ptrdiff_t(t * row), row,
                    all.begin() + std::ptrdiff_t(out.rowOf[size(b)][t] * row));
    return upload(device, of.type, {parts, rows, of.keyHeads, width}, all,
                  {.dims = of.order, .pad = of.pad, .around = of.around});
  };
  const auto newOf = [&](std::int64_t width, Numbers Data::*values) {
    Numbers all;
    for (std::int64_t b = 0; b < of.batch; ++b) {
      const Numbers &keys = d.keys[size(b)].*values;
      all.insert(all.end(), keys.begin() + p.cached(b) * of.keyHeads * width, keys.end());
    }
    return upload(device, of.type, {of.batch, p.newTokens, of.keyHeads, width}, all);
  };
  MemoryOrder around;
  around.around = of.around;
  out.q = upload(device, of.type, {of.batch, of.queries, of.heads, of.dim}, d.q, {.dims = of.order});
  out.kCache = cacheOf(of.dim, &Data::k), out.vCache = cacheOf(of.dimV, &Data::v);
  out.o = allocateOutput(device, of.output(), {of.batch, of.queries, of.heads, of.dimV},
                         {.dims = of.order, .pad = of.pad, .around = of.around});
  out.lse = allocateOutput(device, DType::F32, {of.batch, of.heads, of.queries}, around);
  a.q = out.q.tensor, a.kCache = out.kCache.tensor, a.vCache = out.vCache.tensor, a.o = out.o.tensor;
  if (of.lse)
    a.lse = out.lse.tensor;
  if (p.newTokens) {
    out.kNew = newOf(of.dim, &Data::k), out.vNew = newOf(of.dimV, &Data::v);
    a.kNew = out.kNew.tensor, a.vNew = out.vNew.tensor;
  }
  if (p.rotary) {
    const std::vector<std::int64_t> shape = {p.positions(), p.rotary / 2};
    table(a.rotaryCos, shape, d.cosines, p.anglesAsQ ? of.type : DType::F32);
    table(a.rotarySin, shape, d.sines, p.anglesAsQ ? of.type : DType::F32);
  }
  a.rotaryInterleaved = p.interleaved;
  for (const auto &[to, values] : {std::pair(&a.cacheSeqlens, &p.lengths), std::pair(&a.leftPadK, &p.leftPad),
                                   std::pair(&a.cacheBatchIdx, &p.batchIndex)})
    if (!values->empty())
      table(*to, {of.batch}, Numbers(values->begin(), values->end()));
  if (of.sink)
    table(a.sink, {of.heads}, d.keys.front().sink, DType::F32);
  if (of.alibi) {
    Numbers slopes;
    for (const Data &keys : d.keys)
      slopes.insert(slopes.end(), keys.alibi.begin(), keys.alibi.end());
    table(a.alibi, {of.batch, of.heads}, slopes, DType::F32);
  }
  for (const auto &[to, factors] : {std::pair(&a.descaleQ, &Data::descaleQ), std::pair(&a.descaleK, &Data::descaleK),
                                    std::pair(&a.descaleV, &Data::descaleV)}) {
    Numbers all;
    for (const Data &keys : d.keys)
      all.insert(all.end(), (keys.*factors).begin(), (keys.*factors).end());
    if (of.descale)
      table(*to, {of.batch, of.keyHeads}, all, DType::F32);
  }
  if (of.scale > 0)
    a.scale = of.scale;
  a.causal = of.causal, a.windowLeft = of.left, a.windowRight = of.right, a.softcap = of.softcap;
  a.splits = p.splits, a.tiling = p.tiling;
  return out;
}

Results define(const DecodeProblem &p, const DecodeData &d, bool roundSteps) {
  Results out;
  for (std::int64_t b = 0; b < p.of.batch; ++b) {
    const Results one = define(sequenceOf(p, b), dataOf(p, d, b, /*isRounded=*/true), roundSteps);
    for (const auto &[to, from] :
         {std::pair(&out.o, &one.o), std::pair(&out.lse, &one.lse), std::pair(&out.slack, &one.slack)})
      to->insert(to->end(), from->begin(), from->end());
  }
  return out;
}

Results AttentionDecode::run(const PreparedDecode &call, const std::function<Status()> &launch) {
  const Status s = launch ? launch() : runInPoison(*on->device, AttentionDecodeOperation(*on->jit), call.arguments);
  EXPECT_TRUE(s.ok()) << s.toString();
  for (const Finding &f : on->device->takeFindings())
    ADD_FAILURE() << f.toString();
  return {download(call.o), download(call.lse)};
}

namespace {

/// The cache has the new rows, and all other bytes that it had.
void checkCache(const DecodeProblem &p, const DecodeData &d, const PreparedDecode &call, bool isKey,
                const std::vector<std::byte> &before) {
  const std::vector<std::byte> after = bytesOf(isKey ? call.kCache : call.vCache);
  const std::int64_t width = isKey ? p.of.dim : p.of.dimV, row = p.of.keyHeads * width;
  const std::size_t bytes = dtypeBytes(p.of.type), rowBytes = size(row) * bytes, rows = before.size() / rowBytes;
  std::vector<bool> isNew(rows);
  for (std::int64_t b = 0; b < p.of.batch; ++b) {
    const Data exact = dataOf(p, d, b, /*isRounded=*/false);
    for (std::int64_t t = 0; t < p.newTokens; ++t) {
      const std::size_t to = call.rowOf[size(b)][size(p.cached(b) + t)];
      isNew[to] = true;
      for (std::int64_t c = 0; c < row; ++c) {
        const double want = (isKey ? exact.k : exact.v)[size((p.cached(b) + t) * row + c)],
                     is = loadElement(&after[to * rowBytes + size(c) * bytes], p.of.type);
        // Rotated and rounded: one unit in the last place; else as it was given.
        ASSERT_NEAR(is, want, isKey && c % width < p.rotary ? ulp(want, p.of.type) : 0)
            << p.text() << ": sequence " << b << ", new row " << t << ", " << (isKey ? "k " : "v ") << c;
      }
    }
  }
  for (std::size_t to = 0; to < rows; ++to)
    if (!isNew[to])
      ASSERT_EQ(std::memcmp(&before[to * rowBytes], &after[to * rowBytes], rowBytes), 0)
          << p.text() << ": row " << to << " of the cache is not what it was";
}

} // namespace

Results AttentionDecode::runAndCheckCache(const DecodeProblem &p, const DecodeData &d, PreparedDecode &call,
                                          const std::function<Status()> &launch) {
  const std::vector<std::byte> keys = bytesOf(call.kCache), values = bytesOf(call.vCache);
  Results got = run(call, launch);
  checkCache(p, d, call, true, keys);
  checkCache(p, d, call, false, values);
  return got;
}

void AttentionDecode::both(const DecodeProblem &p) {
  SCOPED_TRACE(deviceName() + ": " + p.text());
  const DecodeData d = randomDecodeData(p, random);
  PreparedDecode call = prepare(*on->device, p, d, random);
  compare(p.of, define(p, d), define(p, d, /*roundSteps=*/true), runAndCheckCache(p, d, call));
  for (const std::int64_t by : {std::int64_t(0), p.of.dimV / 2}) {
    if (p.of.sink)
      break;
    const DecodeData probe = decodeProbe(p, by, random);
    compareProbe(p.of, define(p, probe), run(prepare(*on->device, p, probe, random)));
  }
}

void AttentionDecode::underEverySchedule(const DecodeProblem &p) {
  const std::string name = deviceName();
  const TemporaryDirectory folder;
  const DecodeData d = randomDecodeData(p, random);
  const auto runOn = [&](Opened &device) {
    std::mt19937_64 places(5);
    PreparedDecode call = prepare(*device.device, p, d, places);
    Opened *const before = std::exchange(on, &device);
    Results got = runAndCheckCache(p, d, call);
    on = before;
    return got;
  };
  const Results usual = runOn(*on);
  compare(p.of, define(p, d), define(p, d, /*roundSteps=*/true), usual);
  const auto again = [&](const Opening &how, const std::string &what) {
    SCOPED_TRACE(name + " " + what);
    const std::unique_ptr<Opened> other = openWith(name, how);
    ASSERT_TRUE(other);
    const Results got = runOn(*other);
    ASSERT_EQ(got.o, usual.o);
    ASSERT_EQ(got.lse, usual.lse);
  };
  const bool emulated = on->emulated();
  for (const Schedule schedule : {Schedule::Random, Schedule::Adversarial})
    for (std::uint64_t seed = 0; emulated && seed < pick(1u, 20u) && !HasFailure(); ++seed) {
      Opening how{{}, folder.path() + "/kernels", ""};
      how.emulator.schedule = schedule;
      how.emulator.seed = GetParam() + seed;
      again(how, std::string(scheduleName(schedule)) + " " + std::to_string(seed));
    }
  again({{}, folder.path() + "/kernels", "1"}, "KILN_STRESS=1");

  std::mt19937_64 places(5);
  const PreparedDecode call = prepare(*on->device, p, d, places);
  AttentionDecodeOperation operation(*on->jit);
  const std::size_t bytes = operation.workspaceBytes(call.arguments);
  const std::int64_t rows = p.of.batch * p.splits * p.of.heads * p.of.queries;
  EXPECT_GE(bytes, static_cast<std::size_t>(rows * (p.of.dimV + 1)) * sizeof(float)); // columns and a sum
  auto workspace = on->device->allocate(bytes);
  ASSERT_TRUE(workspace.ok());
  ASSERT_TRUE((*workspace)->copyFromHost(0, std::vector<std::byte>(bytes, besideInputs)).ok());
  const Status s = operation.run(call.arguments, {.workspace = (*workspace)->address(), .workspaceBytes = bytes});
  ASSERT_TRUE(s.ok()) << s.toString();
  EXPECT_EQ(download(call.o), usual.o);
  EXPECT_EQ(download(call.lse), usual.lse);
}

} // namespace kiln::test
