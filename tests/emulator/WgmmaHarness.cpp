#include "tests/emulator/WgmmaHarness.h"

#include "tests/emulator/MatrixReference.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace kiln::test {

const ElementFormat &elementFormat(std::string_view name) {
  static const ElementFormat formats[] = {
      {"f16", 16, 5, 10, true},
      {"bf16", 16, 8, 7, true},
      {"tf32", 32, 8, 10, true},
      {"e4m3", 8, 4, 3, false},
      {"e5m2", 8, 5, 2, true},
      {"f32", 32, 8, 23, true},
      {"s8", 8, 0, 0, false, true, true},
      {"u8", 8, 0, 0, false, true, false},
      {"b1", 32, 0, 0, false, true, false},
  };
  for (const ElementFormat &f : formats)
    if (f.name == name)
      return f;
  std::abort();
}

std::uint32_t wgmmaElement(const WgmmaTypes &types, const std::uint32_t *a, const std::uint32_t *b, std::uint32_t c,
                           bool negateA, bool negateB) {
  const ElementFormat &fa = elementFormat(types.a), &fb = elementFormat(types.b);
  if (types.a == "b1") {
    for (unsigned k = 0; k < types.k / 32; ++k)
      c += static_cast<std::uint32_t>(__builtin_popcount(a[k] & b[k]));
    return c;
  }
  if (fa.integer) {
    auto value = [](const ElementFormat &f, std::uint32_t v) {
      return f.isSigned ? static_cast<std::int64_t>(static_cast<std::int8_t>(v)) : static_cast<std::int64_t>(v & 0xFF);
    };
    std::int64_t sum = static_cast<std::int32_t>(c);
    for (unsigned k = 0; k < types.k; ++k)
      sum += value(fa, a[k]) * value(fb, b[k]);
    if (types.saturate)
      sum = std::clamp<std::int64_t>(sum, std::numeric_limits<std::int32_t>::min(),
                                     std::numeric_limits<std::int32_t>::max());
    return static_cast<std::uint32_t>(sum);
  }
  const auto format = [](const ElementFormat &f) {
    return FloatFormat{f.bits, f.exponentBits, f.fractionBits, f.skip(), f.infinity};
  };
  const FloatFormat result = format(elementFormat(types.d));
  const bool bytes = fa.bits == 8;
  const ReferenceModel model{format(fa), format(fb), result, result, bytes ? 13 : 25, bytes ? 13u : 23u, types.k};
  std::vector<std::uint32_t> x(a, a + types.k), y(b, b + types.k);
  for (unsigned k = 0; k < types.k; ++k) {
    x[k] ^= std::uint32_t(negateA) << (fa.bits - 1);
    y[k] ^= std::uint32_t(negateB) << (fb.bits - 1);
  }
  return referenceDot(model, x, y, c);
}

std::uint64_t TileLayout::descriptor() const {
  const std::uint64_t field = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  return (start & 0x3FFFF) >> 4 | std::uint64_t(leading) >> 4 << 16 | std::uint64_t(stride) >> 4 << 32 |
         std::uint64_t(baseOffset) << 49 | field << 62;
}

unsigned TileLayout::offset(unsigned i, unsigned b) const {
  const unsigned k = b / 2, c = 2 * i; // MN-major
  if (!swizzle)
    return mnMajor ? start + c / 16 * stride + k / 8 * leading + k % 8 * 16 + c % 16
                   : start + i / 8 * stride + b / 16 * leading + i % 8 * 16 + b % 16;
  const unsigned at = mnMajor ? start + c / swizzle * leading + k / 8 * stride + k % 8 * swizzle + c % swizzle
                              : start + i / 8 * stride + i % 8 * swizzle + b;
  return at ^ ((((at >> 7) - baseOffset) & (swizzle / 16 - 1)) << 4);
}

unsigned TileLayout::span() const {
  unsigned end = 0;
  for (unsigned i = 0; i < extent; ++i)
    for (unsigned b = 0; b < 32; b += 2)
      end = std::max(end, offset(i, b) + 2 - start);
  return end;
}

TileLayout randomLayout(std::mt19937 &random, bool mnMajor, unsigned swizzle, unsigned extent, unsigned start) {
  TileLayout t{mnMajor, swizzle, extent, start, 16, 0, 0};
  const unsigned eights = extent / 8;
  if (!swizzle) {
    // Blocks of 8 lines of 16 bytes; the two along K, and those along M or N, in either order, perhaps with gaps.
    const unsigned gap = static_cast<unsigned>(random() % 3) * 128;
    const bool kInner = random() % 2;
    const unsigned inner = 128 + gap, outer = inner * (kInner ? 2 : eights);
    const unsigned alongK = kInner ? inner : outer, alongMn = kInner ? outer : inner;
    t.leading = alongK;
    t.stride = alongMn;
    return t;
  }
  // A tile whose swizzle pattern does not start at a multiple of its period.
  if (random() % 4 == 0) {
    t.start += 128 * static_cast<unsigned>(random() % (swizzle / 16));
    t.baseOffset = t.start >> 7 & 7;
  }
  if (mnMajor) {
    const unsigned linesOfK = 16 * (1 + static_cast<unsigned>(random() % 4));
    t.stride = 8 * swizzle;
    t.leading = linesOfK * swizzle;
    t.start += 16 * swizzle * static_cast<unsigned>(random() % (linesOfK / 16)); // a step along K
    return t;
  }
  t.stride = 8 * swizzle * (1 + static_cast<unsigned>(random() % 2));
  t.start += 32 * static_cast<unsigned>(random() % (swizzle / 32)); // a step along K
  return t;
}

