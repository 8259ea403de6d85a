// ldmatrix and stmatrix of 8-bit elements, also of 6 and 4 bits in memory, against the pictures in the PTX manual.
#include "tests/emulator/MatrixMoveCases.h"

#include "compiler/target/Target.h"
#include "tests/support/TestTier.h"

#include <array>

using namespace kiln;
using namespace kiln::test;

namespace {

/// A row in memory as its 16 elements of `bits` bits: the first in the lowest bits.
std::array<std::uint8_t, 16> elements(const std::uint8_t *row, unsigned bits) {
  std::array<std::uint8_t, 16> out{};
  for (unsigned e = 0; e < 16; ++e)
    for (unsigned b = 0; b < bits; ++b) {
      const unsigned bit = e * bits + b;
      out[e] = static_cast<std::uint8_t>(out[e] | (row[bit / 8] >> bit % 8 & 1u) << b);
    }
  return out;
}

struct LoadForm {
  const char *shape, *format;
  unsigned matrices, registers, rows, bits; ///< rows of a matrix
  std::string opcode(const char *space) const {
    return "ldmatrix.sync.aligned." + std::string(shape) + ".x" + std::to_string(matrices) +
           (rows == 16 ? ".trans" : "") + space + format;
  }
};
std::vector<LoadForm> loadForms() {
  std::vector<LoadForm> out;
  for (unsigned n : {1u, 2u}) {
    out.push_back({"m16n16", ".b8", n, 2 * n, 16, 8});
    out.push_back({"m16n16", ".b8x16.b6x16_p32", n, 2 * n, 16, 6});
    out.push_back({"m16n16", ".b8x16.b4x16_p64", n, 2 * n, 16, 4});
  }
  for (unsigned n : {1u, 2u, 4u}) {
    out.push_back({"m8n16", ".b8x16.b6x16_p32", n, n, 8, 6});
    out.push_back({"m8n16", ".b8x16.b4x16_p64", n, n, 8, 4});
  }
  return out;
}

/// Registers of each lane.  The pictures: T0 T1 T2 T3 hold row 0, four columns each, T4 to T7 row 1, and so on; of 16
/// rows the second register has rows 8 to 15.  .m16n16 shows the transposed matrix.
std::vector<std::uint32_t> expectedLoad(const LoadForm &f, const std::vector<std::uint8_t> &tile,
                                        const std::uint32_t *offsets) {
  std::vector<std::uint32_t> out(32 * f.registers);
  for (unsigned j = 0; j < f.matrices; ++j) {
    std::vector<std::array<std::uint8_t, 16>> m(f.rows);
    for (unsigned row = 0; row < f.rows; ++row)
      m[row] = elements(&tile[offsets[f.rows * j + row]], f.bits);
    if (f.rows == 16) {
      const auto memory = m;
      for (unsigned row = 0; row < 16; ++row)
        for (unsigned column = 0; column < 16; ++column)
          m[row][column] = memory[column][row];
    }
    const unsigned perMatrix = f.rows / 8;
    for (unsigned part = 0; part < perMatrix; ++part) {
      unsigned lane = 0;
      for (unsigned row = 8 * part; row < 8 * part + 8; ++row)
        for (unsigned column = 0; column < 16; column += 4)
          std::memcpy(&out[lane++ * f.registers + j * perMatrix + part], &m[row][column], 4);
    }
  }
  return out;
}

/// A 16x8 matrix as the accumulators of mma have it, its columns written one after the other: rows of memory.
void expectedStore(std::vector<std::uint8_t> &tile, const std::uint32_t *offsets, const std::uint32_t *registers,
                   unsigned count) {
  for (unsigned j = 0; j < count; ++j) {
    std::uint8_t m[16][8];
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned group = lane / 4, pair = lane % 4;
      std::uint8_t e[4];
      std::memcpy(e, &registers[lane * count + j], 4);
      m[group][2 * pair] = e[0];
      m[group][2 * pair + 1] = e[1];
      m[group + 8][2 * pair] = e[2];
      m[group + 8][2 * pair + 1] = e[3];
    }
    for (unsigned column = 0; column < 8; ++column)
      for (unsigned row = 0; row < 16; ++row)
        tile[offsets[8 * j + column] + row] = m[row][column];
  }
}

const char *const targets[] = {"sm_100a", "sm_103a", "sm_110a", "sm_120a"};

template <typename Fn> void eachSetting(unsigned registers, Fn f) {
  std::mt19937 random(31 + registers);
  for (const std::string &level : usableLevels())
    for (const char *target : targets)
      for (const Spelling &s : spellings)
        for (Pattern p : {Pattern::Contiguous, Pattern::Permuted, Pattern::Same, Pattern::Conflicting}) {
          const Data data(pick(2u, 50u), registers, p, random);
          EmulatorOptions options;
          options.cpuLevel = level;
          f(Emulator(target, options), std::string(target), s, data,
            level + " " + target + " " + s.name + " pattern " + std::to_string(static_cast<int>(p)));
        }
}

} // namespace

