#include "runtime/tools/KernelArguments.h"

#include "support/ParseNumber.h"
#include "support/Text.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace kiln::tools {

namespace {

constexpr const char *forms =
    "write FILE.npy, DTYPE:FILE.npy, out:DTYPE:SHAPE, zeros:DTYPE:SHAPE, arg:N, ptr:0, tmap:N:TYPE:BOX, "
    "bytes:FILE.npy, struct:FILE.npy@OFFSET=VALUE, or a scalar as i32:V, i64:V, u32:V, u64:V, f16:V, bf16:V, f32:V, "
    "f64:V, b8:V to b64:V";

std::optional<unsigned> rawBits(std::string_view word) {
  return word == "b8" ? 8 : word == "b16" ? 16 : word == "b32" ? 32 : word == "b64" ? std::optional(64u) : std::nullopt;
}

/// An integer in decimal or 0x form, with its sign apart.  Null: not a number, or more than 64 bits.
std::optional<std::uint64_t> parseMagnitude(std::string_view text, bool &negative) {
  negative = text.starts_with('-');
  if (negative)
    text.remove_prefix(1);
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex)
    text.remove_prefix(2);
  return parseNumber<std::uint64_t>(text, hex ? 16 : 10);
}

Status parseInteger(KernelArgument &a, std::string_view text, unsigned bits, bool isSigned) {
  bool negative = false;
  const auto magnitude = parseMagnitude(text, negative);
  if (!magnitude && (text.empty() || text.find_first_not_of("0123456789-") != std::string_view::npos))
    return Status::invalid(a.name() + ": '" + std::string(text) + "' is not an integer",
                           "write it in decimal or as 0x...");
  const std::uint64_t all = bits == 64 ? ~0ull : (1ull << bits) - 1;
  const std::uint64_t top = isSigned ? all >> 1 : all, bottom = isSigned ? (all >> 1) + 1 : 0;
  if (!magnitude || *magnitude > (negative ? bottom : top))
    return Status::invalid(a.name() + ": " + std::string(text) + " is out of range",
                           (isSigned ? "from -" + std::to_string(bottom) : "from 0") + " to " + std::to_string(top));
  const std::uint64_t value = negative ? 0 - *magnitude : *magnitude;
  a.bytes.resize(bits / 8);
  std::memcpy(a.bytes.data(), &value, bits / 8); // little endian hosts only, as all of Kiln's
  return {};
}

Status parseFloat(KernelArgument &a, std::string_view text, DType type) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size())
    return Status::invalid(a.name() + ": '" + std::string(text) + "' is not a number",
                           "write it as 1.5, -2e-3, inf or nan");
  if (error == std::errc::result_out_of_range) // leaves the value alone; strtod tells too large from too small
    value = std::strtod(std::string(text).c_str(), nullptr);
  bool tooLarge = error != std::errc() && std::isinf(value);
  a.bytes.resize(dtypeBytes(type));
  if (const FloatFormat *small = dtypeFloatFormat(type)) {
    const std::uint32_t code = encodeFloat(value, *small);
    const double largest = decodeFloat(small->largestFinite, *small);
    tooLarge |= std::isfinite(value) && std::fabs(decodeFloat(code, *small)) >= largest && std::fabs(value) > largest;
    std::memcpy(a.bytes.data(), &code, a.bytes.size());
  } else if (type == DType::F32) {
    const float single = static_cast<float>(value);
    tooLarge |= std::isinf(single) && std::isfinite(value);
    std::memcpy(a.bytes.data(), &single, sizeof single);
  } else
    std::memcpy(a.bytes.data(), &value, sizeof value);
  if (tooLarge)
    return Status::invalid(a.name() + ": " + std::string(text) + " is out of the range of " +
                               std::string(dtypeName(type)),
                           "write inf if you mean infinity");
  return {};
}

