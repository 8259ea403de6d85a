#include "runtime/cache/Entry.h"

#include "runtime/cache/LittleEndian.h"

namespace kiln::cache {

// As PNG does it: a byte above 127 and both line endings, so that a transfer as text shows.
static constexpr std::string_view magic("\x89KILN\r\n\x1a", 8);

static Status damaged(std::string why) {
  return Status::invalid(std::move(why));
}

std::string_view entryKindName(EntryKind kind) {
  return kind == EntryKind::Ptx ? "ptx" : kind == EntryKind::Cubin ? "cubin" : "tuned";
}

std::string encodeEntry(std::string_view keyText, const Entry &entry) {
  std::string out;
  out.reserve(entryHeaderBytes + keyText.size() + entry.metadata.size() + entry.payload.size() + entryChecksumBytes);
  out += magic;
  append(out, entryFormatVersion, 4);
  append(out, static_cast<std::uint32_t>(entry.kind), 4);
  append(out, keyText.size(), 8);
  append(out, entry.metadata.size(), 8);
  append(out, entry.payload.size(), 8);
  out += keyText;
  out += entry.metadata;
  out += entry.payload;
  append(out, hash128(out));
  return out;
}

Result<EntryHeader> decodeEntryHeader(std::string_view header, std::uint64_t fileBytes) {
  if (fileBytes > maxEntryFileBytes)
    return damaged("it has " + std::to_string(fileBytes) + " bytes, the limit is " + std::to_string(maxEntryFileBytes));
  if (fileBytes < entryHeaderBytes + entryChecksumBytes || header.size() < entryHeaderBytes)
    return damaged("it is cut short at " + std::to_string(fileBytes) + " bytes");
  if (header.substr(0, magic.size()) != magic)
    return damaged("it does not begin like an entry");
  const std::uint64_t version = number(header, 8, 4), kind = number(header, 12, 4);
  if (version != entryFormatVersion)
    return damaged("its format is version " + std::to_string(version) + ", this program reads version " +
                   std::to_string(entryFormatVersion));
  if (kind < std::uint64_t(EntryKind::Ptx) || kind > std::uint64_t(EntryKind::Tuned))
    return damaged("its kind is " + std::to_string(kind) + ", not ptx (1), cubin (2) or tuned (3)");
  EntryHeader out{static_cast<EntryKind>(kind), number(header, 16, 8), number(header, 24, 8), number(header, 32, 8)};
  // One after the other: the sum of three arbitrary numbers may overflow.
  std::uint64_t left = fileBytes - entryHeaderBytes - entryChecksumBytes;
  for (std::uint64_t part : {out.keyBytes, out.metadataBytes, out.payloadBytes}) {
    if (part > left)
      return damaged("it is cut short at " + std::to_string(fileBytes) + " bytes");
    left -= part;
  }
  if (left)
    return damaged(std::to_string(left) + " bytes follow its end");
  return out;
}

Result<EntryView> decodeEntry(std::string_view file) {
  KILN_ASSIGN(const EntryHeader header, decodeEntryHeader(file, file.size()));
  const std::size_t body = file.size() - entryChecksumBytes;
  if (hash128(file.substr(0, body)) != hashAt(file, body))
    return damaged("its checksum does not hold");
  EntryView out;
  out.kind = header.kind;
  file.remove_prefix(entryHeaderBytes);
  out.keyText = file.substr(0, header.keyBytes);
  out.metadata = file.substr(header.keyBytes, header.metadataBytes);
  out.payload = file.substr(header.keyBytes + header.metadataBytes, header.payloadBytes);
  return out;
}

} // namespace kiln::cache
