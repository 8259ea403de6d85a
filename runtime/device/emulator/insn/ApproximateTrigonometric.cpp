// sin and cos with .approx: section 1.3 of the emulator specification.
//
// Computed in f64 and rounded once.  Up to 2^22 the argument is reduced with pi/2 in three parts whose products with
// the quotient are exact; larger arguments go to the C library, lane by lane.  Subnormal sources count as zero with and
// without .ftz, as in the assembler's folder.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/FloatLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

constexpr float reducible = 0x1p22f;

template <bool Cosine> inline float nearCircle(float x) {
  const double a = magnitude(x) <= reducible ? double(x) : 0.0;
  const double shifted = a * 0x1.45f306dc9c883p-1 + 0x1.8p52;
  const double n = shifted - 0x1.8p52;
  const U64 quadrant = bitsOf(shifted) + (Cosine ? 1 : 0);
  // 29 + 29 + 53 bits of pi/2; n has at most 22 bits.
  const double r = ((a - n * 0x1.921fb54p+0) - n * 0x1.10b4612p-30) - n * -0x1.676733ae8fe48p-60;
  const double z = r * r, z2 = z * z, z4 = z2 * z2;
  const double sine = (-0x1.5555555555555p-3 + 0x1.1111111110bb1p-7 * z) +
                      (-0x1.a01a019e8357dp-13 + 0x1.71de37961e4c6p-19 * z) * z2 +
                      (-0x1.ae600a926c89ap-26 + 0x1.5e0af186af739p-33 * z) * z4;
  const double cosine = (0x1.5555555555555p-5 + -0x1.6c16c16c16966p-10 * z) +
                        (0x1.a01a019f4e867p-16 + -0x1.27e4fa17a41b4p-22 * z) * z2 +
                        (0x1.1eeb68b109173p-29 + -0x1.907d7aebd5e3dp-37 * z) * z4;
  const double value = quadrant & 1 ? (1.0 - 0.5 * z) + cosine * z2 : r + r * z * sine;
  const float result = static_cast<float>(doubleOf(bitsOf(value) ^ (quadrant & 2) << 62));
  return !Cosine && x == 0.0f ? x : result; // the reduction loses the sign of zero
}

template <bool Cosine, bool Ftz> Next circleHandler(Warp &w, const Op &op) {
  U32 *d = lanesOf<U32>(w, op.d);
  const U32 *s = lanesOf<U32>(w, op.s[0]);
  const U32 exec = w.exec;
  float source[warpSize], result[warpSize];
  U32 far = 0;
  for (unsigned l = 0; l < warpSize; ++l) {
    source[l] = flushed(floatOf(s[l]));
    far |= U32(!(magnitude(source[l]) <= reducible)) << l;
  }
  for (unsigned l = 0; l < warpSize; ++l)
    result[l] = nearCircle<Cosine>(source[l]);
  eachLane(far & exec, [&](unsigned l) {
    const double x = source[l];
    result[l] = canonical(static_cast<float>(Cosine ? __builtin_cos(x) : __builtin_sin(x)));
  });
  for (unsigned l = 0; l < warpSize; ++l)
    d[l] = exec >> l & 1 ? bitsOf(flushIf<Ftz>(result[l])) : d[l];
  return Next::Advance;
}

template <bool Cosine> Handler build(const Form &f, std::string &) {
  return f.has("ftz") ? &circleHandler<Cosine, true> : &circleHandler<Cosine, false>;
}

constexpr Row rows[] = {
    {"sin", "approx ftz?", "f32", "=0 0", 75, build<false>},
    {"cos", "approx ftz?", "f32", "=0 0", 75, build<true>},
};

} // namespace

std::span<const Row> approximateTrigonometricRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
