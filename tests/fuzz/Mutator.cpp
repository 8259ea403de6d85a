#include "Mutator.h"

#include "support/Text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace kiln::test {
namespace {

/// The standard distributions differ between libraries; this does not.
std::size_t below(std::mt19937_64 &random, std::size_t n) {
  return n ? static_cast<std::size_t>(random() % n) : 0;
}

bool isWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$';
}

constexpr const char *numbers[] = {"0",
                                   "1",
                                   "-1",
                                   "2",
                                   "3",
                                   "4",
                                   "5",
                                   "7",
                                   "8",
                                   "15",
                                   "16",
                                   "17",
                                   "31",
                                   "32",
                                   "33",
                                   "63",
                                   "64",
                                   "96",
                                   "100",
                                   "127",
                                   "128",
                                   "255",
                                   "256",
                                   "512",
                                   "1000",
                                   "1024",
                                   "4096",
                                   "65535",
                                   "65536",
                                   "1048576",
                                   "16777216",
                                   "2147483647",
                                   "2147483648",
                                   "-2147483648",
                                   "4294967295",
                                   "4294967296",
                                   "1099511627776",
                                   "9223372036854775807",
                                   "-9223372036854775808",
                                   "18446744073709551615",
                                   "18446744073709551616",
                                   "340282366920938463463374607431768211456",
                                   "0x7FC00000",
                                   "0xFFFFFFFFFFFFFFFF",
                                   "0.0",
                                   "-0.5",
                                   "1.0e30",
                                   "1.0e400",
                                   "1.0e-400",
                                   "?",
                                   "*"};

constexpr const char *types[] = {"f32",
                                 "f16",
                                 "bf16",
                                 "f64",
                                 "f80",
                                 "f128",
                                 "tf32",
                                 "f8E4M3FN",
                                 "f8E5M2",
                                 "f8E4M3",
                                 "f4E2M1FN",
                                 "i1",
                                 "i2",
                                 "i4",
                                 "i8",
                                 "i16",
                                 "i31",
                                 "i32",
                                 "i64",
                                 "i65",
                                 "i128",
                                 "i16777215",
                                 "si32",
                                 "ui8",
                                 "index",
                                 "none",
                                 "complex<f32>",
                                 "vector<4xf32>",
                                 "vector<[4]xf32>",
                                 "memref<4xf32>",
                                 "tuple<f32, i32>",
                                 "() -> ()",
                                 "!tile.ptr<f32>",
                                 "!tile.ptr<i1>",
                                 "!tile.ptr<!tile.ptr<f32>>",
                                 "!tile.ptr<tensor<4xf32>>",
                                 "!llvm.ptr",
                                 "!llvm.struct<(f32)>",
                                 "tensor<4xf32>",
                                 "tensor<f32>",
                                 "tensor<0xf32>",
                                 "tensor<1xf32>",
                                 "tensor<128xi1>",
                                 "tensor<*xf32>",
                                 "tensor<?xf32>",
                                 "tensor<4294967296xf32>",
                                 "tensor<4611686018427387904x4xf32>",
                                 "tensor<17xf32>",
                                 "tensor<1x1x1x1x1x1x1x1xf32>",
                                 "tensor<128xindex>",
                                 "tensor<128xf32, 7>",
                                 "tensor<128xf32, \"layout\">",
                                 "tensor<tensor<4xf32>>"};

constexpr const char *operations[] = {"nothing",
                                      "no.such_op",
                                      "tile.nothing",
                                      "tile_gpu.nothing",
                                      "arith.constant",
                                      "arith.addi",
                                      "arith.addf",
                                      "arith.divsi",
                                      "arith.remui",
                                      "arith.shli",
                                      "arith.select",
                                      "arith.cmpf",
                                      "arith.bitcast",
                                      "arith.trunci",
                                      "arith.extf",
                                      "arith.index_cast",
                                      "arith.addui_extended",
                                      "arith.mulsi_extended",
                                      "math.exp",
                                      "math.tan",
                                      "math.sincos",
                                      "math.fpowi",
                                      "math.ctpop",
                                      "math.ipowi",
                                      "scf.parallel",
                                      "scf.forall",
                                      "scf.execute_region",
                                      "scf.index_switch",
                                      "scf.while",
                                      "scf.yield",
                                      "scf.condition",
                                      "func.call",
                                      "func.constant",
                                      "func.return",
                                      "cf.br",
                                      "cf.cond_br",
                                      "cf.switch",
                                      "cf.assert",
                                      "ub.poison",
                                      "ub.unreachable",
                                      "builtin.module",
                                      "builtin.unrealized_conversion_cast",
                                      "llvm.add",
                                      "llvm.mlir.constant",
                                      "llvm.inline_asm",
                                      "llvm.unreachable",
                                      "llvm.alloca",
                                      "nvvm.barrier0",
                                      "nvvm.read.ptx.sreg.tid.x",
                                      "nvvm.shfl.sync"};

