#include "compiler/layout/LayoutText.h"

#include "compiler/layout/Checks.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::layout {

namespace {

struct ElementType {
  std::string_view name;
  unsigned bits;
};
constexpr ElementType elementTypes[] = {
    {"i1", 1},   {"i4", 4},   {"i8", 8},   {"i16", 16},     {"i32", 32},   {"i64", 64}, {"u8", 8},
    {"u16", 16}, {"u32", 32}, {"u64", 64}, {"f16", 16},     {"bf16", 16},  {"f32", 32}, {"tf32", 32},
    {"f64", 64}, {"e4m3", 8}, {"e5m2", 8}, {"f8E4M3FN", 8}, {"f8E5M2", 8},
};

using Candidates = std::vector<std::string>;

template <typename Variant> Candidates keywordsOf() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return Candidates{std::string(std::variant_alternative_t<I, Variant>::keyword)...};
  }(std::make_index_sequence<std::variant_size_v<Variant>>());
}

template <typename T> Candidates fieldNames() {
  Candidates out;
  T::fields([&](std::string_view name, auto, Presence) { out.emplace_back(name); });
  return out;
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

class Parser {
public:
  explicit Parser(std::string_view text) : text(text) {}
  Result<LayoutText> parse();

private:
  //===--- characters ------------------------------------------------------===//
  void skipSpace() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r'))
      ++at;
  }
  bool next(char c) {
    skipSpace();
    return at < text.size() && text[at] == c;
  }
  bool accept(char c) {
    if (!next(c))
      return false;
    ++at;
    return true;
  }
  static bool isDigit(char c) { return c >= '0' && c <= '9'; }
  static bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  std::string_view word() {
    std::size_t begin = at;
    if (at < text.size() && isLetter(text[at]))
      while (at < text.size() && (isLetter(text[at]) || isDigit(text[at])))
        ++at;
    return text.substr(begin, at - begin);
  }

  //===--- failures --------------------------------------------------------===//
  /// What stands at a position, for messages.
  std::string found(std::size_t where) const {
    if (where >= text.size())
      return "the end of the text";
    std::size_t end = where;
    if (isLetter(text[where]) || isDigit(text[where]))
      while (end < text.size() && end - where < 40 && (isLetter(text[end]) || isDigit(text[end])))
        ++end;
    else
      ++end;
    std::string out = "'";
    for (char c : text.substr(where, end - where))
      out += c >= ' ' && c <= '~' ? std::string(1, c) : format("\\x%02x", static_cast<unsigned char>(c));
    return out + "'";
  }
  std::string position(std::size_t where) const {
    std::size_t line = 1 + std::count(text.begin(), text.begin() + where, '\n');
    std::size_t begin = where == 0 ? std::string_view::npos : text.rfind('\n', where - 1);
    std::size_t column = where - (begin == std::string_view::npos ? 0 : begin + 1) + 1;
    return line == 1 && text.find('\n') == std::string_view::npos ? format("column %zu", column)
                                                                  : format("line %zu, column %zu", line, column);
  }
  Status failure(std::size_t where, const std::string &expected, std::string remedy = {}) const {
    return Status::invalid(format("layout text, %s: found %s, expected %s", position(where).c_str(),
                                  found(where).c_str(), expected.c_str()),
                           std::move(remedy));
  }
  /// An unknown word: the known ones, and the nearest as remedy.
  Status unknown(std::size_t where, const std::string &what, std::string_view got, const Candidates &known) const {
    auto near = nearest(got, known);
    return failure(where, what + ": " + join(known),
                   near.empty() ? "" : "did you mean '" + join(near, "' or '") + "'?");
  }
  Status expect(char c, const std::string &what) {
    if (accept(c))
      return {};
    return failure(at, what);
  }

  //===--- values ----------------------------------------------------------===//
  Status value(std::int64_t &out);
  Status value(Sizes &out);
  Status value(std::vector<Sizes> &out);
  Status value(EncodingRef &out);
  Status value(std::optional<CtaSplit> &out) {
    out.emplace();
    return fields("cta", *out);
  }
  template <typename Element> Status list(Element element);
  Status basis(Sizes &out);
  template <typename T> void completeBases(T &kind);

  template <typename T> Status fields(std::string_view owner, T &out);
  /// `keyword` is read; its kind is one of Variant's.
  template <typename Kind, typename Variant> Result<Kind> body(std::string_view keyword);
  Result<Encoding> encoding();
  Status unknownKind(std::size_t where, std::string_view got, bool sharedToo) const;
  Status shape(LayoutText &out);

  std::string_view text;
  std::size_t at = 0;
  unsigned depth = 0;
  unsigned slices = 0;                  // enclosing slices: each adds a dimension
  std::optional<std::size_t> shapeRank; // rank of the tensor, if the text says it
  /// Bases in short form, which leave out trailing zeros: list and index.
  std::vector<std::pair<std::vector<Sizes> *, std::size_t>> shortForms;
};

