// ldmatrix and stmatrix of 16-bit elements: every form against the picture in the PTX manual, and what can go wrong.
#include "tests/emulator/MatrixMoveCases.h"

#include "compiler/target/Target.h"
#include "tests/support/TestTier.h"

#include <array>
#include <gtest/gtest.h>
#include <random>

using namespace kiln;
using namespace kiln::test;

namespace {

using Matrix = std::array<std::array<std::uint16_t, 8>, 8>;

Matrix transposed(const Matrix &m) {
  Matrix t;
  for (unsigned i = 0; i < 8; ++i)
    for (unsigned k = 0; k < 8; ++k)
      t[k][i] = m[i][k];
  return t;
}

/// The picture of the manual: T0 T1 T2 T3 hold row 0, two columns each, T4 to T7 row 1, and so on.
template <typename Fn> void eachFragment(Fn f) {
  unsigned lane = 0;
  for (unsigned row = 0; row < 8; ++row)
    for (unsigned column = 0; column < 8; column += 2)
      f(lane++, row, column);
}

/// 32 registers, one a lane, of each matrix whose rows are at offsets[0..7], offsets[8..15], ..
std::vector<std::uint32_t> expectedLoad(const std::vector<std::uint8_t> &tile, const std::uint32_t *offsets,
                                        unsigned count, bool trans) {
  std::vector<std::uint32_t> out(32 * count);
  for (unsigned j = 0; j < count; ++j) {
    Matrix m;
    for (unsigned row = 0; row < 8; ++row)
      std::memcpy(m[row].data(), &tile[offsets[8 * j + row]], 16);
    if (trans)
      m = transposed(m);
    eachFragment([&](unsigned lane, unsigned row, unsigned column) {
      out[lane * count + j] = m[row][column] + 0x10000u * m[row][column + 1];
    });
  }
  return out;
}

void expectedStore(std::vector<std::uint8_t> &tile, const std::uint32_t *offsets, const std::uint32_t *registers,
                   unsigned count, bool trans) {
  for (unsigned j = 0; j < count; ++j) {
    Matrix m;
    eachFragment([&](unsigned lane, unsigned row, unsigned column) {
      m[row][column] = static_cast<std::uint16_t>(registers[lane * count + j]);
      m[row][column + 1] = static_cast<std::uint16_t>(registers[lane * count + j] >> 16);
    });
    if (trans)
      m = transposed(m);
    for (unsigned row = 0; row < 8; ++row)
      std::memcpy(&tile[offsets[8 * j + row]], m[row].data(), 16);
  }
}

std::string opcode(const char *name, unsigned count, bool trans, const Spelling &s) {
  return std::string(name) + ".sync.aligned.m8n8.x" + std::to_string(count) + (trans ? ".trans" : "") + s.modifier +
         ".b16";
}

template <typename Fn> void eachForm(Fn f) {
  std::mt19937 random(20);
  for (const std::string &level : usableLevels())
    for (unsigned count : {1u, 2u, 4u})
      for (bool trans : {false, true})
        for (const Spelling &s : spellings)
          for (Pattern p : {Pattern::Contiguous, Pattern::Permuted, Pattern::Same, Pattern::Conflicting}) {
            const Data data(pick(3u, 100u), count, p, random);
            EmulatorOptions options;
            options.cpuLevel = level;
            f(Emulator("sm_90a", options), count, trans, s, data,
              level + " x" + std::to_string(count) + (trans ? " trans " : " ") + s.name + " pattern " +
                  std::to_string(static_cast<int>(p)));
          }
}

const std::string loadX1 = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, ";
const std::string loadX2 = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r20, %r21}, ";
const std::string loadX4 = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, ";
const std::string storeX1 = "stmatrix.sync.aligned.m8n8.x1.shared.b16 ";
} // namespace

