// wmma.load, wmma.mma, wmma.store: matrices in memory against the scalar statement of the model.  Fragments are opaque,
// so nothing looks into them.
#include "tests/emulator/MatrixReference.h"
#include "tests/emulator/PtxHarness.h"

#include "compiler/target/Target.h"
#include "support/Text.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace kiln;
using namespace kiln::test;

namespace {

struct Kind {
  std::string a, c, d; ///< types of A and B, of C, of D
  unsigned m, n, k;
  unsigned registersA, registersB;
  std::string modifier = {};

  std::string shape() const { return format("m%un%uk%u", m, n, k); }
  static unsigned bytesOf(const std::string &t) {
    return t == "f16" || t == "bf16" ? 2 : t == "s8" || t == "u8" ? 1 : t == "f64" ? 8 : 4;
  }
  unsigned registersC(const std::string &t) const { return t == "f16" ? 4 : m * n / 32; }
  std::string opcode(const std::string &layouts) const {
    const std::string types = a == "f16" ? d + "." + c : d + "." + a + "." + a + "." + c;
    return "wmma.mma.sync.aligned." + layouts + "." + shape() + "." + types + modifier;
  }
};

// Registers of each fragment as nvcc writes them.
const Kind kinds[] = {
    {"f16", "f32", "f32", 16, 16, 16, 8, 8},  {"f16", "f16", "f16", 16, 16, 16, 8, 8},
    {"f16", "f16", "f32", 16, 16, 16, 8, 8},  {"f16", "f32", "f16", 16, 16, 16, 8, 8},
    {"f16", "f32", "f32", 32, 8, 16, 8, 8},   {"f16", "f16", "f16", 32, 8, 16, 8, 8},
    {"f16", "f32", "f32", 8, 32, 16, 8, 8},   {"f16", "f16", "f16", 8, 32, 16, 8, 8},
    {"bf16", "f32", "f32", 16, 16, 16, 4, 4}, {"bf16", "f32", "f32", 32, 8, 16, 8, 2},
    {"bf16", "f32", "f32", 8, 32, 16, 2, 8},  {"tf32", "f32", "f32", 16, 16, 8, 4, 4},
    {"s8", "s32", "s32", 16, 16, 16, 2, 2},   {"u8", "s32", "s32", 32, 8, 16, 4, 1},
    {"s8", "s32", "s32", 8, 32, 16, 1, 4},    {"u8", "s32", "s32", 8, 32, 16, 1, 4, ".satfinite"},
    {"f64", "f64", "f64", 8, 8, 4, 1, 1},
};

FloatFormat formatOf(const std::string &t) {
  return t == "f16" ? f16Format : t == "bf16" ? bf16Format : t == "tf32" ? tf32Format : f32Format;
}

/// A matrix in memory: rows and columns, which of them is contiguous, elements from one line to the next.
struct Stored {
  unsigned rows, columns, bytes, stride;
  bool rowMajor;
  std::vector<std::uint8_t> data;

  Stored(unsigned rows, unsigned columns, unsigned bytes, bool rowMajor, unsigned padding)
      : rows(rows), columns(columns), bytes(bytes), stride((rowMajor ? columns : rows) + padding), rowMajor(rowMajor),
        data(std::size_t((rowMajor ? rows : columns) - 1) * stride * bytes + (rowMajor ? columns : rows) * bytes) {}
  std::uint8_t *at(unsigned row, unsigned column) {
    return data.data() + std::size_t(rowMajor ? row * stride + column : column * stride + row) * bytes;
  }
  std::uint64_t get(unsigned row, unsigned column) {
    std::uint64_t v = 0;
    std::memcpy(&v, at(row, column), bytes);
    return v;
  }
};

std::string vectorText(const char *prefix, unsigned count) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < count; ++i)
    names.push_back(prefix + std::to_string(i));
  return "{" + join(names, ", ") + "}";
}