/// The lists of bases that a kind has.
std::vector<std::vector<Sizes> *> baseLists(Linear &k) {
  return {&k.registers, &k.lanes, &k.warps, &k.blocks};
}
std::vector<std::vector<Sizes> *> baseLists(SharedLinear &k) {
  return {&k.offsets};
}

template <typename Element> Status Parser::list(Element element) {
  constexpr unsigned maxEntries = 64;
  KILN_TRY(expect('[', "'[' of a list"));
  if (accept(']'))
    return {};
  for (unsigned n = 0;; ++n) {
    skipSpace();
    if (n == maxEntries)
      return Status::invalid(
          format("layout text, %s: a list of more than %u entries", position(at).c_str(), maxEntries),
          "no layout needs that many");
    KILN_TRY(element());
    if (accept(']'))
      return {};
    KILN_TRY(expect(',', "',' or ']' in a list"));
  }
}

Status Parser::value(std::int64_t &out) {
  skipSpace();
  std::size_t begin = at;
  bool negative = accept('-');
  if (at >= text.size() || !isDigit(text[at]))
    return failure(at, "a number");
  // Counts down, so that the most negative number has no special case.
  std::int64_t n = 0;
  for (; at < text.size() && isDigit(text[at]); ++at)
    if (__builtin_mul_overflow(n, std::int64_t(10), &n) || __builtin_sub_overflow(n, std::int64_t(text[at] - '0'), &n))
      return failure(begin, "a number that fits 64 bits");
  if (!negative && __builtin_sub_overflow(std::int64_t(0), n, &n))
    return failure(begin, "a number that fits 64 bits");
  out = n;
  return {};
}

Status Parser::value(Sizes &out) {
  return list([&]() -> Status {
    std::int64_t n = 0;
    KILN_TRY(value(n));
    out.push_back(n);
    return {};
  });
}

/// A coordinate, or its short form: "j4", "i1+j8", "0".
Status Parser::basis(Sizes &out) {
  if (next('['))
    return value(out);
  if (next('0')) {
    ++at;
    return {};
  }
  do {
    skipSpace();
    std::size_t begin = at;
    if (at >= text.size() || text[at] < 'i' || text[at] >= static_cast<char>('i' + maxDims))
      return failure(begin, "a basis: a coordinate such as [0,4], its short form such as j4 or i1+j8, or 0");
    std::size_t dim = static_cast<std::size_t>(text[at++] - 'i');
    if (at >= text.size() || !isDigit(text[at]))
      return failure(begin, "a letter and a number, such as j4");
    if (out.size() <= dim)
      out.resize(dim + 1, 0);
    if (out[dim] != 0)
      return failure(begin, "each dimension once in a basis");
    KILN_TRY(value(out[dim]));
  } while (accept('+'));
  return {};
}

Status Parser::value(std::vector<Sizes> &out) {
  return list([&]() -> Status {
    if (!next('['))
      shortForms.emplace_back(&out, out.size());
    out.emplace_back();
    return basis(out.back());
  });
}

Status Parser::value(EncodingRef &out) {
  KILN_ASSIGN(Encoding parent, encoding());
  out = EncodingRef(parent);
  return {};
}

template <typename T> Status Parser::fields(std::string_view owner, T &out) {
  std::string name(owner);
  KILN_TRY(expect('<', "'<' after " + name));
  Candidates seen;
  if (!accept('>')) {
    for (;;) {
      skipSpace();
      std::size_t begin = at;
      std::string field(word());
      if (std::find(seen.begin(), seen.end(), field) != seen.end())
        return Status::invalid(format("layout text, %s: field '%s' of %s occurs twice", position(begin).c_str(),
                                      field.c_str(), name.c_str()),
                               "remove one of them");
      bool known = false;
      Status status;
      T::fields([&](std::string_view candidate, auto member, Presence) {
        if (candidate != field)
          return;
        known = true;
        if (status = expect('=', "'=' after '" + field + "'"); status.ok())
          status = value(out.*member);
      });
      if (!known)
        return unknown(begin, "a field of " + name, field, fieldNames<T>());
      KILN_TRY(std::move(status));
      seen.push_back(std::move(field));
      if (accept('>'))
        break;
      KILN_TRY(expect(',', "',' or '>' in " + name));
    }
  }
  Status missing;
  std::size_t end = at;
  T::fields([&](std::string_view field, auto, Presence presence) {
    if (missing.ok() && presence == Presence::Required && std::find(seen.begin(), seen.end(), field) == seen.end())
      missing = Status::invalid(format("layout text, %s: %s ends without its field '%s'", position(end - 1).c_str(),
                                       name.c_str(), std::string(field).c_str()),
                                format("add %s=..", std::string(field).c_str()));
  });
  return missing;
}