TEST(MatrixMove, LoadEveryForm) {
  eachForm([](Emulator gpu, unsigned count, bool trans, const Spelling &s, const Data &data, const std::string &name) {
    auto &tiles = gpu.upload(data.tiles, "tiles");
    auto &offsets = gpu.upload(data.offsets, "offsets");
    auto &out = gpu.upload(std::vector<std::uint32_t>(data.registers.size(), 0xABABABAB), "registers");
    const Launched r = gpu.run(kernelText(parameters, prologue + s.prepare + opcode("ldmatrix", count, trans, s) + " " +
                                                          registerList(count) + ", " + s.address + ";\n" +
                                                          registerAddress(count) + moveRegisters(false, count)),
                               {data.blocks}, {32}, {tiles, offsets, out});
    ASSERT_TRUE(r.clean()) << name << "\n" << r.text();
    const auto got = gpu.download<std::uint32_t>(out);
    for (unsigned b = 0; b < data.blocks; ++b) {
      const auto expected = expectedLoad(data.tile(b), &data.offsets[32 * b], count, trans);
      const std::vector<std::uint32_t> mine(got.begin() + b * 32 * count, got.begin() + (b + 1) * 32 * count);
      ASSERT_EQ(mine, expected) << name << " block " << b;
    }
  });
}

TEST(MatrixMove, StoreEveryForm) {
  eachForm([](Emulator gpu, unsigned count, bool trans, const Spelling &s, const Data &data, const std::string &name) {
    auto &tiles = gpu.upload(data.tiles, "tiles");
    auto &offsets = gpu.upload(data.offsets, "offsets");
    auto &registers = gpu.upload(data.registers, "registers");
    const Launched r = gpu.run(kernelText(parameters, prologue + registerAddress(count) + moveRegisters(true, count) +
                                                          s.prepare + opcode("stmatrix", count, trans, s) + " " +
                                                          s.address + ", " + registerList(count) + ";\n" + copyBack),
                               {data.blocks}, {32}, {tiles, offsets, registers});
    // Different rows at one address: the last one stays, and it is said.
    ASSERT_TRUE(r.status.ok()) << name << "\n" << r.text();
    ASSERT_EQ(r.ids(), data.oneAddress ? "race.warp" : "") << name << "\n" << r.text();
    const auto got = gpu.download<std::uint8_t>(tiles);
    for (unsigned b = 0; b < data.blocks; ++b) {
      std::vector<std::uint8_t> expected = data.tile(b);
      expectedStore(expected, &data.offsets[32 * b], &data.registers[32 * count * b], count, trans);
      const std::vector<std::uint8_t> mine(got.begin() + b * tileBytes, got.begin() + (b + 1) * tileBytes);
      ASSERT_EQ(mine, expected) << name << " block " << b;
    }
  });
}

TEST(MatrixMove, ModifiersInAnyOrder) {
  for (const char *form : {"ldmatrix.sync.aligned.x2.m8n8.shared.b16", "ldmatrix.sync.aligned.m8n8.x2.shared.trans.b16",
                           "ldmatrix.sync.aligned.x2.trans.m8n8.shared::cta.b16"}) {
    const Launched r = oneWarp(fill + form + " {%r20, %r21}, [%r11];");
    EXPECT_TRUE(r.clean()) << form << r.text();
  }
}

TEST(MatrixMove, DestinationsMayBeTheAddressOrNothing) {
  std::vector<std::uint32_t> got;
  Launched r = oneWarp(fill + "mov.u32 %r20, %r11; " + loadX4 + "[%r20];" + writeOut, "sm_90a", 32, &got);
  EXPECT_TRUE(r.clean()) << r.text();
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], l); // word l of the tile: matrix 0 is its first 128 bytes
  r = oneWarp(fill + "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {_, _, %r20, _}, [%r11];" + writeOut, "sm_90a", 32,
              &got);
  EXPECT_TRUE(r.clean()) << r.text();
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], 64 + l);
}

