#include "tests/kernels/SassOrder.h"

#include <elf.h>

#include <cstring>
#include <optional>

namespace kiln::test {

namespace {

template <typename T> std::optional<T> at(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
    return std::nullopt;
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return out;
}

std::span<const std::byte> sectionNamed(std::span<const std::byte> file, const std::string &name) {
  const auto header = at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
    return {};
  const auto section = [&](unsigned i) {
    return at<Elf64_Shdr>(file, header->e_shoff + std::uint64_t(i) * header->e_shentsize);
  };
  const auto names = section(header->e_shstrndx);
  for (unsigned i = 0; names && i < header->e_shnum; ++i) {
    const auto s = section(i);
    if (!s || names->sh_offset + s->sh_name >= file.size())
      continue;
    const auto *text = reinterpret_cast<const char *>(file.data() + names->sh_offset + s->sh_name);
    if (std::string(text, strnlen(text, file.size() - names->sh_offset - s->sh_name)) == name &&
        s->sh_offset <= file.size() && s->sh_size <= file.size() - s->sh_offset)
      return file.subspan(s->sh_offset, s->sh_size);
  }
  return {};
}

} // namespace

std::vector<SassInstruction> sassOf(std::span<const std::byte> cubin, const std::string &kernel) {
  std::vector<SassInstruction> out;
  const std::span<const std::byte> text = sectionNamed(cubin, ".text." + kernel);
  for (std::uint64_t i = 0; i + 16 <= text.size(); i += 16)
    out.push_back({*at<std::uint64_t>(text, i), *at<std::uint64_t>(text, i + 8)});
  return out;
}

std::vector<BetweenWaits> betweenWaits(const std::vector<SassInstruction> &text) {
  constexpr unsigned mufu = 0x308;
  std::vector<BetweenWaits> out;
  BetweenWaits now;
  bool any = false;
  for (const SassInstruction &i : text) {
    now.specials += i.operation() == mufu;
    now.products += i.isProduct();
    if (!i.isProductWait())
      continue;
    now.leftAfter = i.leftByWait();
    if (any)
      out.push_back(now);
    any = true;
    now = {now.leftAfter};
  }
  return out;
}

} // namespace kiln::test