std::string WgmmaKernel::opcode() const {
  std::string s = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k" + std::to_string(types.k);
  for (std::string_view t : {types.d, types.a, types.b})
    s += "." + std::string(t);
  return s + (types.a == "b1" ? ".and.popc" : types.saturate ? ".satfinite" : "");
}

std::string WgmmaKernel::immediates() const {
  if (types.d == "s32")
    return "";
  std::string s = std::string(negateA ? ", -1" : ", 1") + (negateB ? ", -1" : ", 1");
  if (types.k != 16)
    return s;
  if (!fragments)
    s += a.mnMajor ? ", 1" : ", 0";
  return s + (b.mnMajor ? ", 1" : ", 0");
}

std::string WgmmaKernel::text(unsigned sharedBytes) const {
  const std::string d = std::to_string(accumulators());
  std::string vector, loads, stores;
  for (unsigned i = 0; i < accumulators(); ++i) {
    const std::string r = "%d" + std::to_string(i);
    vector += (i ? "," : "") + r;
    if (scaleD || !scaleImmediate)
      loads += "ld.global.b32 " + r + ", [%rd3+" + std::to_string(4 * i) + "];\n";
    stores += "st.global.b32 [%rd4+" + std::to_string(4 * i) + "], " + r + ";\n";
  }
  std::string left = "%rd6";
  if (fragments) {
    left = "{%a0,%a1,%a2,%a3}";
    loads += "ld.global.v4.b32 {%a0,%a1,%a2,%a3}, [%rd2];\n";
  }
  return ".version 8.5\n.target sm_90a\n.address_size 64\n"
         ".extern .shared .align 1024 .b8 smem[];\n"
         ".visible .entry k(.param .u64 image, .param .u64 fragments, .param .u64 accumulators, .param .u64 out) {\n"
         ".reg .b64 %rd<16>; .reg .b32 %r<16>; .reg .b32 %a<4>; .reg .b32 %d<" +
         d +
         ">; .reg .pred %p<4>;\n"
         "ld.param.u64 %rd1, [image]; ld.param.u64 %rd2, [fragments];\n"
         "ld.param.u64 %rd3, [accumulators]; ld.param.u64 %rd4, [out];\n"
         "mov.u32 %r1, %tid.x;\n"
         "mul.wide.u32 %rd5, %r1, " +
         std::to_string(4 * accumulators()) +
         "; add.s64 %rd3, %rd3, %rd5; add.s64 %rd4, %rd4, %rd5;\n"
         "mul.wide.u32 %rd5, %r1, 16; add.s64 %rd2, %rd2, %rd5;\n"
         // The image of shared memory, 16 bytes a thread and step.
         "add.s64 %rd1, %rd1, %rd5; mov.u32 %r2, smem; mad.lo.u32 %r2, %r1, 16, %r2; mov.u32 %r3, 0;\n"
         "COPY: ld.global.v4.b32 {%r4,%r5,%r6,%r7}, [%rd1]; st.shared.v4.b32 [%r2], {%r4,%r5,%r6,%r7};\n"
         "add.s64 %rd1, %rd1, 2048; add.u32 %r2, %r2, 2048; add.u32 %r3, %r3, 2048;\n"
         "setp.lt.u32 %p1, %r3, " +
         std::to_string(sharedBytes) +
         "; @%p1 bra COPY;\n"
         "fence.proxy.async; bar.sync 0;\n" +
         loads +
         // Layouts are given for dynamic shared memory that starts at offset 1024.
         "mov.u32 %r9, smem; sub.u32 %r9, %r9, 1024; shr.u32 %r9, %r9, 4; cvt.u64.u32 %rd8, %r9;\n"
         "add.u64 %rd6, %rd8, " +
         std::to_string(a.descriptor()) + "; add.u64 %rd7, %rd8, " + std::to_string(b.descriptor()) +
         ";\nmov.u32 %r8, " + (scaleD ? "1" : "0") +
         "; setp.ne.b32 %p2, %r8, 0;\n"
         "wgmma.fence.sync.aligned;\n" +
         opcode() + " {" + vector + "}, " + left + ", %rd7, " + (scaleImmediate ? (scaleD ? "1" : "0") : "%p2") +
         immediates() +
         ";\n"
         "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" +
         stores + "ret;\n}\n";
}

FragmentPlace accumulatorPlace(bool halves, unsigned row, unsigned column) {
  const unsigned thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
  const unsigned element = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
  return halves ? FragmentPlace{thread, element / 2, element % 2 * 16} : FragmentPlace{thread, element, 0};
}

FragmentPlace fragmentPlace(unsigned elementBits, unsigned row, unsigned k) {
  const unsigned per = 32 / elementBits;
  const unsigned thread = row / 16 * 32 + row % 8 * 4 + k / per % 4;
  return {thread, row % 16 / 8 + 2 * (k / (4 * per)), k % per * elementBits};
}

} // namespace kiln::test