/// Operations that may stand in each other's place.
constexpr std::initializer_list<std::initializer_list<const char *>> classes = {
    {"arith.addi", "arith.subi", "arith.muli", "arith.divsi", "arith.divui", "arith.remsi", "arith.remui",
     "arith.ceildivsi", "arith.floordivsi", "arith.andi", "arith.ori", "arith.xori", "arith.shli", "arith.shrsi",
     "arith.shrui", "arith.maxsi", "arith.minui"},
    {"arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.remf", "arith.maximumf", "arith.minimumf",
     "arith.maxnumf", "arith.minnumf", "math.powf", "math.copysign", "math.atan2"},
    {"math.exp", "math.exp2", "math.log", "math.tanh", "math.erf", "math.sin", "math.rsqrt", "math.sqrt", "math.absf",
     "arith.negf", "math.floor", "math.tan", "math.cbrt"},
    {"arith.extf", "arith.truncf", "arith.bitcast", "arith.sitofp", "arith.fptosi", "arith.uitofp", "arith.extsi",
     "arith.extui", "arith.trunci", "arith.index_cast"},
    {"tile.reduce", "tile.scan"},
    {"tile_gpu.barrier", "tile_gpu.warp_barrier"},
    {"x", "y", "z"},
    {"slt", "sle", "sgt", "ult", "eq", "ne"},
    {"olt", "ole", "ugt", "une", "ord", "uno", "true", "false"},
    {"tile.program_id", "tile.num_programs"},
};

constexpr const char *elements[] = {"f32", "f16", "bf16", "f64", "i32", "i64", "i16", "i8", "i1", "f8E4M3FN"};

bool isOneOf(std::string_view word, const auto &list) {
  return std::ranges::find(list, word) != std::end(list);
}

} // namespace

std::vector<std::string> tokensOf(std::string_view text) {
  std::vector<std::string> out;
  std::size_t i = 0;
  auto take = [&](std::size_t end) {
    out.emplace_back(text.substr(i, end - i));
    i = end;
  };
  auto run = [&](std::size_t from, auto good) {
    while (from < text.size() && good(text[from]))
      ++from;
    return from;
  };
  auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (i < text.size()) {
    const char c = text[i], next = i + 1 < text.size() ? text[i + 1] : ' ';
    if (std::isspace(static_cast<unsigned char>(c)))
      take(run(i, [](char s) { return std::isspace(static_cast<unsigned char>(s)) != 0; }));
    else if (digit(c) || (c == '-' && digit(next)))
      take(run(i + 1, [&](char d) { return digit(d) || d == '.'; }));
    else if (c == 'x' && digit(next)) // between the extents of 64x32xf32
      take(i + 1);
    else if (c == 'x' && i > 0 && digit(text[i - 1]))
      take(i + 1);
    else if (c == '"')
      take(std::min(text.find('"', i + 1), text.size() - 1) + 1);
    else if (c == '-' && next == '>')
      take(i + 2);
    else if (c == '%' || c == '#' || c == '!' || c == '@' || c == '^' || isWordCharacter(c))
      take(run(i + 1, isWordCharacter));
    else
      take(i + 1);
  }
  return out;
}

Mutator::Kind Mutator::kindOf(std::string_view t) {
  const char c = t.front();
  if (std::isspace(static_cast<unsigned char>(c)))
    return Kind::Space;
  if (std::isdigit(static_cast<unsigned char>(c)) || (c == '-' && t.size() > 1 && t[1] != '>'))
    return Kind::Number;
  if (c == '"')
    return Kind::String;
  if (c == '%')
    return Kind::Value;
  if (c == '#')
    return Kind::Alias;
  if (c == '!' || isOneOf(t, types) || t == "tensor")
    return Kind::Type;
  if (!isWordCharacter(c) || t == "x")
    return Kind::Other;
  for (const char *dialect : {"tile.", "tile_gpu.", "arith.", "math.", "scf.", "func.", "ub.", "llvm.", "nvvm."})
    if (t.starts_with(dialect))
      return Kind::Operation;
  return Kind::Word;
}

