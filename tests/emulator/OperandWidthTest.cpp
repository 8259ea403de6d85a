// Registers wider than the type of the instruction, which PTX allows for ld, st and cvt: every pair of types and every
// pair of register widths of cvt, every type, width and vector of ld and st, through the decoder, with other values in
// every lane and bits above the type that must not matter; whole warps, guards and diverged lanes.
#include "tests/emulator/PtxHarness.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace kiln;
using namespace kiln::test;

namespace {

using U8 = std::uint8_t;
using U64 = std::uint64_t;
using I64 = std::int64_t;

constexpr unsigned lanes = 32;
constexpr unsigned registerWidths[] = {2, 4, 8};
/// Lanes that execute under a guard or after a branch.
constexpr std::uint32_t someLanes = 0x9C35A1E6;

enum class Masked { No, Guard, Branch };
constexpr Masked maskings[] = {Masked::No, Masked::Guard, Masked::Branch};
bool executes(Masked m, unsigned lane) {
  return m == Masked::No || someLanes >> lane & 1;
}

U64 lowBytes(U64 v, unsigned bytes) {
  return bytes == 8 ? v : v & ((U64(1) << 8 * bytes) - 1);
}
I64 signExtended(U64 v, unsigned bytes) {
  const unsigned shift = 64 - 8 * bytes;
  return static_cast<I64>(v << shift) >> shift;
}

std::string registerOf(unsigned bytes, unsigned n) {
  return (bytes == 2 ? "%h" : bytes == 4 ? "%r" : "%rd") + std::to_string(n);
}
std::string bits(unsigned bytes) {
  return "b" + std::to_string(8 * bytes);
}

/// `instruction` for the lanes that `m` says.  %p1: they.
std::string masked(Masked m, const std::string &instruction, unsigned n) {
  if (m == Masked::No)
    return instruction + "\n";
  if (m == Masked::Guard)
    return "@%p1 " + instruction + "\n";
  const std::string label = "SKIP" + std::to_string(n);
  return "@!%p1 bra " + label + "; " + instruction + "\n" + label + ":\n";
}

/// %rd40 + 8 * lane of `in`, the same of `old` in %rd41 and of `out` in %rd42; %r40 = lane, %p1 = it is one of some.
const std::string prologue = R"(
    ld.param.u64 %rd40, [in]; ld.param.u64 %rd41, [old]; ld.param.u64 %rd42, [out]; mov.u32 %r40, %laneid;
    mul.wide.u32 %rd43, %r40, 8; add.u64 %rd40, %rd40, %rd43; add.u64 %rd41, %rd41, %rd43; add.u64 %rd42, %rd42, %rd43;
    shr.u32 %r41, )" + std::to_string(someLanes) +
                             R"(, %r40; and.b32 %r41, %r41, 1; setp.ne.u32 %p1, %r41, 0;
)";
const std::string parameters = ".param .u64 in, .param .u64 old, .param .u64 out";

struct ScalarType {
  const char *name;
  unsigned bytes;
  char kind; ///< u, s, f, b
};
constexpr ScalarType convertible[] = {{"u8", 1, 'u'},  {"s8", 1, 's'},  {"u16", 2, 'u'}, {"s16", 2, 's'},
                                      {"u32", 4, 'u'}, {"s32", 4, 's'}, {"u64", 8, 'u'}, {"s64", 8, 's'},
                                      {"f16", 2, 'f'}, {"f32", 4, 'f'}, {"f64", 8, 'f'}};

/// A whole number below 1024 as a float of so many bytes.
U64 floatBits(I64 v, unsigned bytes) {
  U64 b = 0;
  if (bytes == 8) {
    const auto d = static_cast<double>(v);
    std::memcpy(&b, &d, 8);
  } else if (bytes == 4) {
    const auto f = static_cast<float>(v);
    std::memcpy(&b, &f, 4);
  } else if (v) {
    const U64 magnitude = static_cast<U64>(std::abs(v));
    const unsigned exponent = 63 - static_cast<unsigned>(__builtin_clzll(magnitude));
    b = U64(v < 0) << 15 | U64(15 + exponent) << 10 | (magnitude << (10 - exponent) & 0x3ff);
  }
  return b;
}