TEST(MatrixMove, AGuardThatIsTheSameForAllLanes) {
  std::vector<std::uint32_t> got;
  const std::string body =
      fill + "mov.u32 %r20, 7; setp.ne.u32 %p1, %r60, %r60; setp.eq.u32 %p2, %r60, %r60; mov.u32 %r21, 1;\n";
  Launched r = oneWarp(body + "@%p1 " + loadX1 + "[%r21];" + writeOut, "sm_90a", 32, &got);
  EXPECT_TRUE(r.clean()) << r.text(); // nobody executes it: the bad address is not looked at
  EXPECT_EQ(got[5], 7u);
  r = oneWarp(body + "@%p2 " + loadX1 + "[%r11];" + writeOut, "sm_90a", 32, &got);
  EXPECT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(got[5], 5u);
}

TEST(MatrixMove, StoreMarksTheBytesThatItWrites) {
  const std::string store =
      "mov.u32 %r11, tile; and.b32 %r12, %r2, 7; mad.lo.u32 %r11, %r12, 16, %r11; mov.u32 %r20, %r2;" + storeX1 +
      "[%r11+128], {%r20}; bar.warp.sync 0xffffffff; mov.u32 %r13, tile;\n";
  EXPECT_TRUE(oneWarp(store + loadX1 + "[%r11+128];").clean());
  for (const auto &[at, bad] :
       {std::pair("[%r13+112]", true), {"[%r13+128]", false}, {"[%r13+240]", false}, {"[%r13+256]", true}}) {
    const Launched r = oneWarp(store + "ld.shared.v4.u32 {%r30, %r31, %r32, %r33}, " + at + ";");
    EXPECT_EQ(r.ids(), bad ? "uninit.shared" : "") << at << r.text();
  }
}

TEST(MatrixMove, UninitialisedRows) {
  // Every byte of the tile but tile+5*16+9, the second byte of row 5's fifth element.
  const std::string almost =
      "mov.u32 %r11, tile; mad.lo.u32 %r11, %r2, 16, %r11; mov.u32 %r12, %r11; mov.u32 %r13, 0;\n"
      "L: setp.eq.u32 %p1, %r2, 5; setp.eq.and.u32 %p2, %r13, 9, %p1; @!%p2 st.shared.u8 [%r12], %r13;"
      "add.u32 %r12, %r12, 1; add.u32 %r13, %r13, 1; setp.lt.u32 %p3, %r13, 16; @%p3 bra L; bar.warp.sync "
      "0xffffffff;\n";
  for (const char *trans : {"", ".trans"}) {
    const Launched r =
        oneWarp(almost + "ldmatrix.sync.aligned.m8n8.x4" + trans + ".shared.b16 {%r20, %r21, %r22, %r23}, [%r11];");
    const Finding f = expectFinding(r, "uninit.shared", "16-byte load reads tile+89 (lane 5), which nobody wrote");
    EXPECT_TRUE(r.status.ok());
    EXPECT_EQ(f.lanes, 1u << 5);
  }
  // Lanes 8 and up give no row: what they point to does not matter.
  EXPECT_TRUE(oneWarp(almost +
                      "setp.lt.u32 %p4, %r2, 8; add.u32 %r15, %r11, 128; mov.u32 %r14, tile; add.u32 %r14, %r14, 80; "
                      "selp.b32 %r14, %r15, %r14, %p4;" +
                      loadX1 + "[%r14];")
                  .clean());
  EmulatorOptions options;
  options.checks = false;
  Emulator gpu("sm_90a", options);
  EXPECT_TRUE(
      gpu.run(kernelText(
                  "", ".shared .align 16 .b8 tile[128]; mov.u32 %r1, %laneid; and.b32 %r1, %r1, 7; shl.b32 %r1, %r1, 4;"
                      "mov.u32 %r2, tile; add.u32 %r1, %r1, %r2;" +
                          loadX1 + "[%r1];" + storeX1 + "[%r1], {%r20};"),
              {1}, {32}, {})
          .clean());
}