std::string kernelOf(const Kind &k, const Stored &a, const Stored &b, const Stored &c, const Stored &d, bool shared) {
  const bool wide = k.a == "f64";
  std::string s = ".reg ." + std::string(wide ? "b64" : "b32") + " %a<8>; .reg ." + (wide ? "b64" : "b32") + " %b<8>;" +
                  ".reg ." + (wide ? "f64" : "b32") + " %c<8>; .reg ." + (wide ? "f64" : "b32") + " %d<8>;\n" +
                  "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u64 %rd4, [d];\n";
  auto side = [](const Stored &m) { return std::string(m.rowMajor ? "row" : "col"); };
  std::string space = ".global";
  if (shared) { // A goes by way of shared memory
    s +=
        format(".shared .align 32 .b8 tile[%zu]; mov.u32 %%r1, %%tid.x; mov.u32 %%r2, tile; add.u32 %%r2, %%r2, %%r1;\n"
               "cvt.u64.u32 %%rd5, %%r1; add.u64 %%rd5, %%rd5, %%rd1; mov.u32 %%r4, %zu;\n"
               "L: setp.ge.u32 %%p1, %%r1, %%r4; @%%p1 bra E; ld.global.u8 %%r3, [%%rd5]; st.shared.u8 [%%r2], %%r3;\n"
               "add.u32 %%r1, %%r1, 32; add.u32 %%r2, %%r2, 32; add.u64 %%rd5, %%rd5, 32; bra L;\n"
               "E: bar.warp.sync 0xffffffff; mov.u32 %%r5, tile;\n",
               a.data.size(), a.data.size());
    space = ".shared";
  }
  s += "mov.u32 %r10, " + std::to_string(a.stride) + ";\n";
  s += "wmma.load.a.sync.aligned." + side(a) + "." + k.shape() + space + "." + k.a + " " +
       vectorText("%a", k.registersA) + ", [" + (shared ? "%r5" : "%rd1") + "], %r10;\n";
  s += "wmma.load.b.sync.aligned." + side(b) + "." + k.shape() + "." + k.a + " " + vectorText("%b", k.registersB) +
       ", [%rd2], " + std::to_string(b.stride) + ";\n";
  const bool tight = c.stride == (c.rowMajor ? c.columns : c.rows); // then the stride may be left out
  s += "wmma.load.c.sync.aligned." + side(c) + "." + k.shape() + ".global." + k.c + " " +
       vectorText("%c", k.registersC(k.c)) + ", [%rd3]" + (tight ? "" : ", " + std::to_string(c.stride)) + ";\n";
  s += k.opcode(side(a) + "." + side(b)) + " " + vectorText("%d", k.registersC(k.d)) + ", " +
       vectorText("%a", k.registersA) + ", " + vectorText("%b", k.registersB) + ", " +
       vectorText("%c", k.registersC(k.c)) + ";\n";
  s += "wmma.store.d.sync.aligned." + side(d) + "." + k.shape() + "." + k.d + " [%rd4], " +
       vectorText("%d", k.registersC(k.d)) + ", " + std::to_string(d.stride) + ";\n";
  return kernelText(".param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d", s, "sm_75");
}

std::uint64_t expectedOf(const Kind &k, Stored &a, Stored &b, Stored &c, unsigned i, unsigned j, unsigned sm) {
  if (k.a == "f64") {
    auto value = [](std::uint64_t bits) { return std::bit_cast<double>(bits); };
    double sum = value(c.get(i, j));
    for (unsigned x = 0; x < k.k; ++x)
      sum = std::fma(value(a.get(i, x)), value(b.get(x, j)), sum);
    return std::bit_cast<std::uint64_t>(sum);
  }
  if (k.d == "s32") {
    std::int64_t sum = static_cast<std::int32_t>(c.get(i, j));
    for (unsigned x = 0; x < k.k; ++x) {
      const auto va = a.get(i, x), vb = b.get(x, j);
      sum += k.a == "s8" ? std::int64_t(static_cast<std::int8_t>(va)) * static_cast<std::int8_t>(vb)
                         : static_cast<std::int64_t>(va * vb);
    }
    if (!k.modifier.empty())
      sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
    return static_cast<std::uint32_t>(sum);
  }
  const bool old = sm < 90;
  const ReferenceModel m{formatOf(k.a),
                         formatOf(k.a),
                         formatOf(k.c),
                         formatOf(k.d),
                         old ? 24 : 25,
                         23,
                         old ? 16 / Kind::bytesOf(k.a) : k.k};
  std::vector<std::uint32_t> row, column;
  for (unsigned x = 0; x < k.k; ++x) {
    row.push_back(static_cast<std::uint32_t>(a.get(i, x)));
    column.push_back(static_cast<std::uint32_t>(b.get(x, j)));
  }
  return referenceDot(m, row, column, static_cast<std::uint32_t>(c.get(i, j)));
}

