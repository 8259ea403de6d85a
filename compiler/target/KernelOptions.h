//===- KernelOptions.h - The options of a kernel, as a table -----------------===//
//
// KernelOptions.def as data, for the front end, the dialect, the compiler's metadata and the runtime.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TARGET_KERNELOPTIONS_H
#define KILN_TARGET_KERNELOPTIONS_H

#include <cstddef>
#include <cstdint>
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
};

inline constexpr KernelOptionInfo kernelOptions[] = {
#define KILN_KERNEL_OPTION(field, attribute, standard, least, most, written, reader, before, after, text)              \
  {#field, #attribute, standard, least, most, KernelOptionInfo::Written::written, KernelOptionInfo::Reader::reader,    \
   before, after,      text},
#include "compiler/target/KernelOptions.def"
};

/// A value of each.
struct KernelOptionValues {
#define KILN_KERNEL_OPTION(field, attribute, standard, ...) int field = standard;
#include "compiler/target/KernelOptions.def"
};

/// Calls visit(row, values.field) for each row.
template <typename Values, typename Visitor> constexpr void forEachKernelOption(Values &&values, Visitor &&visit) {
  std::size_t row = 0;
#define KILN_KERNEL_OPTION(field, ...) visit(kernelOptions[row++], values.field);
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
