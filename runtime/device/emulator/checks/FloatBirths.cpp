#include "runtime/device/emulator/checks/FloatBirths.h"

#include "runtime/device/emulator/execute/LaneValues.h"
#include "runtime/device/emulator/matrix/Wgmma.h"
#include "runtime/device/emulator/observe/OpTraits.h"
#include "runtime/io/Numbers.h"
#include "support/Text.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

namespace kiln::emulator {

namespace {

using Kind = FloatPack::Kind;
using ptx::Type;

FloatPack packOf(Type type) {
  switch (type) {
  case Type::F16:
    return {Kind::F16, 1};
  case Type::BF16:
    return {Kind::BF16, 1};
  case Type::F32:
  case Type::TF32:
    return {Kind::F32, 1};
  case Type::F64:
    return {Kind::F64, 1};
  case Type::F16x2:
    return {Kind::F16, 2};
  case Type::BF16x2:
    return {Kind::BF16, 2};
  case Type::F32x2:
    return {Kind::F32, 2};
  case Type::E4M3:
    return {Kind::E4M3, 1};
  case Type::E5M2:
    return {Kind::E5M2, 1};
  case Type::E4M3x2:
    return {Kind::E4M3, 2};
  case Type::E5M2x2:
    return {Kind::E5M2, 2};
  default:
    return {};
  }
}

/// As many as a register of a matrix operand has.
FloatPack packedInWord(Type type) {
  FloatPack pack = packOf(type);
  if (pack.kind != Kind::None && pack.kind != Kind::F64)
    pack.count = static_cast<std::uint8_t>(32 / pack.bits());
  return pack;
}

double valueOf(Kind kind, std::uint64_t bits) {
  const auto code = static_cast<std::uint32_t>(bits);
  switch (kind) {
  case Kind::F16:
    return decodeFloat(code & 0xffff, formatF16);
  case Kind::BF16:
    return decodeFloat(code & 0xffff, formatBf16);
  case Kind::E4M3:
    return decodeFloat(code & 0xff, formatE4m3);
  case Kind::E5M2:
    return decodeFloat(code & 0xff, formatE5m2);
  case Kind::F32:
    return std::bit_cast<float>(code);
  case Kind::F64:
    return std::bit_cast<double>(bits);
  case Kind::None:
    break;
  }
  return 0;
}

enum class FloatClass : std::uint8_t { Finite, Infinite, Nan };
/// Of bits that are no number: compares them, since it is asked for every operand of every instruction.
FloatClass classify(Kind kind, std::uint64_t bits) {
  const auto judge = [](std::uint64_t magnitude, std::uint64_t infinity) {
    return magnitude < infinity ? FloatClass::Finite : magnitude == infinity ? FloatClass::Infinite : FloatClass::Nan;
  };
  switch (kind) {
  case Kind::F16:
    return judge(bits & 0x7fff, 0x7c00);
  case Kind::BF16:
    return judge(bits & 0x7fff, 0x7f80);
  case Kind::E4M3:
    return (bits & 0x7f) == 0x7f ? FloatClass::Nan : FloatClass::Finite;
  case Kind::E5M2:
    return judge(bits & 0x7f, 0x7c);
  case Kind::F32:
    return judge(bits & 0x7fffffff, 0x7f800000);
  case Kind::F64:
    return judge(bits & 0x7fffffffffffffff, 0x7ff0000000000000);
  case Kind::None:
    break;
  }
  return FloatClass::Finite;
}

std::uint64_t element(const FloatPack &pack, std::uint64_t bits, unsigned i) {
  return pack.bits() == 64 ? bits : bits >> (i * pack.bits());
}

/// A lane's register: 64 bits wide if the pack is.
std::uint64_t bitsIn(const WarpState &w, Slot slot, const FloatPack &pack, unsigned lane) {
  return laneValue(w, slot, lane, pack.bits() * pack.count <= 32);
}

void reportBirth(WarpState &w, const Op &op, bool nan, std::uint32_t lanes, const std::string &how) {
  const char *const id = nan ? "nan.born" : "inf.born";
  if (!countFinding(w, op, id))
    reportFinding(
        w, op, id, lanes,
        std::string(nan ? "the result is NaN and no operand is" : "the result is infinite, of finite operands") + how,
        false);
}

} // namespace

unsigned FloatPack::bits() const {
  switch (kind) {
  case Kind::F16:
  case Kind::BF16:
    return 16;
  case Kind::E4M3:
  case Kind::E5M2:
    return 8;
  case Kind::F64:
    return 64;
  case Kind::F32:
  case Kind::None:
    break;
  }
  return 32;
}

FloatForm floatFormOf(std::string_view opcode) {
  const std::vector<std::string_view> words = split(opcode, '.');
  std::vector<Type> types;
  for (std::size_t i = 1; i < words.size(); ++i)
    if (const Type t = ptx::typeFromName(words[i]); t != Type::None)
      types.push_back(t);
  FloatForm form;
  if (types.empty() || packOf(types[0]).kind == Kind::None)
    return form;
  const std::string_view first = words[0];
  const auto shape = matrixShape(words);
  if (first == "mma" && types.size() == 4 && shape) {
    form.shape = FloatForm::Shape::Matrix;
    form.d = packedInWord(types[0]);
    const auto [m, n, k] = *shape;
    const unsigned elements[] = {m * n, m * k, k * n, m * n};
    for (unsigned i = 0; i < 4; ++i) {
      const FloatPack pack = packedInWord(types[i]);
      if (i)
        form.s[i - 1] = pack;
      form.registers[i] = static_cast<std::uint8_t>(elements[i] / warpSize / pack.count);
    }
    return form;
  }
  if (first == "wgmma" && types.size() == 3) {
    form.shape = FloatForm::Shape::Warpgroup;
    for (unsigned i = 0; i < 3; ++i)
      (i ? form.s[i - 1] : form.d) = packedInWord(types[i]);
    return form;
  }
  static constexpr std::string_view arithmetic[] = {"add", "sub",   "mul", "fma", "mad", "div", "rcp", "sqrt",
                                                    "min", "rsqrt", "max", "ex2", "lg2", "sin", "cos", "tanh"};
  form.d = packOf(types[0]);
  if (first == "cvt" && types.size() == 2) {
    form.shape = FloatForm::Shape::Lanes;
    form.s[0] = packOf(types[1]); // none: of an integer
    if (form.d.count == 2 && form.s[0].count == 1)
      form.s[1] = form.s[0];
    return form;
  }
  if (std::find(std::begin(arithmetic), std::end(arithmetic), first) == std::end(arithmetic))
    return form;
  form.shape = FloatForm::Shape::Lanes;
  const bool three = first == "fma" || first == "mad";
  std::fill(std::begin(form.s), std::end(form.s), form.d);
  if (types.size() == 2) { // f32 sums of shorter operands
    form.s[0] = packOf(types[1]);
    if (three)
      form.s[1] = form.s[0];
  }
  return form;
}

std::vector<FloatForm> floatForms(const Program &program) {
  std::vector<FloatForm> forms(program.ops.size());
  const std::vector<OpTraits> traits = traitsOf(program);
  std::unordered_map<std::string_view, FloatForm> known;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    if (!traits[i].isInstruction)
      continue;
    const std::string_view opcode = program.lines[program.ops[i].line].opcode;
    const auto [entry, isNew] = known.try_emplace(opcode);
    if (isNew)
      entry->second = floatFormOf(opcode);
    forms[i] = entry->second;
  }
  return forms;
}