Mutator::Mutator(const std::vector<std::string> &corpus) {
  std::map<Kind, std::set<std::string>> words;
  std::set<std::string> allLines;
  for (const std::string &text : corpus) {
    for (const std::string &token : tokensOf(text))
      words[kindOf(token)].insert(token);
    for (const std::string_view line : split(text, '\n'))
      allLines.emplace(line);
  }
  for (const char *number : numbers)
    words[Kind::Number].insert(number);
  for (const char *type : types)
    words[Kind::Type].insert(type);
  for (const char *operation : operations)
    words[Kind::Operation].insert(operation);
  for (const char *word : {"loc(unknown)", "\"\"", "\"\\00\"", "dense", "array", "affine_map<(d0) -> (d0)>", "unit"})
    words[Kind::Word].insert(word);
  for (auto &[kind, set] : words)
    known[kind].assign(set.begin(), set.end());
  lines.assign(allLines.begin(), allLines.end());
}

void Mutator::changeToken(std::vector<std::string> &tokens, Random &random) const {
  std::vector<std::size_t> places;
  // One kind first: numbers, types and operands are a small part of a text.
  const Kind wanted = std::array{Kind::Number, Kind::Number, Kind::Type,   Kind::Value, Kind::Value, Kind::Operation,
                                 Kind::Word,   Kind::Alias,  Kind::String, Kind::Other, Kind::Other}[below(random, 11)];
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (kindOf(tokens[i]) == wanted)
      places.push_back(i);
  if (places.empty())
    return;
  const std::size_t at = places[below(random, places.size())], other = places[below(random, places.size())];
  const std::vector<std::string> &words = known.at(wanted);
  if (below(random, 2) && wanted != Kind::Value) {
    // Everywhere: most of such programs are still well typed, and get past the parser.
    const std::string old = tokens[at];
    std::string now = below(random, 2) ? tokens[other] : words[below(random, words.size())];
    if (wanted == Kind::Number && below(random, 2))
      now = numbers[below(random, std::size(numbers))];
    for (std::string &t : tokens)
      if (t == old)
        t = now;
    return;
  }
  switch (below(random, wanted == Kind::Other ? 4 : 8)) {
  case 0:
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at));
    return;
  case 1:
    tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(at), tokens[at] + (below(random, 2) ? " " : ", "));
    return;
  case 2:
    std::swap(tokens[at], tokens[other]);
    return;
  case 3:
    tokens[at] = tokens[other];
    return;
  default:
    break;
  }
  if (wanted == Kind::Number && below(random, 2)) {
    tokens[at] = numbers[below(random, std::size(numbers))];
    return;
  }
  if (wanted == Kind::Value) { // another of the same text; those of other texts are unknown here
    tokens[at] = below(random, 20) ? tokens[other] : "%unknown";
    return;
  }
  tokens[at] = words[below(random, words.size())];
}

/// Changes that mostly keep a program well typed, so that passes and lowering see it.
void Mutator::changeTyped(std::string &text, Random &random) {
  std::vector<std::string> tokens = tokensOf(text);
  auto pickOf = [&](const auto &good) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (good(tokens[i]))
        places.push_back(i);
    return places.empty() ? tokens.size() : places[below(random, places.size())];
  };
  auto everywhere = [&](std::string old, const std::string &now) {
    for (std::string &t : tokens)
      if (t == old)
        t = now;
  };
  switch (below(random, 4)) {
  case 0: {
    const std::initializer_list<const char *> *found = nullptr;
    const std::size_t at = pickOf([&](const std::string &t) {
      return std::ranges::any_of(classes, [&](const auto &list) { return isOneOf(t, list); });
    });
    if (at == tokens.size())
      return;
    for (const auto &list : classes)
      if (isOneOf(tokens[at], list))
        found = &list;
    tokens[at] = found->begin()[below(random, found->size())];
    break;
  }
  case 1: {
    const std::size_t at = pickOf([](const std::string &t) { return isOneOf(t, elements); });
    if (at == tokens.size())
      return;
    everywhere(tokens[at], elements[below(random, std::size(elements))]);
    break;
  }
  case 2: {
    const std::size_t at = pickOf([](const std::string &t) { return kindOf(t) == Kind::Number; });
    if (at == tokens.size())
      return;
    std::size_t number = std::size_t(1) << below(random, 12);
    if (below(random, 4) == 0)
      number *= 3;
    everywhere(tokens[at], std::to_string(number));
    break;
  }
  default: {
    // An operand becomes another value of the same type: that of lines which end alike.
    std::map<std::string, std::vector<std::string>> ofType;
    std::map<std::string, std::string> typeOf;
    for (const std::string_view line : split(text, '\n')) {
      const std::size_t name = line.find('%'), equal = line.find(" = "), colon = line.rfind(" : ");
      if (name == std::string_view::npos || equal == std::string_view::npos || colon == std::string_view::npos)
        continue;
      const std::string value(line.substr(name, equal - name)), type(line.substr(colon));
      ofType[type].push_back(value);
      typeOf[value] = type;
    }
    const std::size_t at = pickOf([&](const std::string &t) { return typeOf.contains(t); });
    if (at == tokens.size())
      return;
    const std::vector<std::string> &same = ofType[typeOf[tokens[at]]];
    tokens[at] = same[below(random, same.size())];
  }
  }
  text.clear();
  for (const std::string &t : tokens)
    text += t;
}