TEST(MatrixBytes, LoadEveryForm) {
  for (const LoadForm &form : loadForms())
    eachSetting(form.registers, [&](Emulator gpu, const std::string &target, const Spelling &s, const Data &data,
                                    const std::string &name) {
      auto &tiles = gpu.upload(data.tiles, "tiles");
      auto &offsets = gpu.upload(data.offsets, "offsets");
      auto &out = gpu.upload(std::vector<std::uint32_t>(data.registers.size(), 0xABABABAB), "registers");
      const Launched r = gpu.run(kernelText(parameters,
                                            prologue + s.prepare + form.opcode(s.modifier) + " " +
                                                registerList(form.registers) + ", " + s.address + ";\n" +
                                                registerAddress(form.registers) + moveRegisters(false, form.registers),
                                            target),
                                 {data.blocks}, {32}, {tiles, offsets, out});
      ASSERT_TRUE(r.clean()) << form.opcode("") << " " << name << "\n" << r.text();
      const auto got = gpu.download<std::uint32_t>(out);
      const std::size_t n = 32 * form.registers;
      for (unsigned b = 0; b < data.blocks; ++b)
        ASSERT_EQ(std::vector<std::uint32_t>(got.begin() + b * n, got.begin() + (b + 1) * n),
                  expectedLoad(form, data.tile(b), &data.offsets[32 * b]))
            << form.opcode("") << " " << name << " block " << b;
    });
}

TEST(MatrixBytes, StoreEveryForm) {
  for (unsigned count : {1u, 2u, 4u})
    eachSetting(count, [&](Emulator gpu, const std::string &target, const Spelling &s, const Data &data,
                           const std::string &name) {
      auto &tiles = gpu.upload(data.tiles, "tiles");
      auto &offsets = gpu.upload(data.offsets, "offsets");
      auto &registers = gpu.upload(data.registers, "registers");
      const std::string opcode =
          "stmatrix.sync.aligned.m16n8.x" + std::to_string(count) + ".trans" + s.modifier + ".b8";
      const Launched r =
          gpu.run(kernelText(parameters,
                             prologue + registerAddress(count) + moveRegisters(true, count) + s.prepare + opcode + " " +
                                 s.address + ", " + registerList(count) + ";\n" + copyBack,
                             target),
                  {data.blocks}, {32}, {tiles, offsets, registers});
      ASSERT_TRUE(r.status.ok()) << opcode << " " << name << "\n" << r.text();
      ASSERT_EQ(r.ids(), data.oneAddress ? "race.warp" : "") << opcode << " " << name << "\n" << r.text();
      const auto got = gpu.download<std::uint8_t>(tiles);
      for (unsigned b = 0; b < data.blocks; ++b) {
        std::vector<std::uint8_t> expected = data.tile(b);
        expectedStore(expected, &data.offsets[32 * b], &data.registers[32 * count * b], count);
        ASSERT_EQ(std::vector<std::uint8_t>(got.begin() + b * tileBytes, got.begin() + (b + 1) * tileBytes), expected)
            << opcode << " " << name << " block " << b;
      }
    });
}

TEST(MatrixBytes, ALoadedMatrixIsStoredTransposed) {
  // 16 rows of 16 bytes, byte c of row r is 16 r + c.  Register i has columns 8 i and up of the transposed matrix; what
  // the store takes for rows 0 to 15 of columns 0 to 7 are bytes 0, 1 and, from the other half, 2, 3 of that.
  const std::string body = R"(
    .shared .align 16 .b8 from[256]; .shared .align 16 .b8 to[256];
    mul.lo.u32 %r11, %r2, 8; mov.u32 %r12, from; add.u32 %r12, %r12, %r11; mov.u32 %r13, 0;
  L: add.u32 %r14, %r11, %r13; st.shared.u8 [%r12], %r14; add.u32 %r12, %r12, 1; add.u32 %r13, %r13, 1;
    setp.lt.u32 %p1, %r13, 8; @%p1 bra L; bar.warp.sync -1;
    and.b32 %r15, %r2, 15; mov.u32 %r12, from; mad.lo.u32 %r12, %r15, 16, %r12;
    ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r20, %r21}, [%r12];
    mov.u32 %r12, to; mad.lo.u32 %r12, %r15, 16, %r12; prmt.b32 %r22, %r20, %r21, 0x5410; prmt.b32 %r23, %r20, %r21, 0x7632;
    stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r12], {%r22, %r23};
    mov.u32 %r12, to; mad.lo.u32 %r12, %r2, 4, %r12; ld.shared.u32 %r20, [%r12];)";
  std::vector<std::uint32_t> got;
  const Launched r = oneWarp(body + writeOut, "sm_100a", 32, &got);
  ASSERT_TRUE(r.clean()) << r.text();
  // Rows 4 p and 4 p + 1 of memory go to rows 2 p and 2 p + 1, rows 4 p + 2 and 4 p + 3 to those plus 8.
  for (unsigned l = 0; l < 32; ++l) {
    const unsigned row = l / 4, from = row / 2 * 4 + row % 2;
    for (unsigned b = 0; b < 4; ++b)
      EXPECT_EQ(got[l] >> 8 * b & 0xFF, 16 * from + l % 4 * 4 + b) << "row " << row << " byte " << l % 4 * 4 + b;
  }
}

