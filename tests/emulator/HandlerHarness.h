//===- HandlerHarness.h - One instruction without a kernel ----------------===//
//
// Finds the handler of an opcode as the decoder would, fills the slots of its operands and runs it: the quickest way to
// test arithmetic.  Values are passed as 64-bit patterns, one a lane; destinations are poisoned first.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_EMULATOR_HANDLERHARNESS_H
#define KILN_TESTS_EMULATOR_HANDLERHARNESS_H

#include "runtime/device/emulator/decode/RowMatch.h"
#include "runtime/device/emulator/execute/Warp.h"

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace kiln::emulator::test {

using LaneValues = std::array<std::uint64_t, warpSize>;

class HandlerHarness {
public:
  /// `opcode` as in PTX ("add.sat.s32"); `level` empty: the best of this CPU.  `registers`: bytes of the operands'
  /// registers where they differ from the types (cvt), one for each operand given: optional ones may be left out.  As
  /// the decoder has it: a source has 8 bytes only if its type has.
  explicit HandlerHarness(std::string_view opcode, std::string_view level = {}, std::string_view target = "sm_100a",
                          std::vector<unsigned> registers = {})
      : storage(pieces * pieceBytes + 64) {
    const InstructionTable *table = instructionTable(level);
    if (!table) {
      problem = "no CPU level " + std::string(level);
      return;
    }
    index = std::make_unique<RowIndex>(*table);
    Result<RowMatch> found = index->match(opcode, **findTarget(target));
    if (!found.ok()) {
      problem = found.status().toString();
      return;
    }
    match = *found;
    Form &form = match.form;
    for (const OperandSpec &spec : match.row->operands) {
      const unsigned i = form.numOperands;
      if (!registers.empty() && i == registers.size())
        break;
      widths.push_back(registers.empty() ? bytesOf(spec) : registers[i]);
      form.registerBytes[form.numOperands++] = widths.back();
    }
    op.run = match.row->row->build(form, problem);
    op.flags = form.flags;
    const std::uintptr_t base = (reinterpret_cast<std::uintptr_t>(storage.data()) + 63) / 64 * 64;
    warp.registers = reinterpret_cast<std::byte *>(base);
    unsigned next = firstPiece;
    auto piece = [&] { return static_cast<Slot>(next++ * pieceBytes); };
    unsigned source = 0;
    for (unsigned i = 0; i < form.numOperands; ++i) {
      const OperandSpec &spec = match.row->operands[i];
      if (spec.destination) {
        if (op.d == noSlot)
          op.d = piece();
        else
          op.d2 = piece();
        if (spec.pairPredicate)
          op.d2 = piece();
      } else if (spec.kind == OperandSpec::Kind::MemberMask) {
        op.s[3] = piece();
      } else if (spec.kind != OperandSpec::Kind::Immediate) {
        sourceWidths.push_back(widths[i]);
        op.s[source++] = piece();
      }
    }
  }

  bool ok() const { return op.run != nullptr; }
  const std::string &why() const { return problem; }
  unsigned sources() const { return static_cast<unsigned>(sourceWidths.size()); }
  unsigned sourceBytes(unsigned i) const { return sourceWidths[i]; }
  unsigned destinationBytes() const { return widths.empty() ? 0 : widths.front(); }

  void setSource(unsigned i, const LaneValues &values) { write(op.s[i], sourceWidths[i], values); }
  void setCarry(const LaneValues &values) { write(carrySlot, 4, values); }
  LaneValues carry() const { return read(carrySlot, 4); }
  void setImmediate(std::int64_t value) { op.imm = value; }

  /// Runs the handler for the lanes of `exec`; the destinations hold `poison` before.
  Next run(std::uint32_t exec = fullMask) {
    LaneValues poisoned;
    poisoned.fill(poison);
    if (op.d != noSlot)
      write(op.d, destinationBytes(), poisoned);
    if (op.d2 != noSlot)
      write(op.d2, 4, poisoned);
    warp.exec = warp.mask = warp.alive = exec;
    return op.run(warp, op);
  }
  LaneValues result() const { return read(op.d, destinationBytes()); }
  LaneValues second() const { return read(op.d2, 4); }

  static constexpr std::uint64_t poison = 0xA5A5A5A5A5A5A5A5;

private:
  static constexpr unsigned pieceBytes = 512, firstPiece = 4, pieces = 16;

  unsigned bytesOf(const OperandSpec &spec) const {
    if (spec.kind == OperandSpec::Kind::Predicate)
      return 4;
    const ptx::Type type = spec.typeIndex >= 0 ? match.form.types[spec.typeIndex] : spec.type;
    return ptx::typeBytes(type) * (spec.wide ? 2 : 1);
  }
  void write(Slot slot, unsigned bytes, const LaneValues &values) {
    for (unsigned l = 0; l < warpSize; ++l) {
      const std::uint32_t narrow = static_cast<std::uint32_t>(values[l]);
      if (bytes == 8)
        std::memcpy(warp.registers + slot + 8 * l, &values[l], 8);
      else
        std::memcpy(warp.registers + slot + 4 * l, &narrow, 4);
    }
  }
  LaneValues read(Slot slot, unsigned bytes) const {
    LaneValues out{};
    for (unsigned l = 0; l < warpSize; ++l)
      std::memcpy(&out[l], warp.registers + slot + (bytes == 8 ? 8 : 4) * l, bytes == 8 ? 8 : 4);
    return out;
  }

  std::vector<std::byte> storage;
  std::unique_ptr<RowIndex> index;
  RowMatch match;
  std::vector<unsigned> widths, sourceWidths; ///< bytes of the registers
  Warp warp;
  Op op;
  std::string problem;
};

} // namespace kiln::emulator::test

#endif // KILN_TESTS_EMULATOR_HANDLERHARNESS_H