struct Conversion {
  ScalarType to, from;
  unsigned toBytes, fromBytes; ///< of the registers
  bool saturates;
  std::string opcode() const {
    const bool rounds = to.kind == 'f' && (from.kind != 'f' || to.bytes < from.bytes);
    const bool cuts = to.kind != 'f' && from.kind == 'f';
    return std::string(saturates ? "cvt.sat."
                       : rounds  ? "cvt.rn."
                       : cuts    ? "cvt.rzi."
                                 : "cvt.") +
           to.name + "." + from.name;
  }
  /// The number that the low bits of a source register hold, as the tests choose them.
  I64 number(U64 source) const {
    return from.kind == 's' ? signExtended(source, from.bytes) : static_cast<I64>(lowBytes(source, from.bytes));
  }
  U64 expected(U64 source, I64 whole) const {
    U64 v;
    if (to.kind == 'f')
      return floatBits(whole, to.bytes);
    if (from.kind == 'f' || saturates) {
      __int128 x = from.kind == 'f' ? whole : number(source);
      if (from.kind == 'u')
        x = lowBytes(source, from.bytes);
      const __int128 high = (__int128(1) << (8 * to.bytes - (to.kind == 's'))) - 1,
                     low = to.kind == 's' ? -high - 1 : 0;
      v = static_cast<U64>(std::clamp(x, low, high));
    } else {
      v = static_cast<U64>(number(source));
    }
    v = to.kind == 's' ? static_cast<U64>(signExtended(v, to.bytes)) : lowBytes(v, to.bytes);
    return lowBytes(v, toBytes);
  }
};

std::vector<Conversion> conversions() {
  std::vector<Conversion> out;
  for (const ScalarType &d : convertible)
    for (const ScalarType &s : convertible)
      for (unsigned to : registerWidths)
        for (unsigned from : registerWidths)
          if (to >= d.bytes && from >= s.bytes) {
            out.push_back({d, s, to, from, false});
            // Where the destination does not hold every value of the source; else the assembler takes no .sat.
            const bool holds = d.kind == s.kind ? d.bytes >= s.bytes : d.kind == 's' && d.bytes > s.bytes;
            if (d.kind != 'f' && s.kind != 'f' && !holds)
              out.push_back({d, s, to, from, true});
          }
  return out;
}

} // namespace

TEST(OperandWidth, EveryConversion) {
  const std::vector<Conversion> all = conversions();
  ASSERT_EQ(all.size(), 767u);
  std::mt19937_64 rng(31);
  for (Masked m : maskings) {
    std::vector<U64> in(all.size() * lanes), old(in.size());
    std::vector<I64> whole(in.size());
    std::string body = prologue;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Conversion &c = all[i];
      for (unsigned l = 0; l < lanes; ++l) {
        const std::size_t at = i * lanes + l;
        in[at] = rng();
        old[at] = rng();
        if (c.to.kind == 'f' || c.from.kind == 'f') { // exact in every format
          const bool isNegative = c.from.kind != 'u' && rng() & 1;
          whole[at] = static_cast<I64>((c.from.bytes == 1 ? l * 3 : l * 29) + rng() % 3) * (isNegative ? -1 : 1);
          const U64 value = c.from.kind == 'f' ? floatBits(whole[at], c.from.bytes) : static_cast<U64>(whole[at]);
          in[at] = (in[at] & ~lowBytes(~U64(0), c.from.bytes)) | lowBytes(value, c.from.bytes);
        }
      }
      const std::string offset = "+" + std::to_string(i * lanes * 8) + "]";
      const std::string d = registerOf(c.toBytes, 1), s = registerOf(c.fromBytes, 2);
      body += "ld.global." + bits(c.fromBytes) + " " + s + ", [%rd40" + offset + "; ld.global." + bits(c.toBytes) +
              " " + d + ", [%rd41" + offset + ";\n" + masked(m, c.opcode() + " " + d + ", " + s + ";", unsigned(i)) +
              "st.global." + bits(c.toBytes) + " [%rd42" + offset + ", " + d + ";\n";
    }
    Emulator gpu("sm_90a");
    auto &out = gpu.upload(std::vector<U64>(in.size(), 0), "out");
    const Launched r = gpu.run(kernelText(parameters, body), {1}, {lanes}, {gpu.upload(in), gpu.upload(old), out});
    ASSERT_TRUE(r.clean()) << r.text();
    const std::vector<U64> got = gpu.download<U64>(out);
    for (std::size_t i = 0; i < all.size(); ++i)
      for (unsigned l = 0; l < lanes; ++l) {
        const Conversion &c = all[i];
        const std::size_t at = i * lanes + l;
        const U64 expected =
            executes(m, l) ? lowBytes(c.expected(in[at], whole[at]), c.toBytes) : lowBytes(old[at], c.toBytes);
        ASSERT_EQ(got[at], expected) << c.opcode() << " from " << 8 * c.fromBytes << " to " << 8 * c.toBytes
                                     << " bits, lane " << l << ", masking " << int(m) << ", source " << std::hex
                                     << in[at];
      }
  }
}

