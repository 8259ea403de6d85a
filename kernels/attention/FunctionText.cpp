#include "kernels/attention/FunctionText.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace kiln::kernels {

using namespace language;

namespace {

enum class Type : std::uint8_t { Whole, Number, Mask };
constexpr std::string_view typeName(Type t) {
  constexpr std::string_view names[] = {"a whole number", "a number", "a mask"};
  return names[static_cast<unsigned>(t)];
}

struct Node;
using Tree = std::shared_ptr<const Node>;
using Parts = std::vector<Tree>;

/// What a tree computes: one of the three.
struct Value {
  std::optional<Tile<i32>> whole = {};
  std::optional<Dual<f32>> number = {};
  std::optional<Tile<i1>> mask = {};

  Value(const Tile<i32> &x) : whole(x) {}
  Value(const Dual<f32> &x) : number(x) {}
  Value(const Tile<i1> &x) : mask(x) {}
  Dual<f32> asNumber() const { return number ? *number : Dual<f32>(cast<f32>(*whole)); }
};

/// Where expressions are computed.
struct Block {
  const Dual<f32> *x = nullptr;
  const AttentionPairs &pairs;
};

struct Node {
  Type type;
  std::function<Value(const Block &)> compute;
};

Tree node(Type type, std::function<Value(const Block &)> compute) {
  return std::make_shared<const Node>(Node{type, std::move(compute)});
}

Dual<f32> numberOf(const Tree &t, const Block &at) {
  return t->compute(at).asNumber();
}
Tile<i32> wholeOf(const Tree &t, const Block &at) {
  return *t->compute(at).whole;
}
Tile<i1> maskOf(const Tree &t, const Block &at) {
  return *t->compute(at).mask;
}

/// f(a, b), of whole numbers if both are.
template <typename F> Tree ofBoth(const Parts &p, F f) {
  const bool areWhole = p[0]->type == Type::Whole && p[1]->type == Type::Whole;
  if (areWhole)
    return node(Type::Whole, [=](const Block &at) -> Value { return f(wholeOf(p[0], at), wholeOf(p[1], at)); });
  return node(Type::Number, [=](const Block &at) -> Value { return f(numberOf(p[0], at), numberOf(p[1], at)); });
}
template <typename F> Tree compared(const Parts &p, F f) {
  if (p[0]->type == Type::Whole && p[1]->type == Type::Whole)
    return node(Type::Mask, [=](const Block &at) -> Value { return f(wholeOf(p[0], at), wholeOf(p[1], at)); });
  return node(Type::Mask, [=](const Block &at) -> Value { return f(numberOf(p[0], at), numberOf(p[1], at)); });
}
template <typename F> Tree ofWhole(const Parts &p, F f) {
  return node(Type::Whole, [=](const Block &at) -> Value { return f(wholeOf(p[0], at), wholeOf(p[1], at)); });
}
template <typename F> Tree ofNumbers(const Parts &p, F f) {
  return node(Type::Number, [=](const Block &at) -> Value { return f(numberOf(p[0], at), numberOf(p[1], at)); });
}
template <typename F> Tree ofNumber(const Parts &p, F f) {
  return node(Type::Number, [=](const Block &at) -> Value { return f(numberOf(p[0], at)); });
}
template <typename F> Tree ofMasks(const Parts &p, F f) {
  return node(Type::Mask, [=](const Block &at) -> Value { return f(maskOf(p[0], at), maskOf(p[1], at)); });
}

/// Operators and functions: what they take and make.
struct Operation {
  std::string_view name;
  std::vector<Type> takes; ///< Number: whole numbers too; Whole, Mask: these alone
  std::function<Tree(const Parts &)> make;
};

#define KILN_INFIX(symbol, kind, make)                                                                                 \
  Operation {                                                                                                          \
    #symbol, {Type::kind, Type::kind},                                                                                 \
        [](const Parts &p) { return make(p, [](const auto &a, const auto &b) { return a symbol b; }); }                \
  }
#define KILN_FUNCTION(name)                                                                                            \
  Operation {                                                                                                          \
    #name, {Type::Number}, [](const Parts &p) { return ofNumber(p, [](const auto &a) { return name(a); }); }           \
  }
#define KILN_CHOICE(name)                                                                                              \
  Operation {                                                                                                          \
    #name, {Type::Number, Type::Number},                                                                               \
        [](const Parts &p) { return ofBoth(p, [](const auto &a, const auto &b) { return name(a, b); }); }              \
  }

/// Those of each level bind tighter than those of the level before.
const std::vector<std::vector<Operation>> &infix() {
  static const std::vector<std::vector<Operation>> all = {
      {KILN_INFIX(|, Mask, ofMasks)},
      {KILN_INFIX(&, Mask, ofMasks)},
      {KILN_INFIX(<=, Number, compared), KILN_INFIX(>=, Number, compared), KILN_INFIX(==, Number, compared),
       KILN_INFIX(!=, Number, compared), KILN_INFIX(<, Number, compared), KILN_INFIX(>, Number, compared)},
      {KILN_INFIX(+, Number, ofBoth), KILN_INFIX(-, Number, ofBoth)},
      {KILN_INFIX(*, Number, ofBoth),
       {"//",
        {Type::Whole, Type::Whole},
        [](const Parts &p) { return ofWhole(p, [](const auto &a, const auto &b) { return a / b; }); }},
       KILN_INFIX(/, Number, ofNumbers),
       KILN_INFIX(%, Whole, ofWhole)}};
  return all;
}
const std::vector<Operation> &prefix() {
  static const std::vector<Operation> all = {
      {"-",
       {Type::Number},
       [](const Parts &p) {
         return p[0]->type == Type::Whole
                    ? node(Type::Whole, [=](const Block &at) -> Value { return -wholeOf(p[0], at); })
                    : ofNumber(p, [](const auto &a) { return -a; });
       }},
      {"!", {Type::Mask}, [](const Parts &p) {
         return node(Type::Mask, [=](const Block &at) -> Value { return !maskOf(p[0], at); });
       }}};
  return all;
}
const std::vector<Operation> &functions() {
  static const std::vector<Operation> all = {
      KILN_FUNCTION(exp),
      KILN_FUNCTION(exp2),
      KILN_FUNCTION(log),
      KILN_FUNCTION(log2),
      KILN_FUNCTION(sqrt),
      KILN_FUNCTION(tanh),
      KILN_FUNCTION(floor),
      KILN_CHOICE(min),
      KILN_CHOICE(max),
      Operation{"pow",
                {Type::Number, Type::Number},
                [](const Parts &p) { return ofNumbers(p, [](const auto &a, const auto &b) { return pow(a, b); }); }},
      Operation{"abs",
                {Type::Number},
                [](const Parts &p) {
                  return p[0]->type == Type::Whole
                             ? node(Type::Whole, [=](const Block &at) -> Value { return abs(wholeOf(p[0], at)); })
                             : ofNumber(p, [](const auto &a) { return abs(a); });
                }},
      Operation{"where", {Type::Mask, Type::Number, Type::Number}, [](const Parts &p) {
                  const Tree mask = p[0];
                  if (p[1]->type == Type::Whole && p[2]->type == Type::Whole)
                    return node(Type::Whole, [=](const Block &at) -> Value {
                      return select(maskOf(mask, at), wholeOf(p[1], at), wholeOf(p[2], at));
                    });
                  return node(Type::Number, [=](const Block &at) -> Value {
                    return select(maskOf(mask, at), numberOf(p[1], at), numberOf(p[2], at));
                  });
                }}};
  return all;
}
#undef KILN_INFIX
#undef KILN_FUNCTION
#undef KILN_CHOICE

/// aux[number] at indices: as a whole number, or fp32.
template <Element T> Value loaded(unsigned number, const std::vector<Tile<i32>> &at, const AttentionPairs &pairs) {
  const auto value = [&] {
    switch (at.size()) {
    case 1:
      return pairs.load<T>(number, at[0]);
    case 2:
      return pairs.load<T>(number, at[0], at[1]);
    case 3:
      return pairs.load<T>(number, at[0], at[1], at[2]);
    default:
      return pairs.load<T>(number, at[0], at[1], at[2], at[3]);
    }
  }();
  if constexpr (isFloat(elementOf<T>))
    return Dual<f32>(cast<f32>(value));
  else
    return cast<i32>(value);
}
template <Element... Ts>
std::optional<Value> loadedAs(DType element, unsigned number, const std::vector<Tile<i32>> &at,
                              const AttentionPairs &pairs) {
  std::optional<Value> out;
  (void)((elementOf<Ts> == element && (out = loaded<Ts>(number, at, pairs), true)) || ...);
  return out;
}
constexpr DType auxElements[] = {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I8, DType::U8,
                                 DType::I16, DType::U16, DType::I32,  DType::U32, DType::I64};

class Parser {
public:
  Parser(std::string_view what, std::string_view text, bool hasX, const std::vector<AttentionFunctionsText::Aux> &aux)
      : what(what), text(text), hasX(hasX), aux(aux) {}

