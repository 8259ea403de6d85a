//===- Hash.h - XXH3-128 of bytes -----------------------------------------===//
//
// Names files and detects damage.  Not a cryptographic hash: whoever relies on equality compares the bytes as well.
// The value is the same on every machine.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_HASH_H
#define KILN_RUNTIME_CACHE_HASH_H

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::cache {

struct Hash128 {
  std::uint64_t high = 0, low = 0;
  bool operator==(const Hash128 &) const = default;
};

Hash128 hash128(std::string_view bytes);

/// 32 lower-case hexadecimal digits, the high half first.
std::string hexText(Hash128 hash);

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_HASH_H