// Forms of two and three sources: a 64-bit register each, in turn.
TEST(OperandWidth, ConversionsThatPack) {
  std::mt19937_64 rng(37);
  std::vector<U64> in(3 * lanes);
  for (unsigned i = 0; i < in.size(); ++i) {
    const auto small = static_cast<I64>(rng() % 200) - 100;
    in[i] = (rng() & ~U64(0xffffffff)) | lowBytes(static_cast<U64>(small), 4);
  }
  Emulator gpu("sm_90a");
  auto &out = gpu.upload(std::vector<U64>(8 * lanes, 0), "out");
  std::string body = prologue + "ld.global.b64 %rd1, [%rd40]; ld.global.b64 %rd2, [%rd40+256]; ld.global.b64 %rd3, "
                                "[%rd40+512]; ld.global.b32 %r1, [%rd40]; ld.global.b32 %r2, [%rd40+256];\n";
  const char *const sources[] = {"%rd1, %r2", "%r1, %rd2", "%rd1, %rd2"};
  for (unsigned i = 0; i < 3; ++i) {
    const std::string offset = std::to_string(256 * i) + "]";
    body += std::string("cvt.pack.sat.s16.s32 %r10, ") + sources[i] + "; st.global.u32 [%rd42+" + offset + ", %r10;\n" +
            "cvt.pack.sat.s8.s32.b32 %r11, " + sources[i] + ", %rd3; st.global.u32 [%rd42+1024+" + offset + ", %r11;\n";
  }
  const Launched r = gpu.run(kernelText(parameters, body), {1}, {lanes}, {gpu.upload(in), gpu.upload(in), out});
  ASSERT_TRUE(r.clean()) << r.text();
  const std::vector<U64> got = gpu.download<U64>(out);
  for (unsigned i = 0; i < 3; ++i)
    for (unsigned l = 0; l < lanes; ++l) {
      const U64 a = in[l], b = in[lanes + l], c = in[2 * lanes + l];
      ASSERT_EQ(got[i * lanes + l], (a & 0xffff) << 16 | (b & 0xffff)) << i << " " << l;
      ASSERT_EQ(got[(4 + i) * lanes + l], lowBytes((a & 0xff) << 8 | (b & 0xff) | c << 16, 4)) << i << " " << l;
    }
}

