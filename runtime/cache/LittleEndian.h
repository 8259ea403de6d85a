//===- LittleEndian.h - Numbers in the cache's files -------------------------===//
#ifndef KILN_RUNTIME_CACHE_LITTLEENDIAN_H
#define KILN_RUNTIME_CACHE_LITTLEENDIAN_H

#include "runtime/cache/Hash.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::cache {

inline void append(std::string &out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out += static_cast<char>(value >> (8 * i));
}
inline std::uint64_t number(std::string_view at, std::size_t offset, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value |= std::uint64_t(static_cast<unsigned char>(at[offset + i])) << (8 * i);
  return value;
}

/// The low half first.
inline void append(std::string &out, const Hash128 &hash) {
  append(out, hash.low, 8);
  append(out, hash.high, 8);
}
inline Hash128 hashAt(std::string_view at, std::size_t offset) {
  Hash128 out;
  out.low = number(at, offset, 8), out.high = number(at, offset + 8, 8);
  return out;
}

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_LITTLEENDIAN_H
