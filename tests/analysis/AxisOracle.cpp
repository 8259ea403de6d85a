#include "tests/analysis/AxisOracle.h"

#include "compiler/analysis/AxisAnalysis.h"
#include "compiler/tile/Tile.h"
#include "support/Text.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <random>

using namespace mlir;

namespace kiln::test {
namespace {

using Shape = std::vector<std::int64_t>;

std::int64_t elementsOf(const Shape &shape) {
  std::int64_t out = 1;
  for (std::int64_t extent : shape)
    out *= extent;
  return out;
}

std::string typeText(const Shape &shape, const std::string &element) {
  if (shape.empty())
    return element;
  std::string out = "tensor<";
  for (std::int64_t extent : shape)
    out += std::to_string(extent) + "x";
  return out + element + ">";
}

//===----------------------------------------------------------------------===//
// Random programs
//===----------------------------------------------------------------------===//

struct Named {
  std::string name;
  Shape shape;
  std::string element;
};

class Generator {
public:
  explicit Generator(std::uint64_t seed) : random(seed) {}

  std::string program() {
    text = "func.func @f(%a: i32 {tile.divisibility = 16 : i32}, %b: i32, %c: i64 {tile.divisibility = 24 : i32}, "
           "%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %d: i32) {\n"
           // d is assumed to be a multiple of 32, and not negative.
           "%z = arith.constant 0 : i32\n%e = arith.constant 32 : i32\n%r = arith.remsi %d, %e : i32\n"
           "%t = arith.cmpi eq, %r, %z : i32\n%g = arith.cmpi sge, %d, %z : i32\n%u = arith.andi %g, %t : i1\n"
           "tile.assume %u\n";
    values = {{"%a", {}, "i32"}, {"%b", {}, "i32"}, {"%c", {}, "i64"}, {"%d", {}, "i32"}};
    emit("tile.program_id x", {}, "i32");
    steps(30);
    // A loop with a carried tile and an induction variable of known step.
    const Named start = tile("i32");
    emit("arith.constant " + std::to_string(4 * below(4)) + " : i32", {}, "i32");
    const std::string lower = values.back().name;
    emit("arith.constant " + std::to_string(4 << below(4)) + " : i32", {}, "i32");
    const std::string step = values.back().name;
    emit("arith.constant 100 : i32", {}, "i32");
    const std::string upper = values.back().name, result = fresh(), variable = fresh(), carried = fresh();
    const std::size_t outside = values.size();
    text += result + " = scf.for " + variable + " = " + lower + " to " + upper + " step " + step + " iter_args(" +
            carried + " = " + start.name + ") -> (" + typeText(start.shape, "i32") + ") : i32 {\n";
    values.push_back({variable, {}, "i32"});
    values.push_back({carried, start.shape, "i32"});
    steps(6);
    const Named other = like({carried, start.shape, "i32"});
    text += "%next = arith.addi " + carried + ", " + other.name + " : " + typeText(start.shape, "i32") +
            "\nscf.yield %next : " + typeText(start.shape, "i32") + "\n}\n";
    values.resize(outside);
    values.push_back({result, start.shape, "i32"});
    steps(6);
    return text + "return\n}\n";
  }

private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random() % n); }
  std::string fresh() { return "%v" + std::to_string(count++); }

  void emit(const std::string &op, const Shape &shape, const std::string &element) {
    values.push_back({fresh(), shape, element});
    text += values.back().name + " = " + op + "\n";
  }

  /// Some tile of that element type, not too large.
  Named tile(const std::string &element) {
    for (unsigned tries = 0; tries < 20; ++tries) {
      const Named &v = values[below(static_cast<unsigned>(values.size()))];
      if (!v.shape.empty() && v.element == element)
        return v;
    }
    const std::int64_t extent = std::int64_t(8) << below(3);
    const int from = below(2) ? 0 : static_cast<int>(below(40));
    emit("tile.range " + std::to_string(from) + " to " + std::to_string(from + extent) + " : " +
             typeText({extent}, element),
         {extent}, element);
    return values.back();
  }