namespace {

constexpr ScalarType storable[] = {{"b8", 1, 'b'},  {"u8", 1, 'u'},  {"s8", 1, 's'},  {"b16", 2, 'b'}, {"u16", 2, 'u'},
                                   {"s16", 2, 's'}, {"b32", 4, 'b'}, {"u32", 4, 'u'}, {"s32", 4, 's'}, {"f32", 4, 'f'},
                                   {"b64", 8, 'b'}, {"u64", 8, 'u'}, {"s64", 8, 's'}, {"f64", 8, 'f'}};
enum class Pattern { Contiguous, Scattered, Uniform };
unsigned placeOf(Pattern p, unsigned lane) {
  return p == Pattern::Contiguous ? lane : p == Pattern::Scattered ? (lane * 5 + 3) % lanes : 7;
}

struct Access {
  ScalarType type;
  unsigned registerBytes, count;
  Pattern pattern;
  std::size_t region = 0; ///< where its 32 vectors lie
  unsigned bytes() const { return type.bytes * count; }
  std::string opcode(bool loads, const std::string &space) const {
    return std::string(loads ? "ld." : "st.") + space + (count > 1 ? ".v" + std::to_string(count) : "") + "." +
           type.name;
  }
  std::string vector() const {
    std::string text;
    for (unsigned e = 0; e < count; ++e)
      text += (e ? ", " : "") + registerOf(registerBytes, e);
    return count > 1 ? "{" + text + "}" : text;
  }
  std::size_t place(unsigned lane, unsigned element) const {
    return region + placeOf(pattern, lane) * bytes() + element * type.bytes;
  }
  U64 loaded(const std::vector<U8> &memory, unsigned lane, unsigned element) const {
    U64 v = 0;
    std::memcpy(&v, &memory[place(lane, element)], type.bytes);
    return lowBytes(type.kind == 's' ? static_cast<U64>(signExtended(v, type.bytes)) : v, registerBytes);
  }
};

std::vector<Access> accesses(bool loads, std::size_t &memory) {
  std::vector<Access> out;
  memory = 0;
  for (const ScalarType &t : storable)
    for (unsigned width : registerWidths)
      for (unsigned count : {1u, 2u, 4u})
        for (Pattern p : {Pattern::Contiguous, Pattern::Scattered, Pattern::Uniform}) {
          if (width < t.bytes || count * t.bytes > 16 || (!loads && p == Pattern::Uniform))
            continue;
          out.push_back({t, width, count, p, memory});
          memory += std::size_t(lanes) * 16;
        }
  return out;
}

/// %rd50 = the lane's place of the access in the memory at %rd51 (shared: %r51).
std::string addressOf(const Access &a, bool shared) {
  const std::string bytes = std::to_string(a.bytes());
  std::string lane = "%r40";
  std::string text;
  if (a.pattern == Pattern::Scattered)
    text = "mad.lo.u32 %r42, %r40, 5, 3; and.b32 %r42, %r42, 31;", lane = "%r42";
  if (a.pattern == Pattern::Uniform)
    text = "mov.u32 %r42, 7;", lane = "%r42";
  return text + (shared ? "mad.lo.u32 %r50, " + lane + ", " + bytes + ", %r51; "
                        : "mul.wide.u32 %rd50, " + lane + ", " + bytes + "; add.u64 %rd50, %rd50, %rd51; ");
}

std::vector<U8> randomBytes(std::size_t n, std::mt19937_64 &rng) {
  std::vector<U8> out(n);
  for (U8 &b : out)
    b = static_cast<U8>(rng());
  return out;
}

/// Runs all accesses of a kind.  `memory` is what is accessed, and is returned as it is afterwards; elements of vectors
/// are loaded from `old` and go to `out`, 32 x 8 bytes each.
struct Ran {
  Launched launched;
  std::vector<U8> memory;
  std::vector<U64> out;
};
Ran runAccesses(const std::vector<Access> &all, bool loads, bool shared, Masked m, const std::vector<U8> &memory,
                const std::vector<U64> &old) {
  std::string body = prologue + "ld.param.u64 %rd51, [memory];\n", outside;
  const std::string words = std::to_string(memory.size() / 4);
  auto copy = [&](const std::string &name, bool in) {
    return "mov.u32 %r55, %r40; mov.u32 %r51, cells;\n" + name +
           ": mul.wide.u32 %rd55, %r55, 4; add.u64 %rd55, %rd55, " +
           "%rd51; shl.b32 %r56, %r55, 2; add.u32 %r56, %r56, %r51; " +
           (in ? "ld.global.b32 %r57, [%rd55]; st.shared.b32 [%r56], %r57; "
               : "ld.shared.b32 %r57, [%r56]; st.global.b32 [%rd55], %r57; ") +
           "add.u32 %r55, %r55, 32; setp.lt.u32 %p2, %r55, " + words + "; @%p2 bra " + name + "; bar.warp.sync -1;\n";
  };
  if (shared) {
    outside = ".extern .shared .align 16 .b8 cells[];\n";
    body += copy("IN", true);
  }
  std::size_t element = 0;
  unsigned n = 0;
  for (const Access &a : all) {
    std::string transfer;
    for (unsigned e = 0; e < a.count; ++e)
      transfer += "ld.global." + bits(a.registerBytes) + " " + registerOf(a.registerBytes, e) + ", [%rd41+" +
                  std::to_string((element + e) * lanes * 8) + "];\n";
    const std::string address = (shared ? "[%r50+" : "[%rd50+") + std::to_string(a.region) + "]";
    const std::string opcode = a.opcode(loads, shared ? "shared" : "global");
    body +=
        transfer + addressOf(a, shared) +
        masked(m, opcode + (loads ? " " + a.vector() + ", " + address : " " + address + ", " + a.vector()) + ";", n++);
    if (loads)
      for (unsigned e = 0; e < a.count; ++e)
        body += "st.global." + bits(a.registerBytes) + " [%rd42+" + std::to_string((element + e) * lanes * 8) + "], " +
                registerOf(a.registerBytes, e) + ";\n";
    element += a.count;
  }
  if (shared)
    body += "bar.warp.sync -1;\n" + copy("OUT", false);
  Emulator gpu("sm_90a");
  auto &out = gpu.upload(std::vector<U64>(old.size(), 0), "out");
  auto &cells = gpu.upload(memory, "memory");
  Ran r;
  r.launched =
      gpu.run(kernelText(parameters + ", .param .u64 memory", body, "sm_90a", outside), {1}, {lanes},
              {gpu.upload(old), gpu.upload(old), out, cells}, shared ? static_cast<std::uint32_t>(memory.size()) : 0);
  r.out = gpu.download<U64>(out);
  r.memory = gpu.download<U8>(cells);
  return r;
}

std::vector<U64> randomElements(const std::vector<Access> &all, std::mt19937_64 &rng) {
  std::size_t n = 0;
  for (const Access &a : all)
    n += a.count;
  std::vector<U64> out(n * lanes);
  for (U64 &v : out)
    v = rng();
  return out;
}

} // namespace

