//===- KernelOptions.h - The options of a kernel, as a table -----------------===//
//
// KernelOptions.def as data, for the front end, the dialect, the compiler's metadata and the runtime.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TARGET_KERNELOPTIONS_H
#define KILN_TARGET_KERNELOPTIONS_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

struct KernelOptionInfo {
  enum class Written : std::uint8_t { Changed, Always };
  enum class Reader : std::uint8_t { Pass, Assembler, Launcher };
  std::string_view field, attribute; ///< "warps", "num_warps"
  int standard, least, most;
  Written written;
  Reader reader;
  std::string_view before, after, text;

  constexpr bool takes(std::int64_t value) const { return value >= least && value <= most; }
  /// What a kernel may say: its default too where that lies outside of the range.
  constexpr bool allows(std::int64_t value) const { return takes(value) || value == standard; }
  constexpr bool isWritten(int value) const { return written == Written::Always || value != standard; }
  /// "a block has 1 to 32 warps".
  std::string rule() const {
    return std::string(before) + std::to_string(least) + " to " + std::to_string(most) + std::string(after);
  }

  static std::string textOf(int value) { return std::to_string(value); }
  static std::string attributeOf(int value) { return std::to_string(value) + " : i32"; }
  /// "warps 33", for messages.
  std::string named(int value) const { return std::string(field) + " " + textOf(value); }
};

/// A row of three extents.
struct KernelExtentsInfo {
  using Extents = std::array<int, 3>;
  static constexpr Extents standard = {1, 1, 1};
  std::string_view field, attribute; ///< "cluster"
  int most;                          ///< their product
  std::string_view unit, text;

  static constexpr bool arePowersOfTwo(std::span<const int> extents) {
    for (const int n : extents)
      if (n < 1 || (n & (n - 1)))
        return false;
    return true;
  }
  /// Of extents that are positive; at most 2^31.
  static constexpr std::int64_t product(std::span<const int> extents) {
    std::int64_t out = 1;
    for (const int n : extents)
      out = out * n < std::int64_t(1) << 31 ? out * n : std::int64_t(1) << 31;
    return out;
  }
  constexpr bool allows(const Extents &value) const { return arePowersOfTwo(value) && product(value) <= most; }
  constexpr bool isWritten(const Extents &value) const { return value != standard; }
  std::string rule() const {
    return "each extent is a power of two, and their product at most " + std::to_string(most);
  }

  /// "2x1x1".
  static std::string textOf(const Extents &value) { return joined(value, "x"); }
  static std::string attributeOf(const Extents &value) { return "array<i32: " + joined(value, ", ") + ">"; }
  /// "a cluster of 2x1x1 blocks", for messages.
  std::string named(const Extents &value) const {
    return "a " + std::string(field) + " of " + textOf(value) + " " + std::string(unit);
  }

private:
  static std::string joined(const Extents &value, const std::string &separator) {
    return std::to_string(value[0]) + separator + std::to_string(value[1]) + separator + std::to_string(value[2]);
  }
};

inline constexpr KernelOptionInfo kernelOptions[] = {
#define KILN_KERNEL_OPTION(field, attribute, standard, least, most, written, reader, before, after, text)              \
  {#field, #attribute, standard, least, most, KernelOptionInfo::Written::written, KernelOptionInfo::Reader::reader,    \
   before, after,      text},
#include "compiler/target/KernelOptions.def"
};
inline constexpr KernelExtentsInfo kernelExtents[] = {
#define KILN_KERNEL_OPTION3(field, attribute, most, unit, text) {#field, #attribute, most, unit, text},
#include "compiler/target/KernelOptions.def"
};

/// A value of each.
struct KernelOptionValues {
#define KILN_KERNEL_OPTION(field, attribute, standard, ...) int field = standard;
#define KILN_KERNEL_OPTION3(field, ...) KernelExtentsInfo::Extents field = KernelExtentsInfo::standard;
#include "compiler/target/KernelOptions.def"
};

/// Calls visit(row, values.field) for each row: of a KernelOptionInfo with an int, of a KernelExtentsInfo with three.
template <typename Values, typename Visitor> constexpr void forEachKernelOption(Values &&values, Visitor &&visit) {
  std::size_t row = 0, extents = 0;
#define KILN_KERNEL_OPTION(field, ...) visit(kernelOptions[row++], values.field);
#define KILN_KERNEL_OPTION3(field, ...) visit(kernelExtents[extents++], values.field);
#include "compiler/target/KernelOptions.def"
}

namespace detail {
void thereIsNoSuchKernelOption(); ///< not defined: a constant expression cannot call it
}
/// The row of a field, which must exist: a misspelt name does not compile.
consteval KernelOptionInfo kernelOption(std::string_view field) {
  for (const KernelOptionInfo &option : kernelOptions)
    if (option.field == field)
      return option;
  detail::thereIsNoSuchKernelOption();
  return kernelOptions[0];
}

} // namespace kiln

#endif // KILN_TARGET_KERNELOPTIONS_H