  /// A second operand: a value of the same type, or a constant, or a scalar repeated.
  Named like(const Named &v) {
    if (below(2))
      for (unsigned tries = 0; tries < 10; ++tries) {
        const Named &other = values[below(static_cast<unsigned>(values.size()))];
        if (other.shape == v.shape && other.element == v.element)
          return other;
      }
    if (below(2) || v.shape.empty()) {
      const std::int64_t number = below(3) ? std::int64_t(1) << below(12) : static_cast<int>(below(200)) - 100;
      return constant(v, number);
    }
    for (unsigned tries = 0; tries < 10; ++tries) {
      const Named scalar = values[below(static_cast<unsigned>(values.size()))];
      if (scalar.shape.empty() && scalar.element == v.element) {
        emit("tile.splat " + scalar.name + " : " + v.element + " to " + typeText(v.shape, v.element), v.shape,
             v.element);
        return values.back();
      }
    }
    return constant(v, 8);
  }

  Named constant(const Named &v, std::int64_t number) {
    const std::string value = v.shape.empty() ? std::to_string(number) : "dense<" + std::to_string(number) + ">";
    emit("arith.constant " + value + " : " + typeText(v.shape, v.element), v.shape, v.element);
    return values.back();
  }

  void binary(const std::string &op, const Named &x, const Named &y) {
    emit("arith." + op + " " + x.name + ", " + y.name + " : " + typeText(x.shape, x.element), x.shape, x.element);
  }

  void steps(unsigned n) {
    for (unsigned i = 0; i < n; ++i)
      step();
  }

  void step() {
    const std::string element = below(4) ? "i32" : "i64";
    const Named x = below(5) ? tile(element) : values[below(4)];
    const std::string type = typeText(x.shape, x.element);
    switch (below(16)) {
    case 0:
    case 1:
    case 2:
      return binary("addi", x, like(x));
    case 3:
      return binary("subi", x, like(x));
    case 4:
    case 5:
      return binary("muli", x, like(x));
    case 6: {
      static const char *const ops[] = {"andi", "ori", "xori", "minsi", "maxui", "shli", "shrui", "shrsi"};
      const unsigned which = below(8);
      return binary(ops[which], x, which >= 5 ? constant(x, below(6)) : like(x));
    }
    case 7: {
      static const char *const ops[] = {"divsi", "divui", "remsi", "remui"};
      const unsigned which = below(4); // the remainder of every number is defined, that by 0 too
      return binary(ops[which], x, which >= 2 && below(2) ? like(x) : constant(x, std::int64_t(1) << below(7)));
    }
    case 8: {
      if (x.element == "i32")
        return emit(std::string(below(2) ? "arith.extsi " : "arith.extui ") + x.name + " : " + type + " to " +
                        typeText(x.shape, "i64"),
                    x.shape, "i64");
      return emit("arith.trunci " + x.name + " : " + type + " to " + typeText(x.shape, "i32"), x.shape, "i32");
    }
    case 9: {
      static const char *const predicates[] = {"slt", "sge", "sgt", "sle", "ult", "uge", "eq", "ne"};
      const Named y = like(x);
      return emit(std::string("arith.cmpi ") + predicates[below(8)] + ", " + x.name + ", " + y.name + " : " + type,
                  x.shape, "i1");
    }
    case 10: {
      const Named y = like(x);
      for (const Named &m : values)
        if (m.element == "i1" && m.shape == x.shape && !x.shape.empty())
          return emit("arith.select " + m.name + ", " + x.name + ", " + y.name + " : " + typeText(x.shape, "i1") +
                          ", " + type,
                      x.shape, x.element);
      return;
    }
    case 11: {
      if (x.shape.empty() || x.shape.size() > 2)
        return;
      const unsigned axis = below(static_cast<unsigned>(x.shape.size()) + 1);
      Shape shape = x.shape;
      shape.insert(shape.begin() + axis, 1);
      emit("tile.expand_dims " + x.name + " {axis = " + std::to_string(axis) + " : i32} : " + type + " to " +
               typeText(shape, x.element),
           shape, x.element);
      if (elementsOf(shape) > 256)
        return;
      const Named e = values.back();
      shape[axis] = std::int64_t(4) << below(3);
      return emit("tile.broadcast " + e.name + " : " + typeText(e.shape, e.element) + " to " +
                      typeText(shape, e.element),
                  shape, e.element);
    }
    case 12: {
      if (x.shape.size() != 2)
        return;
      const Shape shape = {x.shape[1], x.shape[0]};
      return emit("tile.transpose " + x.name + " [1, 0] : " + type + " to " + typeText(shape, x.element), shape,
                  x.element);
    }
    case 13: {
      if (x.shape.empty())
        return;
      const std::int64_t all = elementsOf(x.shape), inner = std::min<std::int64_t>(all, std::int64_t(2) << below(4));
      const Shape shape = below(2) && all % inner == 0 ? Shape{all / inner, inner} : Shape{all};
      return emit("tile.reshape " + x.name + " : " + type + " to " + typeText(shape, x.element), shape, x.element);
    }
    case 14: {
      if (x.shape.empty() || x.shape.size() > 2)
        return;
      const Named y = like(x);
      Shape shape = x.shape;
      shape.push_back(2);
      emit("tile.join " + x.name + ", " + y.name + " : " + type + " to " + typeText(shape, x.element), shape,
           x.element);
      const std::string joined = values.back().name;
      const std::string left = fresh(), right = fresh();
      text +=
          left + ", " + right + " = tile.split " + joined + " : " + typeText(shape, x.element) + " to " + type + "\n";
      values.push_back({left, x.shape, x.element});
      return;
    }
    default: {
      if (x.shape.empty())
        return;
      const std::string pointers = typeText(x.shape, "!tile.ptr<f32>"), splat = fresh(), moved = fresh();
      text += splat + " = tile.splat %p : !tile.ptr<f32> to " + pointers + "\n";
      text += moved + " = tile.addptr " + splat + ", " + x.name + " : " + pointers + ", " + type + "\n";
      return;
    }
    }
  }

