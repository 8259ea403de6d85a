#include "compiler/analysis/AxisTransfer.h"

#include "compiler/tile/Tile.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln::analysis {

using layout::AxisInfo;
using layout::Coords;
using Facts = AxisInfo::Facts;

std::optional<Coords> factShape(Type type) {
  if (isa<tile::PtrType>(type) || type.isIntOrFloat())
    return Coords{1u};
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || tensor.getRank() > layout::maxDims)
    return std::nullopt;
  if (tensor.getRank() == 0)
    return Coords{1u};
  Coords out;
  for (int64_t extent : tensor.getShape()) {
    if (extent < 1 || extent > AxisInfo::big)
      return std::nullopt;
    out.push_back(static_cast<std::uint32_t>(extent));
  }
  return out;
}

AxisInfo entryFacts(Value value, const Coords &shape, std::uint64_t known) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto f = argument ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp()) : FunctionOpInterface();
  if (!f || !argument.getOwner()->isEntryBlock())
    return AxisInfo::unknown(shape);
  auto divisor = f.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), tile::divisibilityAttr);
  if (isa<RankedTensorType>(value.getType()))
    return AxisInfo::unknown(shape);
  const std::uint64_t stated = divisor ? static_cast<std::uint64_t>(divisor.getInt()) : 1;
  std::uint64_t multiple = std::max(known, stated & (~stated + 1));
  if (auto pointer = dyn_cast<tile::PtrType>(value.getType())) {
    // In elements; a pointer is aligned to its element anyway.
    const std::uint64_t power = multiple & (~multiple + 1);
    multiple = std::max<std::uint64_t>(1, power / (tile::storageBits(pointer.getPointee()) / 8));
  }
  return AxisInfo::splat(multiple, shape);
}

