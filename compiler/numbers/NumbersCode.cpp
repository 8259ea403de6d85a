#include "compiler/numbers/NumbersCode.h"

namespace kiln::numbers {

using namespace mlir;

Num Code::real(Type type, double v) {
  return wrap(LLVM::ConstantOp::create(builder, loc, type, builder.getFloatAttr(type, v)));
}

Num Code::integer(Type type, std::int64_t v) {
  const llvm::APInt bits(64, static_cast<std::uint64_t>(v));
  return wrap(LLVM::ConstantOp::create(builder, loc, type,
                                       builder.getIntegerAttr(type, bits.sextOrTrunc(type.getIntOrFloatBitWidth()))));
}

Num Code::literal(const Num &like, double v) {
  return like.isFloat() ? real(like.type(), v) : integer(like.type(), static_cast<std::int64_t>(v));
}

Num Code::intrinsic(llvm::StringRef name, Type result, llvm::ArrayRef<Num> arguments) {
  llvm::SmallVector<Value> values;
  for (const Num &n : arguments)
    values.push_back(n.value);
  return wrap(LLVM::CallIntrinsicOp::create(builder, loc, result, builder.getStringAttr(name), values).getResult(0));
}

const Target &Code::target() const {
  return helpers.target;
}

Num Code::call(llvm::StringRef name, Implementation implementation, Type result, llvm::ArrayRef<Num> arguments,
               bool rare) {
  LLVM::LLVMFuncOp function = helpers.get(name, implementation, result, arguments, rare);
  llvm::SmallVector<Value> values;
  for (const Num &n : arguments)
    values.push_back(n.value);
  return wrap(LLVM::CallOp::create(builder, loc, function, values).getResult());
}

LLVM::LLVMFuncOp Helpers::get(llvm::StringRef name, Implementation implementation, Type result,
                              llvm::ArrayRef<Num> arguments, bool rare) {
  LLVM::LLVMFuncOp &known = made[name];
  if (known)
    return known;
  if (auto existing = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known = existing;
  llvm::SmallVector<Type> types;
  for (const Num &n : arguments)
    types.push_back(n.type());
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  // No location: inlining gives the operations that of the call.
  const Location nowhere = builder.getUnknownLoc();
  auto function = LLVM::LLVMFuncOp::create(builder, nowhere, name, LLVM::LLVMFunctionType::get(result, types),
                                           LLVM::Linkage::Internal);
  function.setVisibility(SymbolTable::Visibility::Private);
  function.setNoUnwind(true);
  function.setWillReturn(true);
  if (rare)
    function.setNoInline(true);
  else
    function.setAlwaysInline(true);
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  Code code(builder, nowhere, *this);
  llvm::SmallVector<Num> parameters;
  for (BlockArgument argument : entry->getArguments())
    parameters.push_back(code.wrap(argument));
  const Num value = implementation(code, parameters);
  LLVM::ReturnOp::create(builder, nowhere, ValueRange{value.value});
  return made[name] = function; // the implementation may have made others: `known` may be gone
}

Num Code::branch(const Num &condition, llvm::function_ref<Num()> yes, llvm::function_ref<Num()> no) {
  Region *region = builder.getInsertionBlock()->getParent();
  Block *from = builder.getInsertionBlock();
  auto addBlock = [&] { return builder.createBlock(region, region->end()); };
  Block *yesBlock = addBlock();
  const Num a = yes();
  Block *yesEnd = builder.getInsertionBlock();
  Block *noBlock = addBlock();
  const Num b = no();
  Block *noEnd = builder.getInsertionBlock();
  Block *join = addBlock();
  const Value result = join->addArgument(a.type(), loc);
  builder.setInsertionPointToEnd(from);
  LLVM::CondBrOp::create(builder, loc, condition.value, yesBlock, noBlock);
  builder.setInsertionPointToEnd(yesEnd);
  LLVM::BrOp::create(builder, loc, ValueRange{a.value}, join);
  builder.setInsertionPointToEnd(noEnd);
  LLVM::BrOp::create(builder, loc, ValueRange{b.value}, join);
  builder.setInsertionPointToEnd(join);
  return wrap(result);
}

llvm::SmallVector<Num> Code::loop(llvm::ArrayRef<Num> start, llvm::function_ref<Num(llvm::ArrayRef<Num>)> test,
                                  llvm::function_ref<llvm::SmallVector<Num>(llvm::ArrayRef<Num>)> body) {
  Region *region = builder.getInsertionBlock()->getParent();
  auto valuesOf = [](llvm::ArrayRef<Num> nums) {
    llvm::SmallVector<Value> values;
    for (const Num &n : nums)
      values.push_back(n.value);
    return values;
  };
  Block *from = builder.getInsertionBlock();
  Block *head = builder.createBlock(region, region->end());
  llvm::SmallVector<Num> state;
  for (const Num &n : start)
    state.push_back(wrap(head->addArgument(n.type(), loc)));
  Block *bodyBlock = builder.createBlock(region, region->end());
  Block *exit = builder.createBlock(region, region->end());
  builder.setInsertionPointToEnd(from);
  LLVM::BrOp::create(builder, loc, valuesOf(start), head);
  builder.setInsertionPointToEnd(head);
  LLVM::CondBrOp::create(builder, loc, test(state).value, bodyBlock, exit);
  builder.setInsertionPointToEnd(bodyBlock);
  const llvm::SmallVector<Num> next = body(state);
  LLVM::BrOp::create(builder, loc, valuesOf(next), head);
  builder.setInsertionPointToEnd(exit);
  return state;
}

namespace {

template <typename Op> Num emit(const Num &a, const Num &b) {
  return a.code->wrap(Op::create(a.code->builder, a.code->loc, a.value, b.value));
}
template <typename Op> Num emit(const Num &a) {
  return a.code->wrap(Op::create(a.code->builder, a.code->loc, a.value));
}
template <typename Op> Num convert(const Num &a, Type type) {
  return a.code->wrap(Op::create(a.code->builder, a.code->loc, type, a.value));
}

Num compare(const Num &a, const Num &b, LLVM::FCmpPredicate floats, LLVM::ICmpPredicate integers) {
  OpBuilder &builder = a.code->builder;
  if (a.isFloat())
    return a.code->wrap(LLVM::FCmpOp::create(builder, a.code->loc, floats, a.value, b.value));
  return a.code->wrap(LLVM::ICmpOp::create(builder, a.code->loc, integers, a.value, b.value));
}

} // namespace

Num operator+(const Num &a, const Num &b) {
  return a.isFloat() ? emit<LLVM::FAddOp>(a, b) : emit<LLVM::AddOp>(a, b);
}
Num operator-(const Num &a, const Num &b) {
  return a.isFloat() ? emit<LLVM::FSubOp>(a, b) : emit<LLVM::SubOp>(a, b);
}
Num operator*(const Num &a, const Num &b) {
  return a.isFloat() ? emit<LLVM::FMulOp>(a, b) : emit<LLVM::MulOp>(a, b);
}
Num operator-(const Num &a) {
  return a.isFloat() ? emit<LLVM::FNegOp>(a) : a.code->integer(a.type(), 0) - a;
}
Num operator&(const Num &a, const Num &b) {
  return emit<LLVM::AndOp>(a, b);
}
Num operator|(const Num &a, const Num &b) {
  return emit<LLVM::OrOp>(a, b);
}
Num operator^(const Num &a, const Num &b) {
  return emit<LLVM::XOrOp>(a, b);
}
Num operator<<(const Num &a, const Num &b) {
  return emit<LLVM::ShlOp>(a, b);
}
Num operator>>(const Num &a, const Num &b) {
  return emit<LLVM::LShrOp>(a, b);
}
Num arithmeticShift(const Num &a, const Num &b) {
  return emit<LLVM::AShrOp>(a, b);
}
Num udiv(const Num &a, const Num &b) {
  return emit<LLVM::UDivOp>(a, b);
}
Num urem(const Num &a, const Num &b) {
  return emit<LLVM::URemOp>(a, b);
}
Num sdiv(const Num &a, const Num &b) {
  return emit<LLVM::SDivOp>(a, b);
}
Num srem(const Num &a, const Num &b) {
  return emit<LLVM::SRemOp>(a, b);
}
Num fdiv(const Num &a, const Num &b) {
  return emit<LLVM::FDivOp>(a, b);
}

Num operator<(const Num &a, const Num &b) {
  return compare(a, b, LLVM::FCmpPredicate::olt, LLVM::ICmpPredicate::slt);
}
Num operator<=(const Num &a, const Num &b) {
  return compare(a, b, LLVM::FCmpPredicate::ole, LLVM::ICmpPredicate::sle);
}
Num operator>(const Num &a, const Num &b) {
  return compare(a, b, LLVM::FCmpPredicate::ogt, LLVM::ICmpPredicate::sgt);
}
Num operator>=(const Num &a, const Num &b) {
  return compare(a, b, LLVM::FCmpPredicate::oge, LLVM::ICmpPredicate::sge);
}
Num equal(const Num &a, const Num &b) {
  return compare(a, b, LLVM::FCmpPredicate::oeq, LLVM::ICmpPredicate::eq);
}
Num notEqual(const Num &a, const Num &b) {
  return compare(a, b, LLVM::FCmpPredicate::une, LLVM::ICmpPredicate::ne);
}
Num below(const Num &a, const Num &b) {
  return compare(a, b, LLVM::FCmpPredicate::olt, LLVM::ICmpPredicate::ult);
}
Num isNan(const Num &x) {
  return compare(x, x, LLVM::FCmpPredicate::uno, LLVM::ICmpPredicate::ne);
}

Num select(const Num &condition, const Num &a, const Num &b) {
  return a.code->wrap(LLVM::SelectOp::create(a.code->builder, a.code->loc, condition.value, a.value, b.value));
}
Num fma(const Num &a, const Num &b, const Num &c) {
  return a.code->wrap(LLVM::FMAOp::create(a.code->builder, a.code->loc, a.value, b.value, c.value));
}
Num abs(const Num &x) {
  if (x.isFloat())
    return emit<LLVM::FAbsOp>(x);
  return x.code->wrap(
      LLVM::AbsOp::create(x.code->builder, x.code->loc, x.type(), x.value, /*is_int_min_poison=*/false));
}
Num sqrt(const Num &x) {
  return emit<LLVM::SqrtOp>(x);
}
Num rint(const Num &x) {
  return emit<LLVM::RoundEvenOp>(x);
}
Num trunc(const Num &x) {
  return emit<LLVM::FTruncOp>(x);
}
Num copySign(const Num &magnitude, const Num &sign) {
  return emit<LLVM::CopySignOp>(magnitude, sign);
}
Num leadingZeros(const Num &x) {
  return x.code->wrap(
      LLVM::CountLeadingZerosOp::create(x.code->builder, x.code->loc, x.type(), x.value, /*is_zero_poison=*/false));
}

Num bitsOf(const Num &x) {
  return convert<LLVM::BitcastOp>(x, x.code->i(x.bits()));
}
Num floatOf(const Num &x, Type type) {
  return convert<LLVM::BitcastOp>(x, type);
}
Num signExtend(const Num &x, Type type) {
  return x.type() == type ? x : convert<LLVM::SExtOp>(x, type);
}
Num zeroExtend(const Num &x, Type type) {
  return x.type() == type ? x : convert<LLVM::ZExtOp>(x, type);
}
Num truncate(const Num &x, Type type) {
  return x.type() == type ? x : convert<LLVM::TruncOp>(x, type);
}
Num toSigned(const Num &x, Type type) {
  return convert<LLVM::FPToSIOp>(x, type);
}
Num fromSigned(const Num &x, Type type) {
  return convert<LLVM::SIToFPOp>(x, type);
}
Num extendFloat(const Num &x, Type type) {
  return x.type() == type ? x : convert<LLVM::FPExtOp>(x, type);
}
Num truncateFloat(const Num &x, Type type) {
  return x.type() == type ? x : convert<LLVM::FPTruncOp>(x, type);
}

Num polynomial(const Num &x, llvm::ArrayRef<double> coefficients) {
  Num sum = x.code->real(x.type(), coefficients.back());
  for (const double c : llvm::reverse(coefficients.drop_back()))
    sum = fma(sum, x, c);
  return sum;
}

} // namespace kiln::numbers