Status parseOutput(KernelArgument &a, std::string_view word, std::string_view rest) {
  KILN_TRY(takeOffset(a, rest));
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos)
    return Status::invalid(a.name() + " has no shape", "write " + std::string(word) + ":DTYPE:SHAPE, as in " +
                                                           std::string(word) + ":float32:16x100");
  Result<DType> type = parseDType(rest.substr(0, colon));
  if (!type)
    return type.takeStatus().withContext(a.name());
  Result<Shape> shape = parseShape(rest.substr(colon + 1));
  if (!shape)
    return shape.takeStatus().withContext(a.name());
  Result<std::uint64_t> bytes = shapeBytes(*shape, dtypeBytes(*type));
  if (!bytes)
    return bytes.takeStatus().withContext(a.name());
  a.kind = KernelArgument::Kind::Output;
  a.zeros = word == "zeros";
  a.array.type = *type;
  a.array.shape = *shape;
  a.bufferBytes = *bytes;
  return {};
}

Status readFile(KernelArgument &a, const std::string &path, std::optional<DType> type, KernelArgument::Kind kind) {
  Result<Array> array = readNpy(path);
  if (array && type)
    array = convertArray(std::move(*array), *type, path);
  if (!array)
    return array.takeStatus().withContext(a.label.empty() ? "argument " + std::to_string(a.index)
                                                          : "buffer '" + a.label + "'");
  a.kind = kind;
  a.array = std::move(*array);
  a.bufferBytes = a.array.data.size();
  return {};
}

Status parseInto(KernelArgument &a) {
  std::string_view text = a.text;
  const std::size_t colon = text.find(':');
  // A file's name may hold anything: only a number after the last + is an offset.
  if (const std::size_t plus = text.rfind(".npy+");
      plus != std::string_view::npos && !text.starts_with("struct:") &&
      text.find_first_not_of("0123456789abcdefx", plus + 5) == std::string_view::npos)
    KILN_TRY(takeOffset(a, text));
  const bool isFile = text.ends_with(".npy");
  const std::string_view word = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  const std::string_view rest = text.substr(colon == std::string_view::npos ? 0 : colon + 1);
  if (word == "out" || word == "zeros")
    return parseOutput(a, word, rest);
  if (word == "bytes" && a.offset)
    return Status::invalid(a.name() + ": data by value has no offset", "make a file of the bytes that are meant");
  if (word == "bytes")
    return readFile(a, std::string(rest), std::nullopt, KernelArgument::Kind::Bytes);
  if (word == "arg")
    return parsePointer(a, rest);
  if (word == "tmap")
    return parseTensorMap(a, rest);
  if (word == "struct")
    return parseStruct(a, rest);
  if (word == "ptr") {
    a.isAddress = true;
    return parseInteger(a, rest, 64, false);
  }
  if (const auto bits = rawBits(word)) {
    a.type = *bits == 8 ? DType::Raw8 : *bits == 16 ? DType::Raw16 : *bits == 32 ? DType::U32 : DType::U64;
    return parseInteger(a, rest, *bits, false);
  }
  if (const Result<DType> type = parseDType(word); !word.empty() && type) {
    if (isFile)
      return readFile(a, std::string(rest), *type, KernelArgument::Kind::Input);
    a.type = *type;
    if (dtypeKind(*type) == DTypeKind::Float)
      return parseFloat(a, rest, *type);
    if (*type == DType::I1 || dtypeKind(*type) == DTypeKind::Raw)
      return Status::invalid(a.name() + ": no scalar of type " + std::string(word), "write b8:0 or b8:1");
    return parseInteger(a, rest, 8 * dtypeBytes(*type), dtypeKind(*type) == DTypeKind::Signed);
  }
  if (isFile)
    return readFile(a, std::string(text), std::nullopt, KernelArgument::Kind::Input);
  const std::string what =
      word.empty() ? "is neither a .npy file nor KIND:VALUE" : "has the unknown kind '" + std::string(word) + "'";
  return Status::invalid(a.name() + " " + what, forms);
}

} // namespace

Result<KernelArgument> parseArgument(unsigned index, const std::string &text, const std::string &label) {
  KernelArgument a;
  a.index = index;
  a.text = text;
  a.label = label;
  KILN_TRY(parseInto(a));
  return a;
}

} // namespace kiln::tools
