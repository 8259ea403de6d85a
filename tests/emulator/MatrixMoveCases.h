//===- MatrixMoveCases.h - Kernels around one ldmatrix or stmatrix --------===//
//
// What the tests of the 16-bit shapes (MatrixMoveTest.cpp) and of the 8-bit ones (MatrixBytesTest.cpp) share: tiles of
// shared memory, where the rows lie in them, the ways to write an address.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_EMULATOR_MATRIXMOVECASES_H
#define KILN_TESTS_EMULATOR_MATRIXMOVECASES_H

#include "tests/emulator/PtxHarness.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace kiln::test {

constexpr unsigned tileBytes = 2048;

enum class Pattern { Contiguous, Permuted, Same, Conflicting };

/// 32 row offsets, multiples of 16 inside the tile.
inline std::vector<std::uint32_t> rowOffsets(Pattern pattern, std::mt19937 &random) {
  std::vector<std::uint32_t> all(tileBytes / 16);
  for (unsigned i = 0; i < all.size(); ++i)
    all[i] = 16 * i;
  if (pattern == Pattern::Permuted)
    std::shuffle(all.begin(), all.end(), random);
  all.resize(32);
  if (pattern == Pattern::Same)
    std::fill(all.begin(), all.end(), 16 * (random() % (tileBytes / 16)));
  if (pattern == Pattern::Conflicting)
    for (std::uint32_t &o : all)
      o = 16 * (random() % 6);
  return all;
}

template <typename T> std::vector<T> randomValues(std::size_t n, std::mt19937 &random) {
  std::vector<T> v(n);
  for (T &x : v)
    x = static_cast<T>(random());
  return v;
}

inline std::string registerList(unsigned count) {
  return count == 4 ? "{%r20, %r21, %r22, %r23}" : count == 2 ? "{%r20, %r21}" : "{%r20}";
}

/// One spelling of the address: the row's offset in the tile is in %r10.
struct Spelling {
  const char *name, *modifier, *prepare, *address;
};
inline constexpr Spelling spellings[] = {
    {"shared", ".shared", "mov.u32 %r11, tile; add.u32 %r11, %r11, %r10;", "[%r11]"},
    {"shared::cta, displacement", ".shared::cta",
     "mov.u32 %r11, tile; add.u32 %r11, %r11, %r10; sub.u32 %r11, %r11, 48;", "[%r11+48]"},
    {"shared, 64 bits", ".shared", "mov.u64 %rd11, tile; cvt.u64.u32 %rd10, %r10; add.u64 %rd11, %rd11, %rd10;",
     "[%rd11]"},
    {"generic", "",
     "mov.u64 %rd11, tile; cvta.shared.u64 %rd11, %rd11; cvt.u64.u32 %rd10, %r10; add.u64 %rd11, %rd11, %rd10;",
     "[%rd11]"},
};

/// Block c works with tiles[c], offsets[c] and registers[c]; thread t copies words t, t + 32, .. of the tile.
inline const std::string prologue = R"(
  .shared .align 16 .b8 tile[2048];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
  ld.param.u64 %rd1, [tiles]; mad.wide.u32 %rd1, %r1, 2048, %rd1; mad.wide.u32 %rd1, %r2, 4, %rd1;
  ld.param.u64 %rd2, [offsets]; mad.wide.u32 %rd2, %r1, 128, %rd2; mad.wide.u32 %rd2, %r2, 4, %rd2;
  ld.global.u32 %r10, [%rd2];
  mov.u32 %r3, tile; mad.lo.u32 %r3, %r2, 4, %r3; mov.u32 %r4, 0; mov.u32 %r5, %r3; mov.u64 %rd5, %rd1;