void FloatBirths::Seen::add(const FloatPack &pack, std::uint64_t bits) {
  for (unsigned i = 0; i < pack.count; ++i) {
    const FloatClass special = classify(pack.kind, element(pack, bits, i));
    nan |= special == FloatClass::Nan;
    infinite |= special == FloatClass::Infinite;
  }
}

const FloatForm &FloatBirths::formOf(const WarpState &w, const Op &op) const {
  return forms[static_cast<std::size_t>(&op - w.program->ops.data())];
}

void FloatBirths::before(const WarpState &w, const Op &op) {
  const FloatForm &form = formOf(w, op);
  if (form.shape == FloatForm::Shape::Lanes) {
    for (unsigned s = 0; s < 3; ++s)
      if (op.s[s] != noSlot && form.s[s].kind != Kind::None)
        for (unsigned l = 0; l < warpSize; ++l)
          operands[s][l] = bitsIn(w, op.s[s], form.s[s], l);
  } else if (form.shape == FloatForm::Shape::Matrix) {
    matrix = {};
    const Slot *slot = w.pool + op.aux + form.registers[0];
    for (unsigned s = 0; s < 3; ++s)
      for (unsigned r = 0; r < form.registers[s + 1]; ++r, ++slot)
        eachLane(w.alive, [&](unsigned l) { matrix.add(form.s[s], bitsIn(w, *slot, form.s[s], l)); });
  }
}