void Mutator::changeLines(std::string &text, Random &random, const std::vector<std::string> &others) {
  std::vector<std::string> all;
  for (const std::string_view line : split(text, '\n'))
    all.emplace_back(line);
  const std::size_t at = below(random, all.size()), other = below(random, all.size());
  const auto place = all.begin() + static_cast<std::ptrdiff_t>(at);
  switch (below(random, 6)) {
  case 0:
    all.erase(place);
    break;
  case 1:
    all.insert(place, all[at]);
    break;
  case 2:
    std::swap(all[at], all[other]);
    break;
  case 3:
    all.insert(place, all[other]);
    break;
  case 4:
    all.insert(place, others[below(random, others.size())]);
    break;
  default: {
    // The operands of a line, shuffled.
    std::vector<std::string> tokens = tokensOf(all[at]);
    std::vector<std::size_t> values;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (tokens[i].front() == '%')
        values.push_back(i);
    for (std::size_t i = values.size(); i > 1; --i)
      std::swap(tokens[values[i - 1]], tokens[values[below(random, i)]]);
    all[at].clear();
    for (const std::string &t : tokens)
      all[at] += t;
  }
  }
  text = join(all, "\n");
}

void Mutator::changeBytes(std::string &text, Random &random) {
  const std::size_t at = below(random, text.size());
  switch (below(random, 4)) {
  case 0:
    text.erase(at, 1 + below(random, 8));
    break;
  case 1:
    text[at] = static_cast<char>(random());
    break;
  case 2:
    text.insert(at, 1, static_cast<char>(random()));
    break;
  default:
    text.resize(at);
  }
}

void Mutator::nest(std::string &text, Random &random) {
  static constexpr std::pair<const char *, const char *> brackets[] = {{"(", ")"},
                                                                       {"{", "}"},
                                                                       {"[", "]"},
                                                                       {"tensor<", ">"},
                                                                       {"tuple<", ">"},
                                                                       {"!tile.ptr<", ">"},
                                                                       {"loc(fused[", "])"},
                                                                       {"complex<", ">"},
                                                                       {"dense<[", "]>"},
                                                                       {"-", ""},
                                                                       {"{a = ", "}"},
                                                                       {"module {\n", "\n}"},
                                                                       {"scf.if %p {\n", "\n}\n"},
                                                                       {"affine_map<(d0) -> (-", ")>"},
                                                                       {"scf.execute_region {\n", "scf.yield\n}\n"},
                                                                       {"slice<dim=0, parent=", ">"},
                                                                       {"#tile_gpu.slice<dim=0, parent=", ">"}};
  const auto &[open, close] = brackets[below(random, std::size(brackets))];
  static constexpr std::size_t depths[] = {2, 10, 100, 1000, 10000, 100000};
  const std::size_t depth = depths[below(random, std::size(depths))], at = below(random, text.size());
  std::string opened, closed;
  for (std::size_t i = 0; i < depth; ++i) {
    opened += open;
    closed += close;
  }
  text.insert(at, opened + (below(random, 2) ? closed : ""));
}

void Mutator::change(std::string &text, Random &random) const {
  if (text.empty())
    return;
  const std::size_t which = below(random, 100);
  if (which < 3)
    return changeBytes(text, random);
  if (which < 4)
    return nest(text, random);
  if (which < 20)
    return changeLines(text, random, lines);
  if (which < 65)
    return changeTyped(text, random);
  std::vector<std::string> tokens = tokensOf(text);
  changeToken(tokens, random);
  text.clear();
  for (const std::string &t : tokens)
    text += t;
}

std::string Mutator::mutate(const std::string &text, std::uint64_t number) const {
  Random random(number * 0x9E3779B97F4A7C15u + 1);
  std::string out = text;
  do
    change(out, random);
  while (below(random, 3) == 0);
  return out;
}

} // namespace kiln::test
