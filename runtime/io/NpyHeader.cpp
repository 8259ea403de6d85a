// The header of a .npy file is a Python dictionary literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4),
// }.
#include "runtime/io/Npy.h"
#include "support/ParseNumber.h"
#include "support/Text.h"

#include <charconv>
#include <cstring>

namespace kiln {

namespace {

constexpr std::uint64_t headerLimit = 1 << 20; // bytes; real headers are 128
constexpr std::size_t rankLimit = 64;          // as NumPy 2

class HeaderParser {
public:
  HeaderParser(std::string_view text, const std::string &file) : text(text), file(file) {}

  Result<NpyHeader> parse() {
    NpyHeader header;
    bool seen[3] = {false, false, false};
    KILN_TRY(expect('{'));
    while (!accept('}')) {
      KILN_ASSIGN(const std::string key, string());
      KILN_TRY(expect(':'));
      const int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (which < 0)
        return bad("unknown key '" + printable(key) + "'");
      if (std::exchange(seen[which], true))
        return bad("key '" + key + "' occurs twice");
      KILN_TRY(which == 0 ? descr(header) : which == 1 ? boolean(header.fortranOrder) : tuple(header.shape));
      if (!accept(',')) {
        KILN_TRY(expect('}'));
        break;
      }
    }
    skipSpace();
    if (at != text.size())
      return bad("text after the closing brace");
    const char *names[3] = {"descr", "fortran_order", "shape"};
    for (int i = 0; i < 3; ++i)
      if (!seen[i])
        return bad(std::string("key '") + names[i] + "' is missing");
    return header;
  }

private:
  Status bad(const std::string &what) const {
    return Status::invalid("'" + file + "': bad .npy header at byte " + std::to_string(at) + " of its text: " + what,
                           "write the file with numpy.save");
  }

  static std::string printable(std::string_view s) {
    std::string out;
    for (char c : s.substr(0, 40))
      out += c >= 32 && c < 127 ? std::string(1, c) : format("\\x%02x", static_cast<unsigned char>(c));
    return out;
  }

  void skipSpace() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r'))
      ++at;
  }
  bool accept(char c) {
    skipSpace();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  Status expect(char c) {
    if (accept(c))
      return {};
    return bad(std::string("expected '") + c + "', found " +
               (at < text.size() ? "'" + printable(text.substr(at, 1)) + "'" : "the end"));
  }
  Result<std::string> string() {
    skipSpace();
    const char quote = at < text.size() ? text[at] : '\0';
    if (quote != '\'' && quote != '"')
      return bad("expected a quoted string");
    const std::size_t end = text.find(quote, at + 1);
    if (end == std::string_view::npos)
      return bad("a string does not end");
    std::string out(text.substr(at + 1, end - at - 1));
    at = end + 1;
    return out;
  }
  Status descr(NpyHeader &header) {
    skipSpace();
    if (at < text.size() && text[at] == '[')
      return Status::invalid("'" + file + "': structured arrays are not supported",
                             "save one field: numpy.save(f, a['x'])");
    KILN_ASSIGN(const std::string code, string());
    Result<DType> type = dtypeFromNpyCode(printable(code));
    if (!type)
      return type.takeStatus().withContext("'" + file + "'");
    header.type = *type;
    return {};
  }
  Status boolean(bool &value) {
    skipSpace();
    for (const bool candidate : {false, true}) {
      const std::string_view word = candidate ? "True" : "False";
      if (text.substr(at, word.size()) == word) {
        at += word.size();
        value = candidate;
        return {};
      }
    }
    return bad("expected True or False");
  }
  Status tuple(Shape &shape) {
    KILN_TRY(expect('('));
    while (!accept(')')) {
      skipSpace();
      std::uint64_t extent = 0;
      const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), extent);
      if (error == std::errc::result_out_of_range)
        return bad("an extent does not fit 64 bits");
      if (error != std::errc())
        return bad("expected an extent of the shape, a number that is not negative");
      at = static_cast<std::size_t>(end - text.data());
      if (at < text.size() && text[at] == 'L') // Python 2
        ++at;
      if (shape.size() == rankLimit)
        return bad("more than " + std::to_string(rankLimit) + " dimensions");
      shape.push_back(extent);
      if (!accept(',')) {
        KILN_TRY(expect(')'));
        break;
      }
    }
    return {};
  }