TEST(OperandWidth, EveryLoad) {
  std::size_t bytes = 0;
  const std::vector<Access> all = accesses(true, bytes);
  ASSERT_EQ(all.size(), 258u);
  std::mt19937_64 rng(41);
  const std::vector<U8> memory = randomBytes(bytes, rng);
  const std::vector<U64> old = randomElements(all, rng);
  for (bool shared : {false, true})
    for (Masked m : maskings) {
      const Ran r = runAccesses(all, true, shared, m, memory, old);
      ASSERT_TRUE(r.launched.clean()) << r.launched.text();
      ASSERT_EQ(r.memory, memory);
      std::size_t at = 0;
      for (const Access &a : all)
        for (unsigned e = 0; e < a.count; ++e)
          for (unsigned l = 0; l < lanes; ++l, ++at)
            ASSERT_EQ(r.out[at], executes(m, l) ? a.loaded(memory, l, e) : lowBytes(old[at], a.registerBytes))
                << a.opcode(true, shared ? "shared" : "global") << " into " << 8 * a.registerBytes << " bits, element "
                << e << ", lane " << l << ", pattern " << int(a.pattern) << ", masking " << int(m);
    }
}

TEST(OperandWidth, EveryStore) {
  std::size_t bytes = 0;
  const std::vector<Access> all = accesses(false, bytes);
  ASSERT_EQ(all.size(), 172u);
  std::mt19937_64 rng(43);
  const std::vector<U8> memory = randomBytes(bytes, rng);
  const std::vector<U64> values = randomElements(all, rng);
  for (bool shared : {false, true})
    for (Masked m : maskings) {
      const Ran r = runAccesses(all, false, shared, m, memory, values);
      ASSERT_TRUE(r.launched.clean()) << r.launched.text();
      std::vector<U8> expected = memory;
      std::size_t at = 0;
      for (const Access &a : all)
        for (unsigned e = 0; e < a.count; ++e)
          for (unsigned l = 0; l < lanes; ++l, ++at)
            if (executes(m, l))
              std::memcpy(&expected[a.place(l, e)], &values[at], a.type.bytes);
      for (const Access &a : all)
        for (std::size_t i = a.region; i < a.region + lanes * 16; ++i)
          ASSERT_EQ(r.memory[i], expected[i])
              << a.opcode(false, shared ? "shared" : "global") << " from " << 8 * a.registerBytes << " bits, byte "
              << i - a.region << ", pattern " << int(a.pattern) << ", masking " << int(m);
    }
}