TEST(MatrixMove, MisalignedRows) {
  // Lane `lane` is 8 bytes off.
  const auto body = [](unsigned lane, const std::string &instruction) {
    return fill + "setp.eq.u32 %p1, %r2, " + std::to_string(lane) + "; @%p1 add.u32 %r11, %r11, 8;" + instruction;
  };
  const Launched load = oneWarp(body(7, loadX1 + "[%r11];"));
  EXPECT_EQ(expectFinding(load, "misaligned", "(lane 7) is not aligned to 16 bytes").lanes, 1u << 7);
  expectFinding(load, "misaligned", "16-byte load at ");
  EXPECT_FALSE(load.status.ok());
  expectFinding(oneWarp(body(0, storeX1 + "[%r11], {%r2};")), "misaligned", "16-byte store at ");
  EXPECT_TRUE(oneWarp(body(8, loadX1 + "[%r11];")).clean());
  EXPECT_TRUE(oneWarp(body(8, storeX1 + "[%r11], {%r2};")).clean());
  expectFinding(oneWarp(body(15, loadX2 + "[%r11];")), "misaligned", "(lane 15)");
  EXPECT_TRUE(oneWarp(body(16, loadX2 + "[%r11];")).clean());
  expectFinding(oneWarp(body(31, loadX4 + "[%r11];")), "misaligned", "(lane 31)");
  // sm_75 wants a valid address in every lane.
  expectFinding(oneWarp(body(8, loadX1 + "[%r11];"), "sm_75"), "misaligned", "(lane 8)");
  EXPECT_TRUE(oneWarp(body(8, loadX1 + "[%r11];"), "sm_80").clean());
  EXPECT_TRUE(oneWarp(fill + loadX1 + "[%r11];", "sm_75").clean());
}

TEST(MatrixMove, OutOfBounds) {
  expectFinding(
      oneWarp(fill + loadX4 + "[%r11+16];"), "oob.shared",
      "16-byte load at 0x600, shared offset 1536, (lane 31) is 16 bytes past the end of the block's shared memory "
      "(512 bytes static, 0 dynamic)");
  expectFinding(oneWarp(fill + "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r11+16], {%r1, %r2, %r3, %r4};"),
                "oob.shared", "16-byte store at 0x600, shared offset 1536, (lane 31)");
  expectFinding(oneWarp(fill + loadX1 + "[%r11+-16];"), "oob.shared", "(lane 0) is 16 bytes before the start");
  EXPECT_TRUE(oneWarp(fill + loadX1 + "[%r11+384];").clean()); // lanes 8 and up are outside, and give no row
  expectFinding(oneWarp(fill + loadX1 + "[%r11+384];", "sm_75"), "oob.shared", "(lane 8)");
  // Generic addresses that point elsewhere.
  const std::string generic = "ldmatrix.sync.aligned.m8n8.x1.b16 {%r20}, [%rd1];";
  expectFinding(oneWarp(fill + "ld.param.u64 %rd1, [out];" + generic), "oob.shared",
                "(lane 0) is not a shared memory address");
  expectFinding(oneWarp(fill + "mov.u64 %rd1, 0x200000001230;" + generic), "oob.shared",
                "at 0x200000001230 (lane 0) is not a shared memory address");
  expectFinding(oneWarp(fill + "mov.u64 %rd1, 0;" + generic), "oob.shared",
                "at 0x0 (lane 0) is not a shared memory address");
  expectFinding(
      oneWarp(fill + ".local .align 16 .b8 own[128]; mov.u64 %rd1, own; cvta.local.u64 %rd1, %rd1;" + generic),
      "oob.shared", "is not a shared memory address");
  // An offset where a generic address belongs.
  expectFinding(oneWarp(fill + "cvt.u64.u32 %rd1, %r11;" + generic), "oob.shared", "is not a shared memory address");
}

