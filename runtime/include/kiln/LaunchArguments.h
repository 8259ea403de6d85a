//===- LaunchArguments.h - A kernel's arguments, packed -------------------===//
//
// Arguments lie in one buffer, each at its natural offset, as the driver wants them.  `ArgumentPack` is made from typed
// C++ values by the compiler: offsets are constants, the buffer is on the stack.  `LaunchArguments` is filled at run
// time, value by value.  Neither allocates.  Both say what type each value has, and a launch compares that with the
// kernel: a wrong type, or a wrong number of arguments, is refused with the argument's name.  Of pointers a Tensor also
// says what it points to; a Buffer and an address do not know it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAUNCHARGUMENTS_H
#define KILN_LAUNCHARGUMENTS_H

#include "kiln/Device.h"
#include "kiln/HostTypes.h"
#include "kiln/KernelSource.h"

#include <array>
#include <concepts>
#include <cstring>
#include <type_traits>

namespace kiln {

/// What a launch reads.  `bytes` ends with the last argument: no padding after it.
struct ArgumentView {
  const std::byte *data = nullptr;
  const ArgumentType *types = nullptr;
  std::uint32_t bytes = 0, count = 0;
  /// What each pointer points to, as `elementCode` says; 0: not known.  nullptr: of none.
  const std::uint8_t *elements = nullptr;
};

constexpr std::uint8_t elementCode(DType type) {
  return static_cast<std::uint8_t>(1 + static_cast<unsigned>(type));
}
constexpr DType elementOf(std::uint8_t code) {
  return static_cast<DType>(code - 1);
}

/// How a C++ type is passed: `type`, and `bits(value)` of the width of that type; if it is a pointer that knows what it
/// points to, `element(value)`, a DType.  Specialise it for types of your own.
template <typename T> struct ArgumentTraits;

template <typename T>
concept TypedPointer = requires(const T &value) {
  { ArgumentTraits<T>::element(value) } -> std::same_as<DType>;
};

#define KILN_ARGUMENT_TRAITS(cpp, kind, stored, expression)                                                            \
  template <> struct ArgumentTraits<cpp> {                                                                             \
    static constexpr ArgumentType type = ArgumentType::kind;                                                           \
    using Stored = stored;                                                                                             \
    static Stored bits(const cpp &value) { return expression; }                                                        \
  };
KILN_ARGUMENT_TRAITS(bool, I1, std::uint8_t, value ? 1 : 0)
KILN_ARGUMENT_TRAITS(float, F32, float, value)
KILN_ARGUMENT_TRAITS(double, F64, double, value)
KILN_ARGUMENT_TRAITS(float16, F16, std::uint16_t, value.bits())
KILN_ARGUMENT_TRAITS(bfloat16, BF16, std::uint16_t, value.bits())
#undef KILN_ARGUMENT_TRAITS

template <typename T>
concept PlainInteger = std::integral<T> && !std::same_as<T, bool>;

/// Integers by their width; an unsigned 64-bit one is also an address.
template <PlainInteger T> struct ArgumentTraits<T> {
  static constexpr ArgumentType type = sizeof(T) == 1          ? ArgumentType::I8
                                       : sizeof(T) == 2        ? ArgumentType::I16
                                       : sizeof(T) == 4        ? ArgumentType::I32
                                       : std::is_unsigned_v<T> ? ArgumentType::Word64
                                                               : ArgumentType::I64;
  using Stored = T;
  static T bits(T value) { return value; }
};

/// Any kind of Buffer: its address.
template <std::derived_from<Buffer> T> struct ArgumentTraits<T> {
  static constexpr ArgumentType type = ArgumentType::Pointer;
  using Stored = DeviceAddress;
  static DeviceAddress bits(const T &buffer) { return buffer.address(); }
};

template <typename... Args> class ArgumentPack {
  static constexpr std::size_t n = sizeof...(Args);
  static constexpr auto layout = [] {
    struct {
      std::array<std::uint32_t, n + 1> offsets{};
      std::uint32_t bytes = 0;
    } out;
    const std::array<std::uint32_t, n + 1> sizes{sizeof(typename ArgumentTraits<Args>::Stored)..., 0};
    for (std::size_t i = 0; i < n; ++i) {
      out.offsets[i] = (out.bytes + sizes[i] - 1) / sizes[i] * sizes[i];
      out.bytes = out.offsets[i] + sizes[i];
    }
    return out;
  }();
  static constexpr std::array<ArgumentType, n + 1> types{ArgumentTraits<Args>::type..., ArgumentType::I1};
  static constexpr bool typed = (TypedPointer<Args> || ...);

public:
  explicit ArgumentPack(const Args &...args) {
    std::size_t i = 0;
    (put(i++, args), ...);
  }
  ArgumentView view() const {
    return {data, types.data(), layout.bytes, static_cast<std::uint32_t>(n), typed ? elements : nullptr};
  }

private:
  template <typename T> void put(std::size_t i, const T &value) {
    const auto bits = ArgumentTraits<T>::bits(value);
    std::memcpy(data + layout.offsets[i], &bits, sizeof bits);
    if constexpr (TypedPointer<T>)
      elements[i] = elementCode(ArgumentTraits<T>::element(value));
    else if constexpr (typed)
      elements[i] = 0;
  }
  alignas(16) std::byte data[layout.bytes ? layout.bytes : 1];
  std::uint8_t elements[typed ? n : 1];
};

class LaunchArguments {
public:
  static constexpr std::uint32_t maxBytes = 4096, maxCount = 256;

  template <typename T> LaunchArguments &add(const T &value) {
    const auto bits = ArgumentTraits<T>::bits(value);
    std::uint8_t element = 0;
    if constexpr (TypedPointer<T>)
      element = elementCode(ArgumentTraits<T>::element(value));
    return put(ArgumentTraits<T>::type, &bits, sizeof bits, element);
  }
  /// The low bits of `bits`, as many as the type has.
  LaunchArguments &add(ArgumentType type, std::uint64_t bits) { return put(type, &bits, argumentBytes(type)); }

  /// False once more was added than the buffer holds; a launch refuses it.
  bool fits() const { return !overflow; }
  ArgumentView view() const { return {data, types, bytes, overflow ? maxCount + 1 : count, elements}; }

private:
  LaunchArguments &put(ArgumentType type, const void *value, std::uint32_t size, std::uint8_t element = 0) {
    const std::uint32_t offset = (bytes + size - 1) / size * size;
    if (count == maxCount || offset + size > maxBytes) {
      overflow = true;
      return *this;
    }
    std::memcpy(data + offset, value, size);
    elements[count] = element;
    types[count++] = type;
    bytes = offset + size;
    return *this;
  }
  alignas(16) std::byte data[maxBytes];
  ArgumentType types[maxCount];
  std::uint8_t elements[maxCount];
  std::uint32_t bytes = 0, count = 0;
  bool overflow = false;
};

} // namespace kiln

#endif // KILN_LAUNCHARGUMENTS_H
