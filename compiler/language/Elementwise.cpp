// Arithmetic, comparisons, selections, functions and conversions: one element of each operand makes one of the result.
#include "RecorderImpl.h"

namespace kiln::language::detail {
namespace {

struct ArithRow {
  std::string_view name; ///< as kernels spell it
  Op onFloat, onSigned, onUnsigned;
};

const ArithRow &rowOf(Arith kind) {
  static constexpr ArithRow rows[] = {
      {"operator +", Op::AddF, Op::AddI, Op::AddI},    {"operator -", Op::SubF, Op::SubI, Op::SubI},
      {"operator *", Op::MulF, Op::MulI, Op::MulI},    {"operator /", Op::DivF, Op::DivSI, Op::DivUI},
      {"operator %", Op::RemSI, Op::RemSI, Op::RemUI}, {"operator &", Op::AndI, Op::AndI, Op::AndI},
      {"operator |", Op::OrI, Op::OrI, Op::OrI},       {"operator ^", Op::XOrI, Op::XOrI, Op::XOrI},
      {"operator <<", Op::ShLI, Op::ShLI, Op::ShLI},   {"operator >>", Op::ShRSI, Op::ShRSI, Op::ShRUI},
      {"max", Op::MaxNumF, Op::MaxSI, Op::MaxUI},      {"min", Op::MinNumF, Op::MinSI, Op::MinUI},
      {"maximum", Op::MaximumF, Op::MaxSI, Op::MaxUI}, {"minimum", Op::MinimumF, Op::MinSI, Op::MinUI},
  };
  return rows[static_cast<unsigned>(kind)];
}

/// The operands as values of one shape.
template <std::size_t N>
bool bringAll(Recorder &r, const Operand *const (&operands)[N], ValueId (&ids)[N], std::string_view what,
              Location loc) {
  std::optional<Shape> shape;
  if (!r.commonShape(operands, what, loc, shape))
    return false;
  for (std::size_t i = 0; i < N; ++i) {
    const auto id = r.bring(*operands[i], shape, what, loc);
    if (!id)
      return false;
    ids[i] = *id;
  }
  return true;
}

using ValueText = Recorder::ValueText;
using TypeText = Recorder::TypeText;

/// `op %a, %b [flags] : type`, the result of the operands' type.
Handle binaryOp(Recorder &r, Op op, std::string_view what, const Operand &a, const Operand &b, std::string_view flags,
                Location loc) {
  ValueId ids[2];
  if (!bringAll(r, {&a, &b}, ids, what, loc))
    return {};
  const TypeId type = r.value(ids[0]).type;
  return r.handle(
      r.result(type, loc, op, ' ', ValueText{ids[0]}, ", ", ValueText{ids[1]}, flags, " : ", TypeText{type}));
}

Handle unaryOp(Recorder &r, Op op, std::string_view what, const Operand &a, std::string_view flags, Location loc) {
  const auto id = r.find(a, what, loc);
  if (!id)
    return {};
  const TypeId type = r.value(*id).type;
  return r.handle(r.result(type, loc, op, ' ', ValueText{*id}, flags, " : ", TypeText{type}));
}

std::string_view gradeFlags(const Recorder &r, Grade grade) {
  return (grade == Grade::OfScope ? r.grade : grade) == Grade::Approximate ? " fastmath<afn>" : "";
}

ValueId convert(Recorder &r, Op op, ValueId from, DType to, Location loc) {
  const TypeId source = r.value(from).type, target = r.withElement(source, to);
  return r.result(target, loc, op, ' ', ValueText{from}, " : ", TypeText{source}, " to ", TypeText{target});
}

} // namespace

Handle arithmetic(Arith kind, DType e, const Operand &a, const Operand &b, Grade grade, Location loc) {
  Recorder *r = Recorder::current();
  if (!r)
    return {};
  const ArithRow &row = rowOf(kind);
  const Op op = isFloat(e) ? row.onFloat : isUnsigned(e) ? row.onUnsigned : row.onSigned;
  const bool fuses = op == Op::AddF || op == Op::SubF || op == Op::MulF;
  const std::string_view flags = op == Op::DivF            ? gradeFlags(*r, grade)
                                 : fuses && r->contraction ? " fastmath<contract>"
                                                           : "";
  return binaryOp(*r, op, row.name, a, b, flags, loc);
}

Handle compare(Compare kind, DType e, const Operand &a, const Operand &b, Location loc) {
  Recorder *r = Recorder::current();
  if (!r)
    return {};
  constexpr std::string_view names[] = {
      "operator ==", "operator !=", "operator <", "operator <=", "operator >", "operator >=", "isNan"};
  // Comparisons with NaN are false, but for !=.
  constexpr std::string_view onFloat[] = {"oeq", "une", "olt", "ole", "ogt", "oge", "uno"};
  constexpr std::string_view onSigned[] = {"eq", "ne", "slt", "sle", "sgt", "sge", ""};
  constexpr std::string_view onUnsigned[] = {"eq", "ne", "ult", "ule", "ugt", "uge", ""};
  const auto k = static_cast<unsigned>(kind);
  ValueId ids[2];
  if (!bringAll(*r, {&a, &b}, ids, names[k], loc))
    return {};
  const TypeId type = r->value(ids[0]).type, mask = r->withElement(type, DType::I1);
  const std::string_view predicate = isFloat(e) ? onFloat[k] : isUnsigned(e) ? onUnsigned[k] : onSigned[k];
  return r->handle(r->result(mask, loc, isFloat(e) ? Op::CmpF : Op::CmpI, ' ', predicate, ", ", ValueText{ids[0]}, ", ",
                             ValueText{ids[1]}, " : ", TypeText{type}));
}

Handle negate(DType e, const Operand &a, Location loc) {
  Recorder *r = Recorder::current();
  if (!r)
    return {};
  if (isFloat(e))
    return unaryOp(*r, Op::NegF, "operator -", a, {}, loc);
  return binaryOp(*r, Op::SubI, "operator -", Operand::number(0, e, loc), a, {}, loc);
}

Handle invert(DType e, const Operand &a, Location loc) {
  Recorder *r = Recorder::current();
  if (!r)
    return {};
  const Operand ones = e == DType::I1 ? Operand::number(true, e, loc) : Operand::number(-1, Recorder::signless(e), loc);
  return binaryOp(*r, Op::XOrI, "operator ~", a, ones, {}, loc);
}

Location whereMade(const Handle &handle) {
  const Recorder *r = Recorder::current();
  return r && r->peek(handle) ? r->value(handle.index).location : Location();
}

Handle unary(Op op, std::string_view name, DType e, const Operand &a, Grade grade, Location loc) {
  Recorder *r = Recorder::current();
  return r ? unaryOp(*r, op, name, a, gradeFlags(*r, grade), loc) : Handle();
}

Handle power(DType e, const Operand &a, const Operand &b, Grade grade, Location loc) {
  Recorder *r = Recorder::current();
  return r ? binaryOp(*r, Op::PowF, "pow", a, b, gradeFlags(*r, grade), loc) : Handle();
}

Handle copySign(DType e, const Operand &a, const Operand &b, Location loc) {
  Recorder *r = Recorder::current();
  return r ? binaryOp(*r, Op::CopySign, "copysign", a, b, {}, loc) : Handle();
}

Handle fusedMultiplyAdd(DType e, const Operand &a, const Operand &b, const Operand &c, Location loc) {
  Recorder *r = Recorder::current();
  ValueId ids[3];
  if (!r || !bringAll(*r, {&a, &b, &c}, ids, "fma", loc))
    return {};
  const TypeId type = r->value(ids[0]).type;
  return r->handle(r->result(type, loc, Op::Fma, ' ', ValueText{ids[0]}, ", ", ValueText{ids[1]}, ", ",
                             ValueText{ids[2]}, " : ", TypeText{type}));
}

Handle select(const Operand &condition, const Operand &a, const Operand &b, Location loc) {
  Recorder *r = Recorder::current();
  ValueId ids[3];
  if (!r || !bringAll(*r, {&condition, &a, &b}, ids, "select", loc))
    return {};
  const TypeId mask = r->value(ids[0]).type, type = r->value(ids[1]).type;
  if (r->type(type).isTile)
    return r->handle(r->result(type, loc, Op::Select, ' ', ValueText{ids[0]}, ", ", ValueText{ids[1]}, ", ",
                               ValueText{ids[2]}, " : ", TypeText{mask}, ", ", TypeText{type}));
  return r->handle(r->result(type, loc, Op::Select, ' ', ValueText{ids[0]}, ", ", ValueText{ids[1]}, ", ",
                             ValueText{ids[2]}, " : ", TypeText{type}));
}

Handle cast(DType to, const Operand &a, Location loc) {
  Recorder *r = Recorder::current();
  const auto id = r ? r->find(a, "cast", loc) : std::nullopt;
  if (!id)
    return {};
  const DType from = a.element;
  if (Recorder::signless(from) == Recorder::signless(to))
    return r->handle(*id);
  if (to == DType::I1)
    return compare(Compare::Ne, from, a, Operand::number(0, from, loc), loc);
  const unsigned fromBits = bitsOf(from), toBits = bitsOf(to);
  Op op;
  if (isFloat(from) && isFloat(to)) {
    if (fromBits == toBits) // f16 and bf16, the two 8-bit floats: through f32, which holds both exactly
      return r->handle(convert(*r, Op::TruncF, convert(*r, Op::ExtF, *id, DType::F32, loc), to, loc));
    op = fromBits < toBits ? Op::ExtF : Op::TruncF;
  } else if (isFloat(from)) {
    op = isUnsigned(to) ? Op::FPToUI : Op::FPToSI;
  } else if (isFloat(to)) {
    op = isUnsigned(from) || from == DType::I1 ? Op::UIToFP : Op::SIToFP;
  } else {
    op = fromBits > toBits ? Op::TruncI : isUnsigned(from) || from == DType::I1 ? Op::ExtUI : Op::ExtSI;
  }
  return r->handle(convert(*r, op, *id, to, loc));
}

Handle bitcast(DType to, const Operand &a, Location loc) {
  Recorder *r = Recorder::current();
  const auto id = r ? r->find(a, "bitcast", loc) : std::nullopt;
  if (!id)
    return {};
  if (Recorder::signless(a.element) == Recorder::signless(to))
    return r->handle(*id);
  return r->handle(convert(*r, Op::Bitcast, *id, to, loc));
}

Grade setGrade(Grade grade) {
  Recorder *r = Recorder::current();
  if (!r || grade == Grade::OfScope)
    return Grade::OfScope;
  return std::exchange(r->grade, grade);
}

bool setContraction(bool allowed) {
  Recorder *r = Recorder::any();
  return r ? std::exchange(r->contraction, allowed) : true;
}

Location setCaller(Location loc) {
  Recorder *r = Recorder::any();
  return r ? std::exchange(r->caller, loc) : Location();
}

void refuse(std::string_view operation, const std::string &message, std::string remedy, Location loc) {
  if (Recorder *r = Recorder::current())
    r->fail(loc, operation, message, std::move(remedy));
}

Handle constant(const Operand &value, Location loc) {
  Recorder *r = Recorder::current();
  const auto id = r ? r->bring(value, nullptr, "constant", loc) : std::nullopt;
  return id ? r->handle(*id) : Handle();
}

} // namespace kiln::language::detail