  std::mt19937_64 random;
  std::string text;
  std::vector<Named> values;
  unsigned count = 0;
};

//===----------------------------------------------------------------------===//
// What the values are
//===----------------------------------------------------------------------===//

using Numbers = std::vector<std::int64_t>;

std::int64_t wrap(std::int64_t x, Type type) {
  const Type element = tile::elementTypeOf(type);
  const unsigned width = element.isInteger() ? element.getIntOrFloatBitWidth() : 64;
  return llvm::SignExtend64(static_cast<std::uint64_t>(x), width);
}

std::uint64_t bitsOf(std::int64_t x, Type type) {
  const unsigned width = tile::elementTypeOf(type).getIntOrFloatBitWidth();
  return width == 64 ? static_cast<std::uint64_t>(x)
                     : static_cast<std::uint64_t>(x) & ((std::uint64_t(1) << width) - 1);
}

Shape shapeOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getShape().vec() : Shape();
}

class Evaluator {
public:
  using Check = llvm::function_ref<std::string(Value, const Numbers &)>;
  Evaluator(std::uint64_t seed, Check check) : random(seed * 7919 + 1), check(check) {}

  std::string run(func::FuncOp f) {
    static const std::int64_t edges[] = {0, 1, -1, 5, 100, INT32_MAX, INT32_MIN, 1 << 20};
    auto any = [&](std::int64_t divisor) {
      std::int64_t x = random() % 3 ? static_cast<std::int32_t>(random()) : edges[random() % 8];
      return x - x % divisor;
    };
    set(f.getArgument(0), {any(16)});
    set(f.getArgument(1), {any(1)});
    set(f.getArgument(2), {any(24)});
    set(f.getArgument(3), {any(16) / 4}); // in elements
    set(f.getArgument(4), {std::abs(any(32) / 2 / 32 * 32)});
    block(f.getBody().front());
    return error;
  }

private:
  void set(Value v, Numbers numbers) {
    for (std::int64_t &x : numbers)
      x = wrap(x, v.getType());
    if (error.empty())
      error = check(v, numbers);
    now[v] = std::move(numbers);
  }

  void block(Block &b) {
    for (Operation &op : b.without_terminator()) {
      if (!error.empty())
        return;
      one(&op);
    }
  }

  /// result[i] = of(coordinates of i), as an index into the operand.
  template <typename Of> void move(Operation *op, Of &&of) {
    const Shape shape = shapeOf(op->getResult(0).getType());
    Numbers out;
    Shape at(shape.size(), 0);
    for (std::int64_t i = 0; i < elementsOf(shape); ++i) {
      std::int64_t rest = i;
      for (std::size_t d = shape.size(); d-- > 0;) {
        at[d] = rest % shape[d];
        rest /= shape[d];
      }
      out.push_back(now[op->getOperand(0)][of(at)]);
    }
    set(op->getResult(0), out);
  }

  static std::int64_t flat(const Shape &at, const Shape &shape) {
    std::int64_t out = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
      out = out * shape[d] + at[d];
    return out;
  }