  std::string_view text;
  const std::string &file;
  std::size_t at = 0;
};

struct Preamble {
  std::uint64_t textOffset, textBytes;
};

Result<Preamble> preamble(std::span<const std::byte> start, const std::string &file) {
  static constexpr unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  if (start.size() < 10 || std::memcmp(start.data(), magic, sizeof magic) != 0)
    return Status::invalid("'" + file + "' is not a .npy file (" +
                               (start.size() < 10 ? std::to_string(start.size()) + " bytes are too few for its header"
                                                  : "it does not start with the bytes \\x93NUMPY") +
                               ")",
                           "write it with numpy.save");
  const auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(start[i]); };
  const unsigned major = static_cast<unsigned>(start[6]), minor = static_cast<unsigned>(start[7]);
  if (major < 1 || major > 3 || minor != 0)
    return Status::invalid("'" + file + "': .npy format version " + format("%u.%u", major, minor) + " is not supported",
                           "versions 1.0, 2.0 and 3.0 are; write the file with numpy.save");
  if (major == 1)
    return Preamble{10, byte(8) | byte(9) << 8};
  if (start.size() < 12)
    return Status::invalid("'" + file + "' is truncated inside its header", "write it again with numpy.save");
  return Preamble{12, byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24};
}

} // namespace

std::string shapeText(const Shape &shape) {
  std::string out;
  for (std::uint64_t extent : shape)
    out += (out.empty() ? "" : "x") + std::to_string(extent);
  return shape.empty() ? "scalar" : out;
}

Result<Shape> parseShape(std::string_view text) {
  Shape shape;
  if (text == "scalar")
    return shape;
  for (std::string_view piece : split(text, 'x')) {
    const std::optional<std::uint64_t> extent = parseNumber<std::uint64_t>(piece);
    if (!extent)
      return Status::invalid("bad shape '" + std::string(text) + "': '" + std::string(piece) + "' is not an extent",
                             "write extents with x between them: 16x100");
    shape.push_back(*extent);
  }
  if (shape.size() > rankLimit)
    return Status::invalid("the shape has " + std::to_string(shape.size()) + " dimensions; the limit is " +
                           std::to_string(rankLimit));
  return shape;
}

Result<std::uint64_t> shapeBytes(const Shape &shape, unsigned elementBytes) {
  std::uint64_t bytes = elementBytes;
  bool empty = false;
  for (std::uint64_t extent : shape) {
    empty |= extent == 0;
    if (__builtin_mul_overflow(bytes, extent ? extent : 1, &bytes) || bytes >> 63)
      return Status::invalid("shape " + shapeText(shape) + " of " + std::to_string(elementBytes) +
                                 "-byte elements needs more than 2^63 bytes",
                             "correct the shape");
  }
  return empty ? 0 : bytes;
}

Result<std::uint64_t> npyHeaderBytes(std::span<const std::byte> start, const std::string &file) {
  KILN_ASSIGN(const Preamble p, preamble(start, file));
  if (p.textBytes > headerLimit)
    return Status::invalid("'" + file + "': its header claims " + std::to_string(p.textBytes) +
                               " bytes; the limit is " + std::to_string(headerLimit),
                           "write it with numpy.save");
  return p.textOffset + p.textBytes;
}

Result<NpyHeader> parseNpyHeader(std::span<const std::byte> start, const std::string &file) {
  KILN_ASSIGN(const std::uint64_t end, npyHeaderBytes(start, file));
  KILN_ASSIGN(const Preamble p, preamble(start, file));
  if (start.size() < end)
    return Status::invalid("'" + file + "' is truncated: its header takes " + std::to_string(end) + " bytes, it has " +
                               std::to_string(start.size()),
                           "write it again with numpy.save");
  const std::string_view text(reinterpret_cast<const char *>(start.data()) + p.textOffset, p.textBytes);
  KILN_ASSIGN(NpyHeader header, HeaderParser(text, file).parse());
  header.dataOffset = end;
  Result<std::uint64_t> bytes = shapeBytes(header.shape, dtypeBytes(header.type));
  if (!bytes)
    return bytes.takeStatus().withContext("'" + file + "'");
  header.dataBytes = *bytes;
  return header;
}

} // namespace kiln