namespace {

/// The constant integer that a value, or every element of it, is.
std::optional<std::int64_t> constantOf(Value v) {
  if (auto splat = v.getDefiningOp<tile::SplatOp>())
    v = splat.getSource();
  llvm::APInt n;
  if (!tile::elementTypeOf(v.getType()).isInteger() || !matchPattern(v, m_ConstantInt(&n)))
    return std::nullopt;
  return n.getSExtValue();
}

/// log2 of a positive power of two.
std::optional<unsigned> logOf(std::optional<std::int64_t> n) {
  if (!n || *n <= 0 || !llvm::isPowerOf2_64(static_cast<std::uint64_t>(*n)))
    return std::nullopt;
  return llvm::Log2_64(static_cast<std::uint64_t>(*n));
}

std::uint32_t power(unsigned log) {
  return log >= 30 ? AxisInfo::big : 1u << log;
}

Coords shapeOf(const AxisInfo &x) {
  Coords out;
  for (unsigned d = 0; d < x.dims(); ++d)
    out.push_back(x.shape(d));
  return out;
}

/// Facts dimension by dimension.
template <typename Rule> AxisInfo each(const AxisInfo &x, Rule &&rule) {
  Facts c, v, k;
  for (unsigned d = 0; d < x.dims(); ++d) {
    std::uint32_t cd = x.contiguity(d), vd = x.divisibility(d), kd = x.constancy(d);
    rule(cd, vd, kd);
    c.push_back(cd);
    v.push_back(vd);
    k.push_back(kd);
  }
  return AxisInfo::known(c, v, k, shapeOf(x));
}

/// What divides every single element.
std::uint32_t everyElement(const AxisInfo &x) {
  std::uint32_t out = 1;
  for (unsigned d = 0; d < x.dims(); ++d)
    out = std::max(out, x.contiguity(d) == 1 ? x.divisibility(d) : 1);
  return out;
}

/// Constancy of both, and what divides both: sums, minima, bitwise or.
AxisInfo bothDivide(const AxisInfo &x, const AxisInfo &y) {
  const std::uint32_t v = std::min(everyElement(x), everyElement(y));
  return each(anyOf(x, y), [&](std::uint32_t &, std::uint32_t &vd, std::uint32_t &) { vd = v; });
}

/// x mod 2^log, x as an unsigned number.
AxisInfo lowBits(const AxisInfo &x, unsigned log) {
  return each(x, [&](std::uint32_t &c, std::uint32_t &v, std::uint32_t &) {
    const std::uint32_t block = std::min({c, v, power(log)});
    if (c != 1 && block < c)
      v = std::min(v, block);
    c = block;
    if (v >= power(log))
      v = AxisInfo::big;
  });
}

/// floor(x / 2^log).
AxisInfo shiftRight(const AxisInfo &x, unsigned log) {
  return each(x, [&](std::uint32_t &c, std::uint32_t &v, std::uint32_t &k) {
    k = std::max(k, std::min({c, v, power(log)}));
    v = c == 1 ? std::max(1u, log >= 31 ? 1u : v >> log) : 1;
    c = 1;
  });
}

/// x / 2^log rounded towards zero, x of any sign: only multiples are divided as by a shift.
AxisInfo divideSigned(const AxisInfo &x, unsigned log) {
  return each(x, [&](std::uint32_t &c, std::uint32_t &v, std::uint32_t &) {
    v = c == 1 && log < 31 && v >= power(log) ? v >> log : 1;
    c = 1;
  });
}

/// x - n * 2^log with the sign of x: what divides x and 2^log divides it, and multiples of 2^log leave nothing.
AxisInfo remainderSigned(const AxisInfo &x, unsigned log) {
  return each(x, [&](std::uint32_t &c, std::uint32_t &v, std::uint32_t &) {
    v = c != 1 ? 1 : v >= power(log) ? AxisInfo::big : v;
    c = 1;
  });
}

AxisInfo truncated(const AxisInfo &x, unsigned width) {
  return each(x, [&](std::uint32_t &c, std::uint32_t &v, std::uint32_t &) {
    const std::uint32_t block = std::min(c, power(width - 1));
    if (block < c)
      v = std::min(v, block);
    c = block;
  });
}

AxisInfo compare(arith::CmpIPredicate predicate, const AxisInfo &x, const AxisInfo &y) {
  switch (predicate) {
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
  case arith::CmpIPredicate::sge: // the complement of <
  case arith::CmpIPredicate::uge:
    return less(x, y);
  case arith::CmpIPredicate::sgt: // y < x seen from the other side; the rule wants the counting operand first
  case arith::CmpIPredicate::ugt:
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    return less(y, x);
  default:
    return anyOf(x, y);
  }
}

AxisInfo reshape(const AxisInfo &x, const Coords &shape) {
  // Aligned runs of the innermost dimension stay runs where they fit into both.
  const unsigned last = x.dims() - 1;
  const std::uint32_t extent = x.shape(last), inner = shape[shape.size() - 1];
  const std::uint32_t fits = std::min(extent & (~extent + 1), inner & (~inner + 1));
  bool uniform = true;
  for (unsigned d = 0; d < x.dims(); ++d)
    uniform = uniform && x.constancy(d) >= x.shape(d);
  if (uniform)
    return AxisInfo::splat(everyElement(x), shape);
  Facts c, v, k;
  for (unsigned d = 0; d < shape.size(); ++d) {
    c.push_back(1);
    v.push_back(everyElement(x));
    k.push_back(1);
  }
  const std::uint32_t block = std::min(x.contiguity(last), fits);
  c.back() = block;
  v.back() = block < x.contiguity(last) ? std::min(x.divisibility(last), block) : x.divisibility(last);
  k.back() = std::min(x.constancy(last), fits);
  return AxisInfo::known(c, v, k, shape);
}

AxisInfo ofConstant(Attribute value, const Coords &shape) {
  if (auto n = dyn_cast<IntegerAttr>(value))
    return AxisInfo::splat(static_cast<std::uint64_t>(n.getValue().getSExtValue()), shape);
  if (auto splat = dyn_cast<SplatElementsAttr>(value))
    return ofConstant(splat.getSplatValue<Attribute>(), shape);
  if (isa<FloatAttr>(value))
    return AxisInfo::splat(1, shape);
  return AxisInfo::unknown(shape);
}

} // namespace