template <typename T> void Parser::completeBases(T &kind) {
  std::size_t rank = shapeRank.value_or(0) + slices;
  if constexpr (requires { kind.shape; })
    if (!kind.shape.empty())
      rank = kind.shape.size();
  for (auto *list : baseLists(kind))
    for (const Sizes &basis : *list)
      rank = std::max(rank, basis.size());
  for (auto [list, i] : shortForms)
    (*list)[i].resize(rank, 0);
  shortForms.clear();
}

template <typename Kind, typename Variant> Result<Kind> Parser::body(std::string_view keyword) {
  std::optional<Kind> out;
  Status status;
  auto attempt = [&]<typename T>() {
    if (T::keyword != keyword)
      return;
    T kind{};
    slices += std::is_same_v<T, Slice>;
    status = fields(keyword, kind);
    slices -= std::is_same_v<T, Slice>;
    if constexpr (requires { baseLists(kind); })
      completeBases(kind);
    out.emplace(kind);
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (attempt.template operator()<std::variant_alternative_t<I, Variant>>(), ...);
  }(std::make_index_sequence<std::variant_size_v<Variant>>());
  KILN_TRY(std::move(status));
  return std::move(*out);
}

Status Parser::unknownKind(std::size_t where, std::string_view got, bool sharedToo) const {
  Candidates known = keywordsOf<Encoding::Kinds>();
  Candidates shared = keywordsOf<SharedEncoding::Kinds>();
  if (std::find(shared.begin(), shared.end(), got) != shared.end())
    return failure(where, "a distributed encoding: " + join(known), "shared-memory encodings are no parents");
  if (sharedToo)
    known.insert(known.end(), shared.begin(), shared.end());
  Status s = unknown(where, "an encoding", got, known);
  return Status::invalid("L00: " + s.message(), s.remedy().empty() ? "use one of the encodings listed" : s.remedy());
}

Result<Encoding> Parser::encoding() {
  skipSpace();
  std::size_t begin = at;
  if (depth == maxEncodingDepth)
    return Status::invalid(
        format("L00: layout text, %s: encodings nest deeper than %u", position(at).c_str(), maxEncodingDepth),
        "fold the inner slices and transposes into one 'linear' encoding");
  std::string_view keyword = word();
  Candidates known = keywordsOf<Encoding::Kinds>();
  if (std::find(known.begin(), known.end(), keyword) == known.end())
    return unknownKind(begin, keyword, depth == 0);
  ++depth;
  auto out = body<Encoding, Encoding::Kinds>(keyword);
  --depth;
  return out;
}

Status Parser::shape(LayoutText &out) {
  out.shape.emplace();
  auto elementType = [&]() -> Status {
    std::size_t begin = at;
    std::string_view name = word();
    Candidates known;
    for (const ElementType &t : elementTypes)
      known.emplace_back(t.name);
    if (std::find(known.begin(), known.end(), name) == known.end())
      return unknown(begin, "an element type", name, known);
    out.elementType = name;
    return {};
  };
  skipSpace();
  if (at < text.size() && isLetter(text[at])) {
    if (text.substr(at, 6) != "scalar")
      return elementType();
    at += 6;
    return {};
  }
  for (;;) {
    skipSpace();
    std::size_t begin = at;
    if (at >= text.size() || !isDigit(text[at]))
      return failure(begin, out.shape->empty() ? "a shape such as 64x64, 64x64xf16 or scalar"
                                               : "an extent or an element type");
    if (out.shape->size() == maxDims)
      return failure(begin, format("at most %u extents", maxDims));
    std::int64_t extent = 0;
    KILN_TRY(value(extent));
    out.shape->push_back(extent);
    if (!next('x'))
      return {};
    ++at;
    skipSpace();
    if (at < text.size() && isLetter(text[at]))
      return elementType();
  }
}