  Result<Tree> parse(Type wanted) {
    KILN_ASSIGN(Tree out, level(0));
    skip();
    if (at < text.size())
      return fail("an operator or the end is expected");
    const bool fits = wanted == Type::Mask ? out->type == Type::Mask : out->type != Type::Mask;
    if (!fits)
      return fail("it gives " + std::string(typeName(out->type)) + ", not " + std::string(typeName(wanted)));
    return out;
  }

private:
  Status fail(const std::string &message) const {
    return Status::invalid(std::string(what) + " '" + std::string(text) + "', at " + std::to_string(at + 1) + ": " +
                               message,
                           "kernels/attention/FunctionText.h has what expressions are made of");
  }
  void skip() {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
      ++at;
  }
  bool take(std::string_view symbol) {
    skip();
    if (!text.substr(at).starts_with(symbol))
      return false;
    at += symbol.size();
    return true;
  }

  Result<Tree> made(const Operation &operation, const Parts &parts, std::size_t where) {
    const std::size_t count = operation.takes.size();
    if (parts.size() != count) {
      at = where;
      return fail(std::string(operation.name) + " takes " + std::to_string(count) + ", and has " +
                  std::to_string(parts.size()));
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Type wanted = operation.takes[i], given = parts[i]->type;
      if (given != wanted && !(wanted == Type::Number && given == Type::Whole)) {
        at = where;
        return fail(std::string(operation.name) + " takes " + std::string(typeName(wanted)) + ", not " +
                    std::string(typeName(given)));
      }
    }
    return operation.make(parts);
  }

