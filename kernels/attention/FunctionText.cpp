#include "kernels/attention/FunctionText.h"

#include "kernels/attention/FunctionOnHost.h"
#include "kernels/attention/FunctionTree.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace kiln::kernels {

using namespace function;

namespace {

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

  /// Those of b, h, i, j that the text names.
  const std::string &names() const { return seen; }

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
    if (n == infixOperations().size())
      return unary();
    KILN_ASSIGN(Tree left, level(n + 1));
    for (;;) {
      skip();
      const std::size_t where = at;
      const Operation *found = nullptr;
      for (const Operation &operation : infixOperations()[n])
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
    for (const Operation &operation : prefixOperations())
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
      return node(Type::Whole, [=]<typename A>(const Block<A> &) -> typename A::Value { return A::whole(value); });
    }
    float value = 0;
    const auto [next, error] = std::from_chars(first, last, value);
    if (error != std::errc())
      return fail("this is no number of fp32");
    at += static_cast<std::size_t>(next - first);
    return node(Type::Number, [=]<typename A>(const Block<A> &) -> typename A::Value { return A::number(value); });
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
      for (const Operation &operation : functionOperations())
        if (operation.name == name) {
          KILN_ASSIGN(const Parts parts, list(")"));
          return made(operation, parts, where);
        }
      at = where;
      return fail("there is no function '" + std::string(name) + "'");
    }
    if (take("["))
      return element(name, where);
    if (name == "x" && hasX)
      return node(Type::Number, []<typename A>(const Block<A> &at) -> typename A::Value { return *at.x; });
    if (name.size() == 1 && std::string_view("bhij").find(name) != std::string_view::npos)
      seen += name;
    if (name == "b")
      return node(Type::Whole, []<typename A>(const Block<A> &at) -> typename A::Value { return A::batch(at.pairs); });
    if (name == "h")
      return node(Type::Whole, []<typename A>(const Block<A> &at) -> typename A::Value { return A::head(at.pairs); });
    if (name == "i")
      return node(Type::Whole, []<typename A>(const Block<A> &at) -> typename A::Value { return A::query(at.pairs); });
    if (name == "j")
      return node(Type::Whole, []<typename A>(const Block<A> &at) -> typename A::Value { return A::key(at.pairs); });
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
    const AuxElement of{static_cast<unsigned>(found - aux.begin()), found->element};
    return node(isFloat(of.type) ? Type::Number : Type::Whole,
                [=]<typename A>(const Block<A> &at) -> typename A::Value {
                  std::vector<typename A::Whole> where;
                  for (const Tree &i : indices)
                    where.push_back(wholeOf(i, at));
                  return A::element(of, where, at.pairs);
                });
  }

  std::string_view what, text;
  bool hasX;
  const std::vector<AttentionFunctionsText::Aux> &aux;
  std::size_t at = 0;
  unsigned depth = 0;
  std::string seen;
};

struct Parsed {
  Tree score, mask; ///< none: not given
  std::string maskNames;
};

Result<Parsed> parsed(const AttentionFunctionsText &text) {
  if (text.aux.size() > maxAux)
    return Status::invalid("attention functions: " + std::to_string(text.aux.size()) + " aux tensors",
                           "give at most " + std::to_string(maxAux));
  for (const AttentionFunctionsText::Aux &a : text.aux)
    if (std::ranges::find(elementTypes(), a.element) == elementTypes().end() || a.rank < 1 ||
        a.rank > static_cast<int>(maxAuxRank))
      return Status::invalid("attention functions: aux tensor '" + a.name + "' is " +
                                 std::string(dtypeName(a.element)) + " of " + std::to_string(a.rank) + " dimensions",
                             "floats of 16 to 64 bits and integers up to 64, of 1 to 4 dimensions, are read");
  Parsed out;
  if (!text.score.empty()) {
    KILN_ASSIGN(out.score, Parser("score", text.score, true, text.aux).parse(Type::Number));
  }
  if (!text.mask.empty()) {
    Parser parser("mask", text.mask, false, text.aux);
    KILN_ASSIGN(out.mask, parser.parse(Type::Mask));
    out.maskNames = parser.names();
  }
  return out;
}

} // namespace

Result<AttentionFunctions> parseAttentionFunctions(const AttentionFunctionsText &text) {
  using namespace language;
  KILN_ASSIGN(const Parsed trees, parsed(text));
  AttentionFunctionsDefinition out;
  if (const Tree tree = trees.score)
    out.score = [tree](const auto &x, const AttentionPairs &pairs) {
      const Dual<f32> dual(x);
      const Dual<f32> result = numberOf(tree, Block<OnDevice>{&dual, pairs});
      if constexpr (std::same_as<std::remove_cvref_t<decltype(x)>, Tile<f32>>)
        return result.value;
      else
        return result;
    };
  if (const Tree tree = trees.mask)
    out.mask = [tree](const AttentionPairs &pairs) { return maskOf(tree, Block<OnDevice>{nullptr, pairs}); };
  return AttentionFunctions(std::move(out));
}

Result<FunctionsOnHost> FunctionsOnHost::parse(const AttentionFunctionsText &text) {
  KILN_ASSIGN(const Parsed trees, parsed(text));
  FunctionsOnHost out;
  if (const Tree tree = trees.score)
    out.scoreOf = [tree](const host::Numbers &x, const PairsOnHost &pairs) {
      return numberOf(tree, Block<OnHost>{&x, pairs});
    };
  if (const Tree tree = trees.mask)
    out.maskOf = [tree](const PairsOnHost &pairs) { return function::maskOf(tree, Block<OnHost>{nullptr, pairs}); };
  out.maskNames = trees.maskNames;
  return out;
}

} // namespace kiln::kernels