COPY: ld.global.u32 %r6, [%rd5]; st.shared.u32 [%r5], %r6; add.u64 %rd5, %rd5, 128; add.u32 %r5, %r5, 128;
  add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 16; @%p1 bra COPY; bar.sync 0;
)";
/// %rd3 = this thread's registers of this block.
inline std::string registerAddress(unsigned count) {
  return "ld.param.u64 %rd3, [registers]; mad.wide.u32 %rd3, %r1, " + std::to_string(128 * count) +
         ", %rd3; mad.wide.u32 %rd3, %r2, " + std::to_string(4 * count) + ", %rd3;\n";
}
inline std::string moveRegisters(bool load, unsigned count) {
  std::string text;
  for (unsigned j = 0; j < count; ++j) {
    const std::string r = "%r2" + std::to_string(j), at = "[%rd3+" + std::to_string(4 * j) + "]";
    text += load ? "ld.global.u32 " + r + ", " + at + "; " : "st.global.u32 " + at + ", " + r + "; ";
  }
  return text + "\n";
}
inline const std::string copyBack = R"(bar.sync 0; mov.u32 %r4, 0;
BACK: ld.shared.u32 %r6, [%r3]; st.global.u32 [%rd1], %r6; add.u64 %rd1, %rd1, 128; add.u32 %r3, %r3, 128;
  add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 16; @%p1 bra BACK;
)";
inline constexpr char parameters[] = ".param .u64 tiles, .param .u64 offsets, .param .u64 registers";

struct Data {
  unsigned blocks;
  bool oneAddress; ///< of several rows
  std::vector<std::uint8_t> tiles;
  std::vector<std::uint32_t> offsets, registers;
  Data(unsigned blocks, unsigned count, Pattern pattern, std::mt19937 &random)
      : blocks(blocks), oneAddress(pattern == Pattern::Same || pattern == Pattern::Conflicting),
        tiles(randomValues<std::uint8_t>(blocks * tileBytes, random)),
        registers(randomValues<std::uint32_t>(blocks * 32 * count, random)) {
    for (unsigned b = 0; b < blocks; ++b)
      for (std::uint32_t o : rowOffsets(pattern, random))
        offsets.push_back(o);
  }
  std::vector<std::uint8_t> tile(unsigned b) const {
    return {tiles.begin() + b * tileBytes, tiles.begin() + (b + 1) * tileBytes};
  }
};

/// One warp (or `threads`); `body` finds the thread number in %r2, and a shared `tile` of 512 bytes.
inline Launched oneWarp(const std::string &body, const std::string &target = "sm_90a", unsigned threads = 32,
                        std::vector<std::uint32_t> *results = nullptr) {
  Emulator gpu(target);
  auto &out = gpu.upload(std::vector<std::uint32_t>(4 * threads, 0xABABABAB), "out");
  Launched r =
      gpu.run(kernelText(".param .u64 out", ".shared .align 16 .b8 tile[512]; mov.u32 %r2, %tid.x;\n" + body, target),
              {1}, {threads}, {out});
  if (results)
    *results = gpu.download<std::uint32_t>(out);
  return r;
}
/// Writes bytes [0, 512) of the tile, 16 a lane; %r11 = tile + 16 * lane.
inline const std::string fill = R"(mov.u32 %r11, tile; mad.lo.u32 %r11, %r2, 16, %r11;
  mul.lo.u32 %r12, %r2, 4; add.u32 %r13, %r12, 1; add.u32 %r14, %r12, 2; add.u32 %r15, %r12, 3;
  st.shared.v4.u32 [%r11], {%r12, %r13, %r14, %r15}; bar.warp.sync 0xffffffff;
)";
inline const std::string writeOut =
    "\nld.param.u64 %rd63, [out]; mad.wide.u32 %rd63, %r2, 4, %rd63; st.global.u32 [%rd63], %r20;\n";

/// The run found `id` and nothing else, and its message has `part`.  Gives the finding, an empty one if it is not
/// there.
inline Finding expectFinding(const Launched &r, std::string_view id, std::string_view part) {
  EXPECT_EQ(r.ids(), id) << r.text();
  const Finding *f = r.find(id);
  EXPECT_TRUE(f && f->message.find(part) != std::string::npos) << "expected: " << part << "\n" << r.text();
  return f ? *f : Finding();
}

} // namespace kiln::test

#endif // KILN_TESTS_EMULATOR_MATRIXMOVECASES_H