  void one(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return run(loop);
    if (isa<tile::AssumeOp>(op))
      return;
    const Type type = op->getResult(0).getType();
    const std::int64_t n = elementsOf(shapeOf(type));
    const Shape source = op->getNumOperands() ? shapeOf(op->getOperand(0).getType()) : Shape();
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      Attribute value = constant.getValue();
      if (auto splat = dyn_cast<SplatElementsAttr>(value))
        value = splat.getSplatValue<Attribute>();
      return set(op->getResult(0), Numbers(n, cast<IntegerAttr>(value).getValue().getSExtValue()));
    }
    if (isa<tile::ProgramIdOp>(op))
      return set(op->getResult(0), {static_cast<std::int64_t>(random() % (random() % 2 ? 10 : INT32_MAX))});
    if (auto range = dyn_cast<tile::RangeOp>(op)) {
      Numbers out;
      for (std::int64_t i = 0; i < n; ++i)
        out.push_back(static_cast<std::int32_t>(range.getStart()) + i);
      return set(op->getResult(0), out);
    }
    if (isa<tile::SplatOp>(op))
      return set(op->getResult(0), Numbers(n, now[op->getOperand(0)][0]));
    if (isa<tile::ReshapeOp, tile::ExpandDimsOp>(op))
      return set(op->getResult(0), now[op->getOperand(0)]);
    if (isa<tile::BroadcastOp>(op))
      return move(op, [&](Shape at) {
        for (std::size_t d = 0; d < at.size(); ++d)
          at[d] = source[d] == 1 ? 0 : at[d];
        return flat(at, source);
      });
    if (auto transpose = dyn_cast<tile::TransposeOp>(op))
      return move(op, [&](const Shape &at) {
        Shape from(at.size());
        for (std::size_t d = 0; d < at.size(); ++d)
          from[transpose.getPerm()[d]] = at[d];
        return flat(from, source);
      });
    if (isa<tile::JoinOp>(op)) {
      Numbers out;
      for (std::int64_t i = 0; i < n; ++i)
        out.push_back(now[op->getOperand(i % 2)][i / 2]);
      return set(op->getResult(0), out);
    }
    if (isa<tile::SplitOp>(op)) {
      Numbers halves[2];
      for (std::int64_t i = 0; i < 2 * n; ++i)
        halves[i % 2].push_back(now[op->getOperand(0)][i]);
      set(op->getResult(0), halves[0]);
      return set(op->getResult(1), halves[1]);
    }
    Numbers out;
    for (std::int64_t i = 0; i < n; ++i)
      out.push_back(element(op, i));
    set(op->getResult(0), out);
  }

  std::int64_t element(Operation *op, std::int64_t i) {
    auto get = [&](unsigned operand) { return now[op->getOperand(operand)][i]; };
    const std::int64_t x = get(0), y = op->getNumOperands() > 1 ? get(1) : 0;
    const Type type = op->getOperand(0).getType();
    const std::uint64_t ux = tile::elementTypeOf(type).isInteger() ? bitsOf(x, type) : 0;
    const std::uint64_t uy = tile::elementTypeOf(type).isInteger() && op->getNumOperands() > 1 ? bitsOf(y, type) : 0;
    auto add = [](std::int64_t a, std::int64_t b) {
      return static_cast<std::int64_t>(std::uint64_t(a) + std::uint64_t(b));
    };
    const llvm::StringRef name = op->getName().getStringRef();
    if (name == "arith.addi" || name == "tile.addptr")
      return add(x, y);
    if (name == "arith.subi")
      return static_cast<std::int64_t>(std::uint64_t(x) - std::uint64_t(y));
    if (name == "arith.muli")
      return static_cast<std::int64_t>(std::uint64_t(x) * std::uint64_t(y));
    if (name == "arith.andi")
      return x & y;
    if (name == "arith.ori")
      return x | y;
    if (name == "arith.xori")
      return x ^ y;
    if (name == "arith.minsi")
      return std::min(x, y);
    if (name == "arith.maxui")
      return static_cast<std::int64_t>(std::max(ux, uy));
    if (name == "arith.shli")
      return static_cast<std::int64_t>(ux << uy);
    if (name == "arith.shrui")
      return static_cast<std::int64_t>(ux >> uy);
    if (name == "arith.shrsi")
      return x >> uy;
    if (name == "arith.divsi")
      return x / y;
    if (name == "arith.divui")
      return static_cast<std::int64_t>(ux / uy);
    if (name == "arith.remsi")
      return y == 0 ? x : y == -1 ? 0 : x % y;
    if (name == "arith.remui")
      return static_cast<std::int64_t>(uy == 0 ? ux : ux % uy);
    if (name == "arith.extsi" || name == "arith.trunci")
      return x;
    if (name == "arith.extui")
      return static_cast<std::int64_t>(ux);
    if (name == "arith.select")
      return x ? y : get(2);
    if (auto compare = dyn_cast<arith::CmpIOp>(op))
      return arith::applyCmpPredicate(compare.getPredicate(), llvm::APInt(64, static_cast<std::uint64_t>(x), true),
                                      llvm::APInt(64, static_cast<std::uint64_t>(y), true));
    error = "no meaning for " + name.str();
    return 0;
  }

  void run(scf::ForOp loop) {
    const std::int64_t lower = now[loop.getLowerBound()][0], upper = now[loop.getUpperBound()][0],
                       step = now[loop.getStep()][0];
    Numbers carried = now[loop.getInitArgs()[0]];
    for (std::int64_t i = lower; i < upper && error.empty(); i += step) {
      set(loop.getInductionVar(), {i});
      set(loop.getRegionIterArg(0), carried);
      block(*loop.getBody());
      carried = now[loop.getBody()->getTerminator()->getOperand(0)];
    }
    if (error.empty())
      set(loop.getResult(0), carried);
  }

  std::mt19937_64 random;
  Check check;
  std::string error;
  llvm::DenseMap<Value, Numbers> now;
};

