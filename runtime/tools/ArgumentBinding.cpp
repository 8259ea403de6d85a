// Arguments against a kernel's parameters, and on a device.
#include "runtime/tools/KernelArguments.h"

#include "support/Names.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::tools {

namespace {

constexpr std::byte poison{0xcd};

std::string parameterText(const KernelInfo &kernel, std::size_t i) {
  const ParameterInfo &p = kernel.parameters[i];
  return "parameter " + std::to_string(i) + (p.name.empty() ? "" : " '" + p.name + "'") + " of kernel '" +
         shortName(kernel.name) + "' is " + p.type + " (" + std::to_string(p.size) +
         (p.size == 1 ? " byte)" : " bytes)");
}

/// What to pass for a parameter.
std::string suggestion(const ParameterInfo &p) {
  if (p.type.find('[') != std::string::npos)
    return "pass bytes:FILE.npy with " + std::to_string(p.size) + " bytes of data, or struct:" +
           (p.size == TensorMap::size ? ".. or a tensor map, tmap:N:TYPE:BOX"
                                      : "zeros:" + std::to_string(p.size) + "@OFFSET=VALUE..");
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
  if (a.isPointer()) {
    if (p.size != 8 || isFloat || isArray)
      what = "is a pointer (8 bytes)";
  } else if (a.kind == KernelArgument::Kind::Bytes) {
    if (a.bufferBytes != p.size)
      what = "has " + std::to_string(a.bufferBytes) + " bytes of data";
  } else if (a.kind == KernelArgument::Kind::TensorMap) {
    if (p.size != TensorMap::size || p.offset % TensorMap::alignment)
      what = "is a tensor map (128 bytes at a multiple of 64)";
  } else if (a.kind == KernelArgument::Kind::Struct) {
    if (a.bytes.size() != p.size)
      what = "is a struct of " + std::to_string(a.bytes.size()) + " bytes";
    // A map must lie at a multiple of 64 bytes of the parameters, not of the struct alone.
    for (const KernelArgument &piece : a.pieces)
      if (what.empty() && piece.kind == KernelArgument::Kind::TensorMap &&
          (p.offset + piece.place) % TensorMap::alignment)
        what = "has a tensor map at byte " + std::to_string(p.offset + piece.place) +
               " of the parameters, not at a multiple of 64";
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

std::string signature(const KernelInfo &kernel) {
  std::vector<std::string> parts;
  parts.reserve(kernel.parameters.size());
  for (const ParameterInfo &p : kernel.parameters)
    parts.push_back(p.type + (p.name.empty() ? "" : " " + p.name));
  return shortName(kernel.name) + "(" + join(parts) + ")";
}

Status checkArguments(const std::vector<KernelArgument> &arguments, const KernelInfo &kernel) {
  const auto parameters = static_cast<std::size_t>(
      std::count_if(arguments.begin(), arguments.end(), [](const auto &a) { return a.isParameter(); }));
  if (parameters != kernel.parameters.size())
    return Status::invalid("kernel " + signature(kernel) + " takes " + std::to_string(kernel.parameters.size()) +
                               " arguments, " + std::to_string(parameters) + " were given",
                           "give one --arg for each parameter, in order");
  for (const KernelArgument &a : arguments)
    if (a.isParameter())
      KILN_TRY(checkArgument(a, kernel));
  return {};
}

/// The bytes that the kernel gets.
static Result<std::vector<std::byte>> valueOf(Device &device, const KernelArgument &a,
                                              const std::vector<std::unique_ptr<Buffer>> &buffers) {
  auto bytesOf = [](const auto &value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  switch (a.kind) {
  case KernelArgument::Kind::Scalar:
    return a.bytes;
  case KernelArgument::Kind::Bytes:
    return a.array.data;
  case KernelArgument::Kind::Input:
  case KernelArgument::Kind::Output:
    return bytesOf(DeviceAddress(buffers[a.index]->address() + a.offset));
  case KernelArgument::Kind::Pointer:
    return bytesOf(DeviceAddress(buffers[a.target]->address() + a.offset));
  case KernelArgument::Kind::TensorMap: {
    TensorMapRecipe recipe = a.map;
    recipe.address = buffers[a.target]->address() + a.offset;
    Result<TensorMap> map = device.encodeTensorMap(recipe);
    if (!map)
      return map.takeStatus().withContext(a.name());
    return bytesOf(map->bytes);
  }
  case KernelArgument::Kind::Struct: {
    std::vector<std::byte> bytes = a.bytes;
    for (const KernelArgument &piece : a.pieces) {
      KILN_ASSIGN(const std::vector<std::byte> value, valueOf(device, piece, buffers));
      std::copy(value.begin(), value.end(), bytes.begin() + static_cast<std::ptrdiff_t>(piece.place));
    }
    return bytes;
  }
  }
  return Status(StatusCode::Internal, a.name() + " has no value");
}

Result<BoundArguments> BoundArguments::bind(Device &device, const std::vector<KernelArgument> &arguments,
                                            const KernelInfo &kernel) {
  BoundArguments bound;
  bound.packed.resize(kernel.parameterBytes);
  for (const KernelArgument &a : arguments) {
    std::unique_ptr<Buffer> buffer;
    if (a.isBuffer()) {
      KILN_ASSIGN(buffer,
                  device.allocate(a.bufferBytes, a.label.empty() ? "argument " + std::to_string(a.index) : a.label));
      if (a.kind == KernelArgument::Kind::Input)
        KILN_TRY(buffer->copyFromHost(0, a.array.data));
      else if (a.zeros)
        KILN_TRY(buffer->fill(std::byte{0}));
      else
        KILN_TRY(buffer->poison(poison));
    }
    bound.buffers.push_back(std::move(buffer));
  }
  for (const KernelArgument &a : arguments) {
    if (!a.isParameter())
      continue;
    KILN_ASSIGN(const std::vector<std::byte> value, valueOf(device, a, bound.buffers));
    const ParameterInfo &p = kernel.parameters[a.index];
    std::copy_n(value.begin(), p.size, bound.packed.begin() + p.offset);
  }
  return bound;
}

Result<Array> BoundArguments::read(const KernelArgument &a) const {
  Array out{a.array.type, a.array.shape, std::vector<std::byte>(a.bufferBytes)};
  KILN_TRY(buffers[a.index]->copyToHost(0, out.data));
  return out;
}

} // namespace kiln::tools