  Result<Tree> level(std::size_t n) {
    if (n == infix().size())
      return unary();
    KILN_ASSIGN(Tree left, level(n + 1));
    for (;;) {
      skip();
      const std::size_t where = at;
      const Operation *found = nullptr;
      for (const Operation &operation : infix()[n])
        if (!found && take(operation.name))
          found = &operation;
      if (!found)
        return left;
      KILN_ASSIGN(const Tree right, level(n + 1));
      KILN_ASSIGN(left, made(*found, {left, right}, where));
    }
  }

  Result<Tree> unary() {
    constexpr unsigned deepest = 100;
    if (++depth > deepest)
      return fail("it is nested more than " + std::to_string(deepest) + " deep");
    const auto leave = [&](Result<Tree> out) {
      --depth;
      return out;
    };
    skip();
    const std::size_t where = at;
    for (const Operation &operation : prefix())
      if (take(operation.name)) {
        KILN_ASSIGN(const Tree part, unary());
        return leave(made(operation, {part}, where));
      }
    if (take("(")) {
      KILN_ASSIGN(const Tree inner, level(0));
      if (!take(")"))
        return fail("')' is expected");
      return leave(inner);
    }
    if (at < text.size() && (std::isdigit(static_cast<unsigned char>(text[at])) || text[at] == '.'))
      return leave(number());
    return leave(name());
  }