namespace {

/// Whether the kernel assumes the condition, alone or as a part of a conjunction, wherever `of` has its value.
bool isAssumed(Value condition, Value of, unsigned depth = 8) {
  return depth && llvm::any_of(condition.getUsers(), [&](Operation *user) {
           return isa<tile::AssumeOp>(user) ? user->getBlock() == of.getParentBlock()
                                            : isa<arith::AndIOp>(user) && isAssumed(user->getResult(0), of, depth - 1);
         });
}

/// `value <predicate> n`, for a comparison of `value` with a constant on either side.
std::optional<std::pair<arith::CmpIPredicate, std::int64_t>> comparison(arith::CmpIOp cmp, Value value) {
  using P = arith::CmpIPredicate;
  const bool left = cmp.getLhs() == value;
  const std::optional<std::int64_t> n = constantOf(left ? cmp.getRhs() : cmp.getLhs());
  if (!n)
    return std::nullopt;
  P predicate = cmp.getPredicate();
  if (!left)
    predicate = predicate == P::slt   ? P::sgt
                : predicate == P::sle ? P::sge
                : predicate == P::sgt ? P::slt
                : predicate == P::sge ? P::sle
                                      : predicate;
  return std::pair(predicate, *n);
}

/// What x is a multiple of if `value`, computed from it, is 0; 1 if nothing follows.
std::uint64_t divisorTested(Operation *value, Value x) {
  if (!isa<arith::RemSIOp, arith::RemUIOp, arith::AndIOp>(value))
    return 1;
  const std::optional<std::int64_t> n = value->getOperand(0) == x ? constantOf(value->getOperand(1)) : std::nullopt;
  if (!n)
    return 1;
  if (!isa<arith::AndIOp>(value))
    return *n == 0 ? 1 : static_cast<std::uint64_t>(*n); // n % 0 is n: 0 if assumed so, which nobody means
  const std::uint64_t low = ~static_cast<std::uint64_t>(*n);
  return low & (~low + 1); // the ones at the end of the mask
}

std::optional<std::int64_t> boundByDefinition(Value value, std::int64_t limit, unsigned depth);

} // namespace

Assumptions assumptionsOf(Value value) {
  using P = arith::CmpIPredicate;
  Assumptions out;
  if (!value.getType().isInteger(32) && !value.getType().isInteger(64))
    return out;
  for (Operation *user : value.getUsers()) {
    if (auto cmp = dyn_cast<arith::CmpIOp>(user)) {
      const auto known = comparison(cmp, value);
      if (!known || !isAssumed(cmp, value))
        continue;
      const auto [predicate, n] = *known;
      const bool below = predicate == P::slt && n > INT64_MIN, above = predicate == P::sgt && n < INT64_MAX;
      if (below || predicate == P::sle || predicate == P::eq)
        out.most = std::min(out.most.value_or(INT64_MAX), below ? n - 1 : n);
      if (above || predicate == P::sge || predicate == P::eq)
        out.least = std::max(out.least.value_or(INT64_MIN), above ? n + 1 : n);
      continue;
    }
    const std::uint64_t divisor = divisorTested(user, value);
    if (divisor == 1)
      continue;
    for (Operation *test : user->getResult(0).getUsers())
      if (auto cmp = dyn_cast<arith::CmpIOp>(test); cmp && cmp.getPredicate() == P::eq)
        if (const auto zero = comparison(cmp, user->getResult(0)); zero && zero->second == 0 && isAssumed(cmp, value))
          out.divisor = std::max(out.divisor, AxisInfo::splat(divisor, Coords{1u}).divisibility(0));
  }
  return out;
}

std::optional<std::int64_t> nonNegativeBound(Value value, unsigned depth) {
  const Type element = tile::elementTypeOf(value.getType());
  if (depth == 0 || (!element.isInteger(32) && !element.isInteger(64)))
    return std::nullopt;
  const std::int64_t limit = element.isInteger(32) ? INT32_MAX : INT64_MAX;
  const Assumptions assumed = assumptionsOf(value);
  const std::optional<std::int64_t> known = boundByDefinition(value, limit, depth);
  if (!known && !(assumed.least && *assumed.least >= 0))
    return std::nullopt;
  return std::min(known.value_or(limit), assumed.most.value_or(limit));
}

namespace {

std::optional<std::int64_t> boundByDefinition(Value value, std::int64_t limit, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (const std::optional<std::int64_t> n = constantOf(value))
    return *n >= 0 ? n : std::nullopt;
  auto of = [&](unsigned i) { return nonNegativeBound(op->getOperand(i), depth - 1); };
  auto within = [&](bool overflow, std::int64_t n) {
    return overflow || n > limit ? std::optional<std::int64_t>() : std::optional<std::int64_t>(n);
  };
  if (auto range = dyn_cast<tile::RangeOp>(op)) {
    const auto start = static_cast<std::int32_t>(range.getStart()), end = static_cast<std::int32_t>(range.getEnd());
    return start >= 0 && end > start ? std::optional<std::int64_t>(end - 1) : std::nullopt;
  }
  if (isa<tile::ProgramIdOp, tile::NumProgramsOp>(op))
    return INT32_MAX;
  if (isa<tile::SplatOp, tile::ExpandDimsOp, tile::BroadcastOp, tile::TransposeOp, tile::ReshapeOp, arith::ExtSIOp,
          tile::MultipleOfOp, tile::MaxContiguousOp, tile_gpu::ConvertLayoutOp>(op))
    return of(0);
  std::int64_t out = 0;
  if (isa<arith::AddIOp, arith::MulIOp>(op)) {
    const std::optional<std::int64_t> a = of(0), b = of(1);
    if (!a || !b)
      return std::nullopt;
    const bool overflow =
        isa<arith::AddIOp>(op) ? llvm::AddOverflow(*a, *b, out) != 0 : llvm::MulOverflow(*a, *b, out) != 0;
    return within(overflow, out);
  }
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op)) {
    const std::optional<std::int64_t> a = of(0), n = constantOf(op->getOperand(1));
    if (!a || !n || *n <= 0)
      return std::nullopt;
    return isa<arith::DivSIOp, arith::DivUIOp>(op) ? *a / *n : std::min(*a, *n - 1);
  }
  if (isa<arith::AndIOp>(op)) {
    const std::optional<std::int64_t> n = constantOf(op->getOperand(1));
    return n && *n >= 0 ? n : std::nullopt;
  }
  return std::nullopt;
}

} // namespace

