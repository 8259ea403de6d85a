//===- Entry.h - One compiled kernel as the cache holds it ----------------===//
//
// In a file an entry is, numbers little-endian:
//
//     0   8 bytes   magic
//     8   u32       format version
//    12   u32       kind
//    16   u64 x 3   bytes of the key text, the metadata, the payload
//    40             key text, metadata, payload, one after the other
//   end-16          XXH3-128 of everything before it, low half first
//
// `decode` accepts exactly what `encode` writes: any other bytes are refused with a reason.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_ENTRY_H
#define KILN_RUNTIME_CACHE_ENTRY_H

#include "support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::cache {

enum class EntryKind : std::uint32_t { Ptx = 1, Cubin = 2, Tuned = 3 };

/// "ptx", "cubin", "tuned".
std::string_view entryKindName(EntryKind kind);

struct Entry {
  EntryKind kind = EntryKind::Ptx;
  std::string payload;  ///< PTX text, the bytes of a cubin, or the values of tuned options as JSON
  std::string metadata; ///< JSON; the cache does not look into it
  bool operator==(const Entry &) const = default;
};

inline constexpr std::uint32_t entryFormatVersion = 1;
inline constexpr std::uint64_t entryHeaderBytes = 40, entryChecksumBytes = 16;
/// Larger files are no entries: bounds what a lookup allocates.
inline constexpr std::uint64_t maxEntryFileBytes = std::uint64_t(256) << 20;

std::string encodeEntry(std::string_view keyText, const Entry &entry);

/// Where things stand in a file, from its first `entryHeaderBytes` bytes and its size; nothing is read past them.
struct EntryHeader {
  EntryKind kind = EntryKind::Ptx;
  std::uint64_t keyBytes = 0, metadataBytes = 0, payloadBytes = 0;
};
Result<EntryHeader> decodeEntryHeader(std::string_view header, std::uint64_t fileBytes);

/// Views into `file`, which was read whole.  The checksum holds.
struct EntryView {
  EntryKind kind = EntryKind::Ptx;
  std::string_view keyText, metadata, payload;
};
Result<EntryView> decodeEntry(std::string_view file);

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_ENTRY_H