  Result<Tree> number() {
    std::size_t end = at;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])))
      ++end;
    const bool isWhole = end == text.size() || (text[end] != '.' && text[end] != 'e');
    const char *const first = text.data() + at, *const last = text.data() + text.size();
    if (isWhole) {
      std::int32_t value = 0;
      const auto [next, error] = std::from_chars(first, last, value);
      if (error != std::errc())
        return fail("a whole number is below 2^31");
      at += static_cast<std::size_t>(next - first);
      return node(Type::Whole, [=](const Block &) -> Value { return full<i32>({1, 1}, value); });
    }
    float value = 0;
    const auto [next, error] = std::from_chars(first, last, value);
    if (error != std::errc())
      return fail("this is no number of fp32");
    at += static_cast<std::size_t>(next - first);
    return node(Type::Number, [=](const Block &) -> Value { return Dual<f32>(full<f32>({1, 1}, value)); });
  }

  Result<Parts> list(std::string_view close) {
    Parts out;
    do {
      KILN_ASSIGN(Tree part, level(0));
      out.push_back(std::move(part));
    } while (take(","));
    if (!take(close))
      return fail("',' or '" + std::string(close) + "' is expected");
    return out;
  }

  Result<Tree> name() {
    const std::size_t where = at;
    const auto isPart = [&](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    while (at < text.size() && isPart(text[at]))
      ++at;
    const std::string_view name = text.substr(where, at - where);
    if (name.empty())
      return fail("a number, a name or '(' is expected");
    if (take("(")) {
      for (const Operation &operation : functions())
        if (operation.name == name) {
          KILN_ASSIGN(const Parts parts, list(")"));
          return made(operation, parts, where);
        }
      at = where;
      return fail("there is no function '" + std::string(name) + "'");
    }
    if (take("["))
      return element(name, where);
    const auto index = [](auto member) {
      return node(Type::Whole, [=](const Block &at) -> Value { return member(at.pairs); });
    };
    const auto scalar = [](const Scalar<i32> &x) { return full<i32>({1, 1}, x); };
    if (name == "x" && hasX)
      return node(Type::Number, [](const Block &at) -> Value { return *at.x; });
    if (name == "b")
      return index([=](const AttentionPairs &p) { return scalar(p.batch); });
    if (name == "h")
      return index([=](const AttentionPairs &p) { return scalar(p.head); });
    if (name == "i")
      return index([](const AttentionPairs &p) { return p.query; });
    if (name == "j")
      return index([](const AttentionPairs &p) { return p.key; });
    at = where;
    return fail("there is no '" + std::string(name) + "': " + (hasX ? "x, " : "") +
                "b, h, i, j, and elements of aux tensors are known");
  }

  Result<Tree> element(std::string_view name, std::size_t where) {
    const auto found = std::ranges::find(aux, name, &AttentionFunctionsText::Aux::name);
    if (found == aux.end()) {
      at = where;
      return fail("there is no aux tensor '" + std::string(name) + "'");
    }
    KILN_ASSIGN(const Parts indices, list("]"));
    if (std::ssize(indices) != found->rank) {
      at = where;
      return fail("'" + std::string(name) + "' has " + std::to_string(found->rank) + " dimensions, and " +
                  std::to_string(indices.size()) + " indices are given");
    }
    for (const Tree &i : indices)
      if (i->type != Type::Whole) {
        at = where;
        return fail("an index of '" + std::string(name) + "' is " + std::string(typeName(i->type)) +
                    ", not a whole number");
      }
    const auto place = static_cast<unsigned>(found - aux.begin());
    return node(
        isFloat(found->element) ? Type::Number : Type::Whole, [=, element = found->element](const Block &at) -> Value {
          std::vector<Tile<i32>> where;
          for (const Tree &i : indices)
            where.push_back(wholeOf(i, at));
          return *loadedAs<f32, f16, bf16, f64, i8, u8, i16, u16, i32, u32, i64>(element, place, where, at.pairs);
        });
  }

  std::string_view what, text;
  bool hasX;
  const std::vector<AttentionFunctionsText::Aux> &aux;
  std::size_t at = 0;
  unsigned depth = 0;
};

} // namespace

Result<AttentionFunctions> parseAttentionFunctions(const AttentionFunctionsText &text) {
  if (text.aux.size() > maxAux)
    return Status::invalid("attention functions: " + std::to_string(text.aux.size()) + " aux tensors",
                           "give at most " + std::to_string(maxAux));
  for (const AttentionFunctionsText::Aux &a : text.aux)
    if (std::ranges::find(auxElements, a.element) == std::end(auxElements) || a.rank < 1 ||
        a.rank > static_cast<int>(maxAuxRank))
      return Status::invalid("attention functions: aux tensor '" + a.name + "' is " +
                                 std::string(dtypeName(a.element)) + " of " + std::to_string(a.rank) + " dimensions",
                             "floats of 16 to 64 bits and integers up to 64, of 1 to 4 dimensions, are read");
  AttentionFunctionsDefinition out;
  if (!text.score.empty()) {
    KILN_ASSIGN(const Tree tree, Parser("score", text.score, true, text.aux).parse(Type::Number));
    out.score = [tree](const auto &x, const AttentionPairs &pairs) {
      const Dual<f32> dual(x);
      const Dual<f32> result = numberOf(tree, {&dual, pairs});
      if constexpr (std::same_as<std::remove_cvref_t<decltype(x)>, Tile<f32>>)
        return result.value;
      else
        return result;
    };
  }
  if (!text.mask.empty()) {
    KILN_ASSIGN(const Tree tree, Parser("mask", text.mask, false, text.aux).parse(Type::Mask));
    out.mask = [tree](const AttentionPairs &pairs) { return maskOf(tree, {nullptr, pairs}); };
  }
  return AttentionFunctions(std::move(out));
}

} // namespace kiln::kernels