TEST(MatrixBytes, PaddingMayBeUndefined) {
  // 8 bytes of each row are written.
  const std::string half = "mov.u32 %r11, tile; mad.lo.u32 %r11, %r2, 16, %r11; st.shared.v2.u32 [%r11], {%r2, %r2}; "
                           "bar.warp.sync -1; ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.";
  EXPECT_TRUE(oneWarp(half + "b4x16_p64 {%r20, %r21, %r22, %r23}, [%r11];", "sm_120a").clean());
  expectFinding(oneWarp(half + "b6x16_p32 {%r20, %r21, %r22, %r23}, [%r11];", "sm_120a"), "uninit.shared",
                "12-byte load reads tile+8 (lane 0), which nobody wrote");
}

TEST(MatrixBytes, RowsAndLanesThatAreMissing) {
  const std::string load = "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r20, %r21}, ";
  // Lane 15 gives a row, lane 16 none.
  for (unsigned lane : {15u, 16u}) {
    const Launched r = oneWarp(fill + "setp.eq.u32 %p1, %r2, " + std::to_string(lane) +
                                   "; @%p1 add.u32 %r11, %r11, 8; " + load + "[%r11];",
                               "sm_100a");
    EXPECT_EQ(r.ids(), lane == 15 ? "misaligned" : "") << r.text();
  }
  expectFinding(
      oneWarp(fill + "stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [%r11+16], {%r1, %r2, %r3, %r4};", "sm_100a"),
      "oob.shared", "16-byte store");
  // 10 lanes have left: rows 0 to 15 are there, lanes 22 to 31 get nothing.
  std::vector<std::uint32_t> got;
  const Launched left =
      oneWarp(fill + "setp.ge.u32 %p1, %r2, 22; @%p1 ret; " + load + "[%r11];" + writeOut, "sm_100a", 32, &got);
  expectFinding(left, "matrix.missing_lane", "lanes 0xffc00000");
  // Lane 0 of a half warp that gives rows 0 to 7 only: bytes of rows 0 to 3.
  const Launched few =
      oneWarp(fill + "setp.ge.u32 %p1, %r2, 2; @%p1 ret; " + load + "[%r11];" + writeOut, "sm_100a", 32, &got);
  EXPECT_EQ(few.ids(), "matrix.missing_lane") << few.text();
  EXPECT_EQ(got[0], 0xDEAD0400u); // rows 0 and 1 start with 0 and 4
}

TEST(MatrixBytes, TargetsThatHaveThem) {
  for (const Target &t : allTargets()) {
    const std::string name(t.name);
    const bool has = t.sm >= 100 && t.archSpecific;
    for (const std::string form :
         {"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r20, %r21}, [%r11];",
          "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%r20}, [%r11];",
          "ldmatrix.sync.aligned.m16n16.x2.trans.shared::cta.b8x16.b4x16_p64 {%r20, %r21, %r22, %r23}, [%r11];",
          "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r11], {%r2};"}) {
      const Launched r = oneWarp(fill + form, name);
      EXPECT_EQ(r.clean(), has) << name << r.text();
      if (!has) {
        EXPECT_NE(r.status.toString().find(form.substr(0, form.find(' ')) + ": " + name + " does not have it"),
                  std::string::npos)
            << r.text();
        EXPECT_NE(r.status.toString().find("sm_100a is the first target that does"), std::string::npos) << r.text();
      }
    }
  }
}

TEST(MatrixBytes, FormsThatAreRefused) {
  // As ptxas of CUDA 13.0 does.
  for (const char *form : {"ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r1, %r3}, [%r11]",
                           "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r1, %r3, %r4, %r5}, [%r11]",
                           "ldmatrix.sync.aligned.m16n16.x1.shared.b8x16.b4x16_p64 {%r1, %r3}, [%r11]",
                           "ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b4x16_p64 {%r1}, [%r11]",
                           "ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%r1}, [%r11]",
                           "ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r1}, [%r11]",
                           "stmatrix.sync.aligned.m16n8.x4.shared.b8 [%r11], {%r1, %r3, %r4, %r5}",
                           "stmatrix.sync.aligned.m16n8.x1.trans.shared.b16 [%r11], {%r1}"}) {
    const std::string said = oneWarp(fill + form + ";", "sm_100a").status.toString();
    EXPECT_NE(said.find("no such form"), std::string::npos) << form << ": " << said;
  }
  for (const char *form : {"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1}, [%r11]",
                           "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%r1, %r3}, [%r11]",
                           "ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b6x16_p32 {%r1, %r3, %r4, %r5}, [%r11]",
                           "stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r11], {%r1}"}) {
    const std::string said = oneWarp(fill + form + ";", "sm_100a").status.toString();
    EXPECT_NE(said.find("takes a vector of "), std::string::npos) << form << ": " << said;
  }
}
