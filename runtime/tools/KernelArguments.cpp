#include "runtime/tools/KernelArguments.h"

#include "support/Text.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace kiln::tools {

namespace {

constexpr std::byte poison{0xcd};
constexpr const char *forms = "write FILE.npy, DTYPE:FILE.npy, out:DTYPE:SHAPE, ptr:0, bytes:FILE.npy, or a scalar as "
                              "i32:V, i64:V, u32:V, u64:V, f16:V, bf16:V, f32:V, f64:V, b8:V to b64:V";

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
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
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

Status parseOutput(KernelArgument &a, std::string_view rest) {
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos)
    return Status::invalid(a.name() + " has no shape", "write out:DTYPE:SHAPE, as in out:float32:16x100");
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
    return array.takeStatus().withContext("argument " + std::to_string(a.index));
  a.kind = kind;
  a.array = std::move(*array);
  a.bufferBytes = a.array.data.size();
  return {};
}

Status parseInto(KernelArgument &a) {
  const std::string_view text = a.text;
  const std::size_t colon = text.find(':');
  const bool isFile = text.ends_with(".npy");
  const std::string_view word = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  const std::string_view rest = text.substr(colon == std::string_view::npos ? 0 : colon + 1);
  if (word == "out")
    return parseOutput(a, rest);
  if (word == "bytes")
    return readFile(a, std::string(rest), std::nullopt, KernelArgument::Kind::Bytes);
  if (word == "tmap")
    return Status::invalid(a.name() + ": tensor maps are not available yet; they come with the asynchronous copies",
                           "use a kernel that takes plain pointers");
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
    return readFile(a, a.text, std::nullopt, KernelArgument::Kind::Input);
  const std::string what =
      word.empty() ? "is neither a .npy file nor KIND:VALUE" : "has the unknown kind '" + std::string(word) + "'";
  return Status::invalid(a.name() + " " + what, forms);
}

std::string parameterText(const KernelInfo &kernel, std::size_t i) {
  const ParameterInfo &p = kernel.parameters[i];
  return "parameter " + std::to_string(i) + (p.name.empty() ? "" : " '" + p.name + "'") + " of kernel '" + kernel.name +
         "' is " + p.type + " (" + std::to_string(p.size) + (p.size == 1 ? " byte)" : " bytes)");
}

/// What to pass for a parameter.
std::string suggestion(const ParameterInfo &p) {
  if (p.type.find('[') != std::string::npos)
    return "pass bytes:FILE.npy with " + std::to_string(p.size) + " bytes of data";
  if (p.type.starts_with('f') || p.type.starts_with("bf"))
    return "pass " + p.type + ":V";
  if (p.size == 8)
    return "pass FILE.npy, out:DTYPE:SHAPE or ptr:0 for a pointer, i64:V for a number";
  return "pass i" + std::to_string(8 * p.size) + ":V" +
         (p.type.starts_with('b') ? " or b" + std::to_string(8 * p.size) + ":V" : "");
}

Status checkArgument(const KernelArgument &a, const KernelInfo &kernel) {
  const ParameterInfo &p = kernel.parameters[a.index];
  const bool isFloat = p.type.starts_with('f') || p.type.starts_with("bf");
  const bool isInteger = p.type.starts_with('u') || p.type.starts_with('s');
  const bool isArray = p.type.find('[') != std::string::npos;
  std::string what;
  if (a.isBuffer() || a.isAddress) {
    if (p.size != 8 || isFloat || isArray)
      what = "is a pointer (8 bytes)";
  } else if (a.kind == KernelArgument::Kind::Bytes) {
    if (a.bufferBytes != p.size)
      what = "has " + std::to_string(a.bufferBytes) + " bytes of data";
  } else if (a.bytes.size() != p.size)
    what = "has " + std::to_string(a.bytes.size()) + (a.bytes.size() == 1 ? " byte" : " bytes");
  else if (!a.text.starts_with('b') || a.text.starts_with("bf")) { // b8 .. b64 are bits of anything
    const bool givesFloat = dtypeKind(a.type) == DTypeKind::Float;
    if (isFloat && !givesFloat)
      what = "is an integer";
    else if (isInteger && givesFloat)
      what = "is a floating-point number";
  }
  if (what.empty())
    return {};
  return Status::invalid(a.name() + " " + what + "; " + parameterText(kernel, a.index), suggestion(p));
}

} // namespace

Result<KernelArgument> parseArgument(unsigned index, const std::string &text) {
  KernelArgument a;
  a.index = index;
  a.text = text;
  KILN_TRY(parseInto(a));
  return a;
}

std::string signature(const KernelInfo &kernel) {
  std::vector<std::string> parts;
  parts.reserve(kernel.parameters.size());
  for (const ParameterInfo &p : kernel.parameters)
    parts.push_back(p.type + (p.name.empty() ? "" : " " + p.name));
  return kernel.name + "(" + join(parts) + ")";
}

Status checkArguments(const std::vector<KernelArgument> &arguments, const KernelInfo &kernel) {
  if (arguments.size() != kernel.parameters.size())
    return Status::invalid("kernel " + signature(kernel) + " takes " + std::to_string(kernel.parameters.size()) +
                               " arguments, " + std::to_string(arguments.size()) + " were given",
                           "give one --arg for each parameter, in order");
  for (const KernelArgument &a : arguments)
    KILN_TRY(checkArgument(a, kernel));
  return {};
}

Result<BoundArguments> BoundArguments::bind(Device &device, const std::vector<KernelArgument> &arguments,
                                            const KernelInfo &kernel) {
  BoundArguments bound;
  bound.packed.resize(kernel.parameterBytes);
  for (const KernelArgument &a : arguments) {
    std::unique_ptr<Buffer> buffer;
    std::span<const std::byte> value = a.kind == KernelArgument::Kind::Bytes ? a.array.data : a.bytes;
    DeviceAddress address = 0;
    if (a.isBuffer()) {
      KILN_ASSIGN(buffer, device.allocate(a.bufferBytes, "argument " + std::to_string(a.index)));
      if (a.kind == KernelArgument::Kind::Input)
        KILN_TRY(buffer->copyFromHost(0, a.array.data));
      else
        KILN_TRY(buffer->poison(poison));
      address = buffer->address();
      value = std::as_bytes(std::span(&address, 1));
    }
    const ParameterInfo &p = kernel.parameters[a.index];
    std::memcpy(bound.packed.data() + p.offset, value.data(), p.size);
    bound.buffers.push_back(std::move(buffer));
  }
  return bound;
}

Result<Array> BoundArguments::read(const KernelArgument &a) const {
  Array out{a.array.type, a.array.shape, std::vector<std::byte>(a.bufferBytes)};
  KILN_TRY(buffers[a.index]->copyToHost(0, out.data));
  return out;
}

} // namespace kiln::tools
