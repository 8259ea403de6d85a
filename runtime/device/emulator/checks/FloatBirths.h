//===- FloatBirths.h - Where NaN and infinities come from -----------------===//
//
// A launch that looks for births (EmulatorOptions::firstNan) compares the result of each floating-point instruction
// with its operands.  A NaN is born where the result is NaN and no operand is, infinities among the operands or not; an
// infinity where the result is infinite and every operand is finite.  So what only passes a NaN on is never named:
// the findings name the instructions with which a wrong result started.
//
// Arithmetic, conversions, mma and wgmma; a matrix product is compared as a whole, with all elements of its operands.
// Loads, moves, selections and constants give birth to nothing.  Not looked at: wmma, atomics, integer instructions
// that work on the bits of floats.
//
// Which types an op has is read from its opcode once a launch.  A launch that looks for births counts too (Counting.h),
// since both need to be called around each op.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_FLOATBIRTHS_H
#define KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_FLOATBIRTHS_H

#include "runtime/device/emulator/execute/Executor.h"

#include <vector>

namespace kiln::emulator {

/// What one register holds: `count` floats, the first in the lowest bits.
struct FloatPack {
  enum class Kind : std::uint8_t { None, F16, BF16, F32, F64, E4M3, E5M2 };
  Kind kind = Kind::None;
  std::uint8_t count = 1;
  unsigned bits() const; ///< of one
};

/// Of an op.
struct FloatForm {
  enum class Shape : std::uint8_t {
    None,
    Lanes,     ///< Op::d from Op::s, lane by lane
    Matrix,    ///< registers of D, A, B, C in the pool at Op::aux
    Warpgroup, ///< WgmmaForm says where D, A and B are
  };
  Shape shape = Shape::None;
  FloatPack d, s[3];              ///< A, B, C of a matrix
  std::uint8_t registers[4] = {}; ///< of a matrix: of D, A, B, C
};

/// Of an instruction by its opcode with all modifiers.
FloatForm floatFormOf(std::string_view opcode);
/// One an op of the program.
std::vector<FloatForm> floatForms(const Program &program);

struct WgmmaProduct; // Wgmma.h

/// Of a worker.
class FloatBirths {
public:
  explicit FloatBirths(const std::vector<FloatForm> &forms) : forms(forms) {}

  /// The lanes w.exec are about to execute `op`: keeps its operands.
  void before(const WarpState &w, const Op &op);
  /// These lanes have.
  void after(WarpState &w, const Op &op, std::uint32_t lanes);
  /// A product of four warps, the first of which is `leader`, is about to be delivered, and was.
  void beforeProduct(WarpState &leader, const Op &op, const WgmmaProduct &product);
  void afterProduct(WarpState &leader, const Op &op, const WgmmaProduct &product);

private:
  struct Seen {
    bool nan = false, infinite = false;
    void add(const FloatPack &pack, std::uint64_t bits);
  };
  const FloatForm &formOf(const WarpState &w, const Op &op) const;
  void afterMatrix(WarpState &w, const Op &op, const FloatForm &form);

  const std::vector<FloatForm> &forms;
  std::uint64_t operands[3][warpSize] = {}; ///< of a Lanes op
  Seen matrix;                              ///< among the operands of a matrix product
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_FLOATBIRTHS_H