// A parameter at a place that is known when the kernel is decoded takes a path of its own.
TEST(OperandWidth, LoadsOfParameters) {
  const U64 value = 0x8182838485868788;
  std::string body = prologue;
  std::vector<U64> expected;
  for (const ScalarType &t : storable)
    for (unsigned width : registerWidths)
      if (width >= t.bytes) {
        body += "ld.param." + std::string(t.name) + " " + registerOf(width, 1) + ", [value]; st.global." + bits(width) +
                " [%rd42+" + std::to_string(expected.size() * lanes * 8) + "], " + registerOf(width, 1) + ";\n";
        expected.push_back(
            lowBytes(t.kind == 's' ? static_cast<U64>(signExtended(value, t.bytes)) : lowBytes(value, t.bytes), width));
      }
  Emulator gpu("sm_90a");
  auto &out = gpu.upload(std::vector<U64>(expected.size() * lanes, 0), "out");
  const Launched r =
      gpu.run(kernelText(parameters + ", .param .u64 value", body), {1}, {lanes}, {out, out, out, value});
  ASSERT_TRUE(r.clean()) << r.text();
  const std::vector<U64> got = gpu.download<U64>(out);
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], expected[i / lanes]) << i / lanes << " lane " << i % lanes;
}

// A register of 128 bits gives its low bits to a narrower store; as a destination it is refused by name.
TEST(OperandWidth, RegistersOf128Bits) {
  std::mt19937_64 rng(47);
  std::vector<U64> in(2 * lanes);
  for (U64 &v : in)
    v = rng();
  Emulator gpu("sm_90a");
  auto &out = gpu.upload(std::vector<U64>(3 * lanes, 0), "out");
  const std::string declared = ".reg .b128 %q<2>;\n";
  const Launched r = gpu.run(kernelText(parameters, declared + prologue + R"(
      add.u64 %rd40, %rd40, %rd43; ld.global.b128 %q1, [%rd40]; st.global.b8 [%rd42], %q1; st.global.b32 [%rd42+256], %q1;
      st.global.b64 [%rd42+512], %q1;)"),
                             {1}, {lanes}, {gpu.upload(in), out, out});
  ASSERT_TRUE(r.clean()) << r.text();
  const std::vector<U64> got = gpu.download<U64>(out);
  for (unsigned l = 0; l < lanes; ++l) {
    EXPECT_EQ(got[l], in[2 * l] & 0xff);
    EXPECT_EQ(got[lanes + l], lowBytes(in[2 * l], 4));
    EXPECT_EQ(got[2 * lanes + l], in[2 * l]);
  }
  for (const char *instruction : {"ld.global.b32 %q1, [%rd40];", "cvt.u64.u32 %q1, %r1;", "cvt.u32.u8 %q1, %r1;"}) {
    const Launched wide = gpu.run(kernelText(parameters, declared + instruction), {1}, {lanes}, {out, out, out});
    EXPECT_NE(wide.status.toString().find("'%q1' has 128 bits"), std::string::npos) << wide.text();
  }
}
