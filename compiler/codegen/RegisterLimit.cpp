#include "compiler/codegen/RegisterLimit.h"

#include <algorithm>
#include <charconv>

namespace kiln {
namespace {

constexpr std::uint32_t mostRegisters = 255, registersOfProcessor = 64 * 1024;
/// Registers are given to threads in such portions.
constexpr std::uint32_t portion = 8;

/// The product of the numbers after each such directive: the largest; 0: there is none.
std::uint64_t largest(std::string_view ptx, std::string_view directive) {
  std::uint64_t out = 0;
  for (std::size_t at = ptx.find(directive); at != std::string_view::npos; at = ptx.find(directive, at)) {
    at += directive.size();
    std::uint64_t product = 1;
    for (bool more = true; more;) {
      while (at < ptx.size() && (ptx[at] == ' ' || ptx[at] == '\t'))
        ++at;
      std::uint32_t n = 0;
      const auto [end, error] = std::from_chars(ptx.data() + at, ptx.data() + ptx.size(), n);
      if (error != std::errc())
        break;
      product = std::min<std::uint64_t>(product * std::max(n, 1u), registersOfProcessor);
      at = static_cast<std::size_t>(end - ptx.data());
      while (at < ptx.size() && ptx[at] == ' ')
        ++at;
      more = at < ptx.size() && ptx[at] == ',';
      at += more;
    }
    out = std::max(out, product);
  }
  return out;
}

} // namespace

std::uint32_t registerLimit(std::string_view ptx) {
  std::uint64_t out = mostRegisters;
  if (const std::uint64_t threads = std::max(largest(ptx, ".reqntid"), largest(ptx, ".maxntid"))) {
    const std::uint64_t blocks = std::max<std::uint64_t>(largest(ptx, ".minnctapersm"), 1);
    out = std::min(out, registersOfProcessor / (threads * blocks) / portion * portion);
  }
  if (const std::uint64_t asked = largest(ptx, ".maxnreg"))
    out = std::min(out, asked);
  return static_cast<std::uint32_t>(out);
}

bool ranOutOfRegisters(std::string_view ptx, const ResourceReport &made) {
  const std::uint32_t limit = registerLimit(ptx);
  return std::ranges::any_of(made.kernels, [&](const KernelResources &kernel) {
    const bool spills =
        kernel.spillStoreBytes ? *kernel.spillStoreBytes || kernel.spillLoadBytes.value_or(0) : kernel.stackBytes != 0;
    return spills || kernel.registers + 1 >= limit;
  });
}

} // namespace kiln