void FloatBirths::after(WarpState &w, const Op &op, std::uint32_t lanes) {
  const FloatForm &form = formOf(w, op);
  if (form.shape == FloatForm::Shape::Matrix)
    return afterMatrix(w, op, form);
  if (form.shape != FloatForm::Shape::Lanes)
    return;
  std::uint32_t born[2] = {0, 0}; // lanes: infinite, NaN
  std::string how[2];
  eachLane(lanes, [&](unsigned l) {
    const std::uint64_t result = bitsIn(w, op.d, form.d, l);
    for (unsigned e = 0; e < form.d.count; ++e) {
      const FloatClass special = classify(form.d.kind, element(form.d, result, e));
      if (special == FloatClass::Finite) [[likely]]
        continue;
      const bool nan = special == FloatClass::Nan;
      // Two numbers that become a pair: the first one is the upper.
      const bool pairs = form.d.count == 2 && form.s[0].count == 1;
      bool inherited = false;
      std::string values;
      for (unsigned s = 0; s < 3; ++s) {
        if (op.s[s] == noSlot || form.s[s].kind == Kind::None || (pairs && s != 1 - e))
          continue;
        const std::uint64_t bits = element(form.s[s], operands[s][l], form.s[s].count > 1 ? e : 0);
        const FloatClass operand = classify(form.s[s].kind, bits);
        inherited |= operand == FloatClass::Nan || (!nan && operand == FloatClass::Infinite);
        if (!born[nan])
          values += (values.empty() ? "" : ", ") + format("%.9g", valueOf(form.s[s].kind, bits));
      }
      if (inherited)
        continue;
      if (!born[nan])
        how[nan] = (values.empty() ? "" : ": " + values) + " (lane " + std::to_string(l) + ")";
      born[nan] |= 1u << l;
    }
  });
  for (const bool nan : {true, false})
    if (born[nan])
      reportBirth(w, op, nan, born[nan], how[nan]);
}

/// Where a matrix product has a NaN or an infinity.
static std::uint32_t lanesWith(const FloatPack &pack, FloatClass wanted, const WarpState &w, const Slot *slots,
                               unsigned registers) {
  std::uint32_t lanes = 0;
  for (unsigned r = 0; r < registers; ++r)
    eachLane(w.alive, [&](unsigned l) {
      const std::uint64_t bits = bitsIn(w, slots[r], pack, l);
      for (unsigned e = 0; e < pack.count; ++e)
        if (classify(pack.kind, element(pack, bits, e)) == wanted)
          lanes |= 1u << l;
    });
  return lanes;
}

void FloatBirths::afterMatrix(WarpState &w, const Op &op, const FloatForm &form) {
  if (matrix.nan)
    return;
  for (const bool nan : {true, false})
    if (nan || !matrix.infinite)
      if (const std::uint32_t lanes =
              lanesWith(form.d, nan ? FloatClass::Nan : FloatClass::Infinite, w, w.pool + op.aux, form.registers[0]))
        reportBirth(w, op, nan, lanes, " (matrix product)");
}

void FloatBirths::beforeProduct(WarpState &leader, const Op &op, const WgmmaProduct &product) {
  matrix = {};
  const FloatForm &form = formOf(leader, op);
  if (form.shape != FloatForm::Shape::Warpgroup)
    return;
  const auto addPieces = [&](const FloatPack &pack, const std::uint32_t *pieces, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i)
      for (unsigned word = 0; word < WgmmaOperand::pieceBytes / 4; ++word) {
        std::uint32_t bits;
        std::memcpy(&bits, product.shared + pieces[i] + 4 * word, sizeof bits);
        matrix.add(pack, bits);
      }
  };
  if (product.piecesA)
    addPieces(form.s[0], product.piecesA, product.form.a.pieces());
  else
    for (unsigned warp = 0; warp < warpgroupWarps; ++warp)
      for (unsigned f = 0; f < wgmmaFragments; ++f)
        for (unsigned l = 0; l < warpSize; ++l)
          matrix.add(form.s[0], product.fragments[warp][f][l]);
  addPieces(form.s[1], product.piecesB, product.form.b.pieces());
  if (product.addsD)
    for (const auto &warp : product.accumulators)
      for (unsigned e = 0; e < product.form.accumulators; ++e)
        for (unsigned l = 0; l < warpSize; ++l)
          matrix.add(form.d, warp[e][l]);
}

void FloatBirths::afterProduct(WarpState &leader, const Op &op, const WgmmaProduct &product) {
  const FloatForm &form = formOf(leader, op);
  if (form.shape != FloatForm::Shape::Warpgroup || matrix.nan)
    return;
  for (const bool nan : {true, false}) {
    if (!nan && matrix.infinite)
      continue;
    for (unsigned warp = 0; warp < warpgroupWarps; ++warp)
      if (WarpState &w = leader.block->warps[leader.index + warp];
          const std::uint32_t lanes = lanesWith(form.d, nan ? FloatClass::Nan : FloatClass::Infinite, w,
                                                w.pool + op.aux, product.form.accumulators)) {
        reportBirth(w, op, nan, lanes, " (matrix product of a warpgroup)");
        break;
      }
  }
}

} // namespace kiln::emulator