TEST(MatrixMove, DivergentWarp) {
  for (const std::string &instruction : {loadX4 + "[%r11];", storeX1 + "[%r11], {%r2};"}) {
    const Launched r = oneWarp(fill + "setp.lt.u32 %p1, %r2, 16; @!%p1 bra DONE; " + instruction +
                               "\nDONE: mov.u32 %r20, 1;" + writeOut);
    expectFinding(r, "aligned.divergent", "executed by lanes 0x0000ffff; lanes 0xffff0000 of the warp are at ptx line");
    EXPECT_TRUE(r.status.ok());
    const Launched guarded = oneWarp(fill + "setp.lt.u32 %p1, %r2, 16; @%p1 " + instruction + writeOut);
    EXPECT_EQ(guarded.ids(), "aligned.divergent") << guarded.text();
    // A condition that is the same for all lanes.
    const Launched good = oneWarp(fill + "setp.lt.u32 %p1, %r2, 32; @!%p1 bra DONE; " + instruction +
                                  "\nDONE: mov.u32 %r20, 1;" + writeOut);
    EXPECT_TRUE(good.clean()) << good.text();
  }
}

TEST(MatrixMove, PartialWarps) {
  // 32 + 20 threads; warp 1 gives rows 0 to 19 only, and its values are recognisable.
  const std::string own =
      "mov.u32 %r11, tile; mad.lo.u32 %r11, %r2, 16, %r11; and.b32 %r3, %r2, 31; sub.u32 %r4, %r2, %r3;"
      "mov.u32 %r5, 0x11112222; .shared .align 16 .b8 more[1024]; mov.u32 %r6, more; mad.lo.u32 %r6, %r2, 16, %r6;"
      "st.shared.v4.u32 [%r6], {%r5, %r5, %r5, %r5}; bar.sync 0;\n";
  std::vector<std::uint32_t> got;
  const Launched load = oneWarp(
      own + "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r21, %r22, %r20, %r23}, [%r6];" + writeOut, "sm_90a", 52, &got);
  const Finding missing =
      expectFinding(load, "matrix.missing_lane", "lanes 0xfff00000 of the warp have exited or do not exist");
  EXPECT_EQ(missing.warp, 1u);
  EXPECT_EQ(missing.count, 1u);
  for (unsigned t = 0; t < 52; ++t) // register 2: rows 16 to 19 are there, 20 to 23 are not
    EXPECT_EQ(got[t], t < 48 ? 0x11112222u : 0xDEADBEEFu) << t;
  // The elements of lanes that are not there are not stored: row 5 would come from lanes 20 to 23.
  const std::string store = own +
                            "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%r2}; bar.sync 0;"
                            "ld.shared.u32 %r20, [more+592];" +
                            writeOut; // warp 1, row 5
  const Launched partial = oneWarp(store, "sm_90a", 52, &got);
  EXPECT_EQ(partial.ids(), "matrix.missing_lane") << partial.text();
  EXPECT_EQ(got[0], 0x11112222u);
  EXPECT_TRUE(oneWarp(store, "sm_90a", 64, &got).clean());
  EXPECT_EQ(got[0], 32u + 20u);
  // Lanes that left the kernel.
  const Launched left =
      oneWarp(fill + "setp.ge.u32 %p1, %r2, 30; @%p1 ret; " + loadX1 + "[%r11];" + writeOut, "sm_90a", 32, &got);
  expectFinding(left, "matrix.missing_lane", "lanes 0xc0000000");
  for (unsigned l = 0; l < 30; ++l)
    EXPECT_EQ(got[l], l);
}