//===----------------------------------------------------------------------===//
// Facts against values
//===----------------------------------------------------------------------===//

bool divides(std::uint32_t v, std::int64_t x) {
  return static_cast<std::uint64_t>(x) % v == 0;
}

/// Blocks of min(c, v) elements are proved (AxisAnalysis.h).
std::string checkFacts(const layout::AxisInfo &info, Shape shape, const Numbers &x, AxisFault fault) {
  if (shape.empty())
    shape = {1};
  std::int64_t inner = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    std::int64_t c = std::min(info.contiguity(d), info.divisibility(d)), k = info.constancy(d);
    std::uint32_t v =
        c < info.contiguity(d) ? std::min(info.divisibility(d), static_cast<std::uint32_t>(c)) : info.divisibility(d);
    if (fault == AxisFault::Contiguity)
      c *= 2;
    if (fault == AxisFault::Divisibility)
      v *= 2;
    if (fault == AxisFault::Constancy)
      k *= 2;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::int64_t at = static_cast<std::int64_t>(i) / inner % shape[d];
      if (at % c == 0 && !divides(v, x[i]))
        return format("divisibility %u along %zu: element %zu is %lld", v, d, i, static_cast<long long>(x[i]));
      if (at % c != 0 && x[i] != x[i - inner] + 1)
        return format("contiguity %lld along %zu: elements %lld, %lld", static_cast<long long>(c), d,
                      static_cast<long long>(x[i - inner]), static_cast<long long>(x[i]));
      if (at % k != 0 && x[i] != x[i - inner])
        return format("constancy %lld along %zu: elements %lld, %lld", static_cast<long long>(k), d,
                      static_cast<long long>(x[i - inner]), static_cast<long long>(x[i]));
    }
    inner *= shape[d];
  }
  return {};
}

} // namespace

AxisCheck checkAxisFacts(std::uint64_t seed, AxisFault fault) {
  AxisCheck out;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<arith::ArithDialect, func::FuncDialect, scf::SCFDialect, tile::TileDialect>();
  const std::string text = Generator(seed).program();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module) {
    out.error = "the program does not parse:\n" + text;
    return out;
  }
  auto f = *module->getOps<func::FuncOp>().begin();
  const analysis::AxisAnalysis axes(f);
  for (std::uint64_t run = 0; run < 4 && out.error.empty(); ++run)
    out.error = Evaluator(seed * 4 + run, [&](Value v, const Numbers &numbers) -> std::string {
                  const std::optional<layout::AxisInfo> info = axes.facts(v);
                  if (!info)
                    return "no facts";
                  ++out.values;
                  for (unsigned d = 0; d < info->dims(); ++d)
                    if (info->contiguity(d) > 1 || info->divisibility(d) > 1 || info->constancy(d) > 1) {
                      ++out.strong;
                      break;
                    }
                  const std::string wrong = checkFacts(*info, shapeOf(v.getType()), numbers, fault);
                  if (wrong.empty())
                    return {};
                  std::string where;
                  llvm::raw_string_ostream os(where);
                  v.print(os);
                  return wrong + "\n  claimed " + info->text() + "\n  of " + where;
                }).run(f);
  return out;
}

} // namespace kiln::test