void fill(Stored &m, const std::string &type, std::mt19937 &random) {
  for (std::uint8_t &v : m.data)
    v = static_cast<std::uint8_t>(random());
  for (unsigned i = 0; i < m.rows; ++i)
    for (unsigned j = 0; j < m.columns; ++j) {
      if (type == "f64") {
        const double v = std::ldexp(double(random()) - 0x1p31, int(random() % 8) - 30);
        std::memcpy(m.at(i, j), &v, 8);
      } else if (type[0] != 's' && type[0] != 'u') {
        const FloatFormat f = formatOf(type);
        const int bias = (1 << (f.exponentBits - 1)) - 1;
        const std::uint32_t bits =
            static_cast<std::uint32_t>(bias + int(random() % 9) - 5) << (f.skip + f.fractionBits) |
            (random() & ((1u << (f.skip + f.fractionBits)) - 1)) | (random() & 1) << (f.bits - 1);
        std::memcpy(m.at(i, j), &bits, m.bytes);
      }
    }
}

} // namespace

TEST(Wmma, EveryShapeTypeAndLayout) {
  std::mt19937 random(3);
  unsigned layouts = 0;
  for (const Kind &k : kinds)
    for (const char *target : {"sm_80", "sm_90"})
      for (unsigned round = 0; round < 4; ++round, ++layouts) {
        const unsigned bytes = Kind::bytesOf(k.a), sm = static_cast<unsigned>(std::stoi(target + 3));
        const unsigned padding = round % 2 ? 16 / bytes : 0;
        Stored a(k.m, k.k, bytes, layouts & 1, k.k * bytes % 16 ? 16 / bytes : padding);
        Stored b(k.k, k.n, bytes, layouts & 2, k.k * bytes % 16 ? 16 / bytes : padding);
        Stored c(k.m, k.n, Kind::bytesOf(k.c), round & 2, round == 1 ? 8 : 0),
            d(k.m, k.n, Kind::bytesOf(k.d), !(round & 1), 8);
        fill(a, k.a, random);
        fill(b, k.a, random);
        fill(c, k.c, random);
        if (!k.modifier.empty()) // near the limit
          for (unsigned i = 0; i < k.m; ++i)
            for (unsigned j = 0; j < k.n; ++j) {
              const std::uint32_t v = 0x7fffffff - random() % 300000;
              std::memcpy(c.at(i, j), &v, 4);
            }
        for (const std::string &level : usableLevels()) {
          EmulatorOptions options;
          options.cpuLevel = level;
          options.hostThreads = 1;
          Emulator gpu(target, options);
          Buffer &from = gpu.upload(a.data, "a"), &and_ = gpu.upload(b.data, "b"), &plus = gpu.upload(c.data, "c");
          std::vector<std::uint8_t> untouched(d.data.size(), 0x5A);
          Buffer &to = gpu.upload(untouched, "d");
          const Launched r = gpu.run(kernelOf(k, a, b, c, d, round >= 2), {1}, {32}, {from, and_, plus, to});
          ASSERT_TRUE(r.clean()) << k.opcode("?") << " on " << target << ": " << r.text();
          d.data = gpu.download<std::uint8_t>(to);
          for (unsigned i = 0; i < k.m; ++i)
            for (unsigned j = 0; j < k.n; ++j)
              ASSERT_EQ(d.get(i, j), expectedOf(k, a, b, c, i, j, sm))
                  << k.opcode("?") << " on " << target << " " << level << " round " << round << " at " << i << " " << j;
          for (unsigned line = 0; line + 1 < (d.rowMajor ? k.m : k.n); ++line)
            for (unsigned p = 0; p < 8 * d.bytes; ++p)
              ASSERT_EQ(d.data[(std::size_t(line) * d.stride + d.stride - 8) * d.bytes + p], 0x5A); // between the lines
        }
      }
}
