#include "compiler/codegen/CubinReader.h"

#include <algorithm>
#include <cstring>
#include <elf.h>

namespace kiln {
namespace {

// Sections and attributes as the CUDA binary tools show them (cuobjdump -elf).
constexpr std::string_view codePrefix = ".text.", sharedPrefix = ".nv.shared.";
// From sm_90 on a kernel's section includes the 1 KiB that the system keeps of each block; a symbol of this name tells.
constexpr std::string_view reservedSymbol = ".nv.reservedSmem.offset0";
constexpr std::uint64_t reservedBytes = 1024;
constexpr std::uint8_t formatBytes = 4, formatNone = 1; // EIFMT: a size and bytes follow; nothing follows
constexpr std::uint8_t attributeFrameSize = 0x11, attributeRegisterCount = 0x2f;

class Elf {
public:
  explicit Elf(std::span<const std::byte> bytes) : bytes(bytes) {}

  template <typename T> bool read(std::uint64_t offset, T &value) const {
    if (offset > bytes.size() || bytes.size() - offset < sizeof value)
      return false;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return true;
  }
  std::span<const std::byte> contents(const Elf64_Shdr &section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > bytes.size() ||
        bytes.size() - section.sh_offset < section.sh_size)
      return {};
    return bytes.subspan(section.sh_offset, section.sh_size);
  }
  static std::string_view text(std::span<const std::byte> table, std::uint32_t offset) {
    if (offset >= table.size())
      return {};
    const char *start = reinterpret_cast<const char *>(table.data()) + offset;
    return {start, ::strnlen(start, table.size() - offset)};
  }
  bool open() {
    if (!read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr))
      return false;
    sections.resize(header.e_shnum);
    for (std::size_t i = 0; i < sections.size(); ++i)
      if (!read(header.e_shoff + i * sizeof(Elf64_Shdr), sections[i]))
        return false;
    if (header.e_shstrndx < sections.size())
      names = contents(sections[header.e_shstrndx]);
    return true;
  }
  std::string_view name(const Elf64_Shdr &section) const { return text(names, section.sh_name); }
  /// The name of symbol `index`.
  std::string_view symbol(std::uint32_t index) const {
    for (const Elf64_Shdr &section : sections) {
      if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size())
        continue;
      Elf64_Sym entry;
      if ((index + std::uint64_t(1)) * sizeof entry <= section.sh_size &&
          read(section.sh_offset + index * sizeof entry, entry))
        return text(contents(sections[section.sh_link]), entry.st_name);
    }
    return {};
  }

  bool hasSymbol(std::string_view name) const {
    for (const Elf64_Shdr &section : sections)
      if (section.sh_type == SHT_SYMTAB)
        for (std::uint32_t i = 0; (i + std::uint64_t(1)) * sizeof(Elf64_Sym) <= section.sh_size; ++i) {
          if (std::uint64_t(i) * sizeof(Elf64_Sym) > bytes.size())
            break; // a damaged size
          if (symbol(i) == name)
            return true;
        }
    return false;
  }

  std::vector<Elf64_Shdr> sections;

private:
  std::span<const std::byte> bytes, names;
  Elf64_Ehdr header{};
};

KernelResources *find(std::vector<KernelResources> &kernels, std::string_view name) {
  auto at = std::ranges::find(kernels, name, &KernelResources::name);
  return at == kernels.end() ? nullptr : &*at;
}

/// The section ".nv.info": attributes of four bytes of head, those of interest with (symbol, value) after it.
void readInfo(const Elf &elf, std::span<const std::byte> info, std::vector<KernelResources> &kernels) {
  while (info.size() >= 4) {
    const auto format = static_cast<std::uint8_t>(info[0]), attribute = static_cast<std::uint8_t>(info[1]);
    std::uint16_t size = 0;
    std::memcpy(&size, info.data() + 2, sizeof size);
    info = info.subspan(4);
    if (format != formatBytes) {
      if (format < formatNone || format > formatBytes)
        return;
      continue;
    }
    if (size > info.size())
      return;
    if (size >= 8 && (attribute == attributeFrameSize || attribute == attributeRegisterCount)) {
      std::uint32_t symbol, value;
      std::memcpy(&symbol, info.data(), 4);
      std::memcpy(&value, info.data() + 4, 4);
      if (KernelResources *kernel = find(kernels, elf.symbol(symbol)))
        (attribute == attributeFrameSize ? kernel->stackBytes : kernel->registers) = value;
    }
    info = info.subspan(size);
  }
}

} // namespace

Result<std::vector<KernelResources>> resourcesFromCubin(std::span<const std::byte> cubin) {
  Elf elf(cubin);
  if (!elf.open())
    return Status::invalid("not a cubin: no complete 64-bit ELF file");
  std::vector<KernelResources> kernels;
  for (const Elf64_Shdr &section : elf.sections)
    if (std::string_view name = elf.name(section); name.starts_with(codePrefix))
      kernels.emplace_back().name = name.substr(codePrefix.size());
  const bool reserves = elf.hasSymbol(reservedSymbol);
  for (const Elf64_Shdr &section : elf.sections) {
    const std::string_view name = elf.name(section);
    if (name == ".nv.info")
      readInfo(elf, elf.contents(section), kernels);
    else if (name.starts_with(sharedPrefix))
      if (KernelResources *kernel = find(kernels, name.substr(sharedPrefix.size())))
        kernel->sharedBytes =
            static_cast<std::uint32_t>(section.sh_size - (reserves ? std::min(section.sh_size, reservedBytes) : 0));
  }
  return kernels;
}

} // namespace kiln