Result<LayoutText> Parser::parse() {
  if (text.size() > maxLayoutText)
    return Status::invalid(
        format("a layout text of %zu characters exceeds the limit of %zu", text.size(), maxLayoutText),
        "write one layout");
  if (std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    // Short bases need the rank, and the shape comes last: look at it first.
    LayoutText ahead{Linear{}, std::nullopt, {}};
    at = colon + 1;
    if (shape(ahead).ok())
      shapeRank = ahead.shape->size();
    at = 0;
  }
  skipSpace();
  std::size_t begin = at;
  std::string_view keyword = word();
  Candidates shared = keywordsOf<SharedEncoding::Kinds>();
  std::optional<LayoutText> out;
  if (std::find(shared.begin(), shared.end(), keyword) != shared.end()) {
    KILN_ASSIGN(SharedEncoding encoding, (body<SharedEncoding, SharedEncoding::Kinds>(keyword)));
    out.emplace(LayoutText{encoding, std::nullopt, {}});
  } else {
    at = begin;
    KILN_ASSIGN(Encoding parsed, encoding());
    out.emplace(LayoutText{parsed, std::nullopt, {}});
  }
  if (accept(':'))
    KILN_TRY(shape(*out));
  skipSpace();
  if (at != text.size())
    return failure(at, out->shape ? "the end of the layout" : "':' and a shape, or the end of the layout");
  return std::move(*out);
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

std::string printValue(std::int64_t x) {
  return std::to_string(x);
}

std::string printValue(const Sizes &list) {
  std::string out = "[";
  for (std::size_t i = 0; i < list.size(); ++i)
    out += (i ? "," : "") + std::to_string(list[i]);
  return out + "]";
}

std::string printValue(const std::vector<Sizes> &list) {
  std::string out = "[";
  for (std::size_t i = 0; i < list.size(); ++i)
    out += (i ? "," : "") + printValue(list[i]);
  return out + "]";
}

std::string printValue(const EncodingRef &ref) {
  if (ref.get())
    return print(*ref.get());
  return ref.tooDeep() ? "<nested too deep>" : "<none>";
}

template <typename T> std::string printFields(const T &kind) {
  const T standard{};
  std::string out;
  T::fields([&](std::string_view name, auto member, Presence presence) {
    if (presence == Presence::Optional && kind.*member == standard.*member)
      return;
    out += (out.empty() ? "" : ", ") + std::string(name) + "=";
    if constexpr (requires { (kind.*member)->ctas; })
      out += printFields(*(kind.*member));
    else
      out += printValue(kind.*member);
  });
  return "<" + out + ">";
}

} // namespace

Result<LayoutText> parseLayout(std::string_view text) {
  return Parser(text).parse();
}

std::string print(const Encoding &encoding) {
  return std::visit([](const auto &k) { return std::string(k.keyword) + printFields(k); }, encoding.kind);
}

std::string print(const SharedEncoding &encoding) {
  return std::visit([](const auto &k) { return std::string(k.keyword) + printFields(k); }, encoding.kind);
}

std::string print(const LayoutText &text) {
  std::string out = std::visit([](const auto &e) { return print(e); }, text.encoding);
  if (!text.shape)
    return out;
  out += " : ";
  if (text.shape->empty())
    return out + (text.elementType.empty() ? "scalar" : text.elementType);
  return out + shapeText(*text.shape) + (text.elementType.empty() ? "" : "x" + text.elementType);
}

Result<unsigned> elementTypeBits(std::string_view name) {
  Candidates known;
  for (const ElementType &t : elementTypes) {
    if (t.name == name)
      return t.bits;
    known.emplace_back(t.name);
  }
  auto near = nearest(name, known);
  return Status::invalid(
      format("element type '%s' is unknown; known are %s", std::string(name).c_str(), join(known).c_str()),
      near.empty() ? "use one of them" : "did you mean '" + near[0] + "'?");
}

Result<TileLayout> lowerDistributed(const LayoutText &text) {
  const auto *encoding = std::get_if<Encoding>(&text.encoding);
  if (!encoding)
    return Status::invalid("the layout '" + print(text) + "' is one of shared memory, not of threads",
                           "use one of the encodings " + join(keywordsOf<Encoding::Kinds>()));
  std::optional<Sizes> shape = text.shape ? text.shape : boundShape(*encoding);
  if (!shape)
    return Status::invalid("the layout '" + print(text) + "' has no shape", "append one, for example ' : 64x64'");
  return TileLayout::create(*encoding, *shape);
}

Result<SharedTile> lowerShared(const LayoutText &text) {
  const auto *encoding = std::get_if<SharedEncoding>(&text.encoding);
  if (!encoding)
    return Status::invalid("the layout '" + print(text) + "' is one of threads, not of shared memory",
                           "use one of the encodings " + join(keywordsOf<SharedEncoding::Kinds>()));
  if (!text.shape)
    return Status::invalid("the layout '" + print(text) + "' has no shape", "append one, for example ' : 64x64xf16'");
  if (text.elementType.empty())
    return Status::invalid("the layout '" + print(text) + "' has no element type, and bytes matter in shared memory",
                           "append one to the shape, for example ' : 64x64xf16'");
  KILN_ASSIGN(unsigned bits, elementTypeBits(text.elementType));
  return SharedTile::create(*encoding, *text.shape, bits);
}

} // namespace kiln::layout
