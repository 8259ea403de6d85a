#include "compiler/codegen/RegisterLimit.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace kiln {
namespace {

constexpr std::uint32_t mostRegisters = 255, registersOfProcessor = 64 * 1024;
/// Registers are given to threads in such portions; a multiprocessor's quarters have as many warps of a block each.
constexpr std::uint32_t portion = 8, threadsOfQuarters = 4 * 32;

bool isSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// The products of the numbers after each such directive.
std::vector<std::uint64_t> numbersOf(std::string_view ptx, std::string_view directive) {
  std::vector<std::uint64_t> out;
  for (std::size_t at = ptx.find(directive); at != std::string_view::npos; at = ptx.find(directive, at)) {
    at += directive.size();
    std::uint64_t product = 1;
    for (bool more = true; more;) {
      while (at < ptx.size() && isSpace(ptx[at]))
        ++at;
      std::uint32_t n = 0;
      const auto [end, error] = std::from_chars(ptx.data() + at, ptx.data() + ptx.size(), n);
      if (error != std::errc())
        break;
      product = std::min<std::uint64_t>(product * std::max(n, 1u), registersOfProcessor);
      at = static_cast<std::size_t>(end - ptx.data());
      while (at < ptx.size() && isSpace(ptx[at]))
        ++at;
      more = at < ptx.size() && ptx[at] == ',';
      at += more;
    }
    out.push_back(product);
  }
  return out;
}

/// 1: there is none.
std::uint64_t largest(std::string_view ptx, std::string_view directive) {
  const std::vector<std::uint64_t> all = numbersOf(ptx, directive);
  return all.empty() ? 1 : *std::ranges::max_element(all);
}

} // namespace

std::uint32_t registerLimit(std::string_view ptx) {
  const std::uint64_t threads = std::max(largest(ptx, ".reqntid"), largest(ptx, ".maxntid"));
  const std::uint64_t whole = (threads + threadsOfQuarters - 1) / threadsOfQuarters * threadsOfQuarters;
  const std::uint64_t blocks = largest(ptx, ".minnctapersm");
  std::uint64_t out =
      std::min<std::uint64_t>(mostRegisters, registersOfProcessor / (whole * blocks) / portion * portion);
  for (const std::uint64_t asked : numbersOf(ptx, ".maxnreg"))
    out = std::min(out, asked);
  return static_cast<std::uint32_t>(out);
}

bool ranOutOfRegisters(std::string_view ptx, const ResourceReport &made) {
  const std::uint32_t limit = registerLimit(ptx);
  // What no report names may be anything.
  return made.kernels.empty() || std::ranges::any_of(made.kernels, [&](const KernelResources &kernel) {
           const bool spills = kernel.spillStoreBytes ? *kernel.spillStoreBytes || kernel.spillLoadBytes.value_or(0)
                                                      : kernel.stackBytes != 0;
           // Pairs and quads lie at even numbers: the last portion need not be full.
           return spills || kernel.registers == 0 || kernel.registers + portion > limit;
         });
}

} // namespace kiln
