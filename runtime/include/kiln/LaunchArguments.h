//===- LaunchArguments.h - A kernel's arguments, packed -------------------===//
//
// Arguments lie in one buffer, each at its natural offset, as the driver wants them.  `ArgumentPack` is made from typed
// C++ values by the compiler: offsets are constants, the buffer is on the stack.  `LaunchArguments` is filled at run
// time, value by value.  Neither allocates.  Both say what type each value has, and a launch compares that with the
// kernel: a wrong type, or a wrong number of arguments, is refused with the argument's name.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAUNCHARGUMENTS_H
#define KILN_LAUNCHARGUMENTS_H

#include "kiln/Device.h"
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
};

/// Bits of a 16-bit float; C++20 has no such type.
struct HalfBits {
  std::uint16_t bits = 0;
};
struct Bfloat16Bits {
  std::uint16_t bits = 0;
};

/// How a C++ type is passed: `type`, and `bits(value)` of the width of that type.  Specialise it for types of your own.
template <typename T> struct ArgumentTraits;

#define KILN_ARGUMENT_TRAITS(cpp, kind, stored, expression)                                                            \
  template <> struct ArgumentTraits<cpp> {                                                                             \
    static constexpr ArgumentType type = ArgumentType::kind;                                                           \
    using Stored = stored;                                                                                             \
    static Stored bits(const cpp &value) { return expression; }                                                        \
  };
KILN_ARGUMENT_TRAITS(bool, I1, std::uint8_t, value ? 1 : 0)
KILN_ARGUMENT_TRAITS(float, F32, float, value)
KILN_ARGUMENT_TRAITS(double, F64, double, value)
KILN_ARGUMENT_TRAITS(HalfBits, F16, std::uint16_t, value.bits)
KILN_ARGUMENT_TRAITS(Bfloat16Bits, Bf16, std::uint16_t, value.bits)
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

public:
  explicit ArgumentPack(const Args &...args) {
    std::size_t i = 0;
    (put(layout.offsets[i++], ArgumentTraits<Args>::bits(args)), ...);
  }
  ArgumentView view() const { return {data, types.data(), layout.bytes, static_cast<std::uint32_t>(n)}; }

private:
  template <typename T> void put(std::uint32_t offset, T value) { std::memcpy(data + offset, &value, sizeof value); }
  alignas(16) std::byte data[layout.bytes ? layout.bytes : 1];
};

class LaunchArguments {
public:
  static constexpr std::uint32_t maxBytes = 4096, maxCount = 256;

  template <typename T> LaunchArguments &add(const T &value) {
    const auto bits = ArgumentTraits<T>::bits(value);
    return put(ArgumentTraits<T>::type, &bits, sizeof bits);
  }
  /// The low bits of `bits`, as many as the type has.
  LaunchArguments &add(ArgumentType type, std::uint64_t bits) { return put(type, &bits, argumentBytes(type)); }

  /// False once more was added than the buffer holds; a launch refuses it.
  bool fits() const { return !overflow; }
  ArgumentView view() const { return {data, types, bytes, overflow ? maxCount + 1 : count}; }

private:
  LaunchArguments &put(ArgumentType type, const void *value, std::uint32_t size) {
    const std::uint32_t offset = (bytes + size - 1) / size * size;
    if (count == maxCount || offset + size > maxBytes) {
      overflow = true;
      return *this;
    }
    std::memcpy(data + offset, value, size);
    types[count++] = type;
    bytes = offset + size;
    return *this;
  }
  alignas(16) std::byte data[maxBytes];
  ArgumentType types[maxCount];
  std::uint32_t bytes = 0, count = 0;
  bool overflow = false;
};

} // namespace kiln

#endif // KILN_LAUNCHARGUMENTS_H