TEST(MatrixMove, TransposesInRegisters) {
  // Lane l holds elements (l / 4, 2 (l mod 4)) and the next; an element's value is 8 row + column.
  const std::string matrix = "and.b32 %r11, %r2, 3; shl.b32 %r11, %r11, 1; shr.u32 %r12, %r2, 2; shl.b32 %r12, %r12, 3;"
                             "add.u32 %r12, %r12, %r11; add.u32 %r13, %r12, 1; shl.b32 %r13, %r13, 16;"
                             "or.b32 %r12, %r12, %r13; movmatrix.sync.aligned.m8n8.trans.b16 ";
  for (const char *target : {"sm_75", "sm_90a"}) {
    std::vector<std::uint32_t> got;
    const Launched r = oneWarp(matrix + "%r20, %r12;" + writeOut, target, 32, &got);
    ASSERT_TRUE(r.clean()) << r.text();
    eachFragment([&](unsigned lane, unsigned row, unsigned column) {
      EXPECT_EQ(got[lane], (8 * column + row) | (8 * (column + 1) + row) << 16) << lane;
    });
    // In place; and twice is nothing.
    ASSERT_TRUE(
        oneWarp(matrix + "%r12, %r12; movmatrix.sync.aligned.m8n8.trans.b16 %r20, %r12;" + writeOut, target, 32, &got)
            .clean());
    eachFragment([&](unsigned lane, unsigned row, unsigned column) {
      EXPECT_EQ(got[lane], (8 * row + column) | (8 * row + column + 1) << 16) << lane;
    });
  }
  expectFinding(oneWarp("setp.lt.u32 %p1, %r2, 16; @%p1 movmatrix.sync.aligned.m8n8.trans.b16 %r20, %r2;" + writeOut),
                "aligned.divergent", "executed by lanes 0x0000ffff");
}

TEST(MatrixMove, TargetsThatHaveThem) {
  for (const Target &t : allTargets()) {
    const std::string name(t.name);
    EXPECT_EQ(oneWarp(fill + loadX4 + "[%r11];", name).clean(), t.has(Capability::Ldmatrix)) << name;
    const Launched store = oneWarp(fill + storeX1 + "[%r11], {%r2};", name);
    EXPECT_EQ(store.clean(), t.has(Capability::Stmatrix)) << name << store.text();
    if (!t.has(Capability::Stmatrix)) {
      EXPECT_NE(store.status.toString().find("stmatrix.sync.aligned.m8n8.x1.shared.b16: " + name + " does not have it"),
                std::string::npos)
          << store.text();
      EXPECT_NE(store.status.toString().find("sm_90 is the first target that does"), std::string::npos) << store.text();
    }
  }
}

TEST(MatrixMove, FormsThatAreRefused) {
  const auto message = [](const std::string &instruction) {
    return oneWarp(fill + instruction + ";").status.toString();
  };
#define EXPECT_REFUSED(instruction, text)                                                                              \
  EXPECT_NE(message(instruction).find(text), std::string::npos) << message(instruction)
  EXPECT_REFUSED("movmatrix.sync.aligned.m8n8.b16 %r1, %r3", "no such form");
  EXPECT_REFUSED("movmatrix.sync.aligned.m8n8.trans.b16 %rd1, %r3", "'%rd1' has 64 bits, the result has 32");
  EXPECT_REFUSED("movmatrix.sync.aligned.m8n8.trans.b16 %r1", "operand");
  EXPECT_REFUSED("ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r1, [%r11]", "takes a vector of 1 registers in braces");
  EXPECT_REFUSED("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r3}, [%r11]",
                 "takes a vector of 4 registers in braces, this one has 2");
  EXPECT_REFUSED("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r11]", "takes an address and a vector of registers");
  EXPECT_REFUSED("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%rd2}, [%r11]", "'%rd2' has 64 bits, the result has 32");
  EXPECT_REFUSED("ldmatrix.sync.aligned.m8n8.shared.b16 {%r1}, [%r11]", "no such form");
  EXPECT_REFUSED("ldmatrix.sync.aligned.m8n8.x1.shared::cluster.b16 {%r1}, [%r11]", "no such form");
  EXPECT_REFUSED("ldmatrix.sync.m8n8.x1.shared.b16 {%r1}, [%r11]", "no such form");
  EXPECT_REFUSED(".local .align 16 .b8 own[128]; ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [own]", "shared memory only");
#undef EXPECT_REFUSED
  EXPECT_FALSE(oneWarp(fill + "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r11], {%r1, _};").status.ok());
}