AxisInfo transfer(Operation *op, OperandFacts operands, unsigned index) {
  const Type type = op->getResult(index).getType();
  const Coords shape = *factShape(type);
  const AxisInfo unknown = AxisInfo::unknown(shape);
  for (const AxisInfo *x : operands)
    if (!x)
      return unknown;
  auto x = [&]() -> const AxisInfo & { return *operands[0]; };
  auto y = [&]() -> const AxisInfo & { return *operands[1]; };

  Attribute constant;
  if (matchPattern(op, m_Constant(&constant)))
    return ofConstant(constant, shape);

  return llvm::TypeSwitch<Operation *, AxisInfo>(op)
      .Case([&](tile::RangeOp range) { return AxisInfo::range(static_cast<std::int32_t>(range.getStart()), shape[0]); })
      .Case<tile::ProgramIdOp, tile::NumProgramsOp>([&](auto) { return AxisInfo::splat(1, shape); })
      .Case([&](tile::SplatOp) { return AxisInfo::splat(x().divisibility(0), shape); })
      .Case([&](tile::ExpandDimsOp expand) {
        if (cast<RankedTensorType>(expand.getSource().getType()).getRank() == 0)
          return AxisInfo::splat(x().divisibility(0), shape);
        return x().expand(static_cast<unsigned>(expand.getAxis()));
      })
      .Case([&](tile::BroadcastOp) { return x().broadcast(shape); })
      .Case([&](tile::TransposeOp transpose) {
        if (transpose.getPerm().empty())
          return x();
        llvm::SmallVector<unsigned> perm(transpose.getPerm().begin(), transpose.getPerm().end());
        return x().transpose(perm);
      })
      .Case([&](tile::ReshapeOp) { return reshape(x(), shape); })
      .Case([&](tile::JoinOp) {
        const AxisInfo half = meet(x(), y());
        if (half.dims() + 1 != shape.size())
          return unknown; // of tiles of rank 0
        AxisInfo out = half.expand(half.dims());
        return AxisInfo::known(
            Facts(shape.size(), 1), Facts(shape.size(), std::min(everyElement(x()), everyElement(y()))),
            [&] {
              Facts k;
              for (unsigned d = 0; d < out.dims(); ++d)
                k.push_back(out.constancy(d));
              return k;
            }(),
            shape);
      })
      .Case([&](tile::SplitOp) {
        Facts c, v, k;
        for (unsigned d = 0; d < shape.size() && d + 1 < x().dims(); ++d) {
          c.push_back(x().contiguity(d));
          v.push_back(x().divisibility(d));
          k.push_back(x().constancy(d));
        }
        return AxisInfo::known(c, v, k, shape);
      })
      .Case([&](tile_gpu::ConvertLayoutOp) { return x(); })
      .Case([&](tile::AddPtrOp) { return x() + y(); })
      .Case([&](arith::AddIOp) { return x() + y(); })
      .Case([&](arith::SubIOp) { return x() - y(); })
      .Case([&](arith::MulIOp mul) {
        if (constantOf(mul.getRhs()) == 1)
          return x();
        if (constantOf(mul.getLhs()) == 1)
          return y();
        return x() * y();
      })
      .Case([&](arith::ShLIOp shift) {
        const std::optional<std::int64_t> n = constantOf(shift.getRhs());
        const unsigned width = tile::elementTypeOf(type).getIntOrFloatBitWidth();
        if (n == 0)
          return x();
        if (n && *n > 0 && *n < width)
          return x() * AxisInfo::splat(std::uint64_t(1) << *n, shape);
        return anyOf(x(), y());
      })
      .Case([&](arith::AndIOp a) {
        const std::optional<std::int64_t> n = constantOf(a.getRhs());
        if (n && *n == -1)
          return x();
        if (std::optional<unsigned> log = logOf(n && *n > 0 && *n < INT64_MAX ? std::optional(*n + 1) : std::nullopt))
          return lowBits(x(), *log);
        AxisInfo out = anyOf(x(), y());
        // A mask of high bits: blocks of numbers that differ in the low bits only become equal.
        const std::optional<unsigned> low = logOf(n && *n < 0 && *n > INT64_MIN ? std::optional(-*n) : std::nullopt);
        const std::uint32_t v = std::max(everyElement(x()), everyElement(y()));
        unsigned d = 0;
        return each(out, [&](std::uint32_t &, std::uint32_t &vd, std::uint32_t &k) {
          if (low)
            k = std::max(k, std::min({x().contiguity(d), x().divisibility(d), power(*low)}));
          vd = v;
          ++d;
        });
      })
      .Case<arith::OrIOp, arith::XOrIOp, arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>(
          [&](auto) { return bothDivide(x(), y()); })
      .Case<arith::DivUIOp, arith::DivSIOp>([&](auto division) {
        const std::optional<unsigned> log = logOf(constantOf(division.getRhs()));
        const bool floors = isa<arith::DivUIOp>(op) || nonNegativeBound(division.getLhs());
        if (log && *log == 0)
          return x();
        return !log ? anyOf(x(), y()) : floors ? shiftRight(x(), *log) : divideSigned(x(), *log);
      })
      .Case<arith::RemUIOp, arith::RemSIOp>([&](auto remainder) {
        const std::optional<unsigned> log = logOf(constantOf(remainder.getRhs()));
        const bool wraps = isa<arith::RemUIOp>(op) || nonNegativeBound(remainder.getLhs());
        if (!log) // x - n * y, where y is 0 too: then it is x
          return bothDivide(x(), y());
        return wraps ? lowBits(x(), *log) : remainderSigned(x(), *log);
      })
      .Case<arith::ShRUIOp, arith::ShRSIOp>([&](auto shift) {
        const std::optional<std::int64_t> n = constantOf(shift.getRhs());
        const unsigned width = tile::elementTypeOf(type).getIntOrFloatBitWidth();
        return n && *n >= 0 && *n < width ? shiftRight(x(), static_cast<unsigned>(*n)) : anyOf(x(), y());
      })
      .Case<arith::ExtSIOp, arith::ExtUIOp>([&](auto) { return x(); })
      .Case([&](tile::MultipleOfOp fact) {
        const std::uint32_t multiple = AxisInfo::splat(fact.getDivisor(), shape).divisibility(0);
        unsigned counting = 0;
        for (unsigned d = 0; d < shape.size(); ++d)
          counting += x().contiguity(d) > 1;
        // Where elements count up along one dimension, the others have no multiples at each of their places.
        return each(x(), [&](std::uint32_t &c, std::uint32_t &v, std::uint32_t &) {
          if (counting == 0 || (counting == 1 && c > 1))
            v = std::max(v, multiple);
        });
      })
      .Case([&](tile::MaxContiguousOp fact) {
        unsigned d = 0;
        return each(x(), [&](std::uint32_t &c, std::uint32_t &v, std::uint32_t &) {
          if (d++ == fact.getAxis())
            c = std::max(c, fact.getElements());
          else if (c == 1 && fact.getElements() > 1)
            v = 1;
        });
      })
      .Case([&](arith::TruncIOp) { return truncated(x(), tile::elementTypeOf(type).getIntOrFloatBitWidth()); })
      .Case([&](arith::CmpIOp cmp) { return compare(cmp.getPredicate(), x(), y()); })
      .Case([&](arith::SelectOp s) {
        const bool scalar = !isa<RankedTensorType>(s.getCondition().getType());
        return scalar ? meet(*operands[1], *operands[2]) : select(*operands[0], *operands[1], *operands[2]);
      })
      .Default([&](Operation *other) {
        // Equal operands give equal results; nothing else is known.
        if (!other->hasTrait<OpTrait::Elementwise>() || !isMemoryEffectFree(other) || operands.empty())
          return unknown;
        AxisInfo out = x();
        for (const AxisInfo *operand : operands)
          if (operand->dims() != shape.size())
            return unknown;
          else
            out = anyOf(out, *operand);
        return anyOf(out, out);
      });
}

} // namespace kiln::analysis
