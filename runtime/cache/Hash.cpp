#include "runtime/cache/Hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kiln::cache {

Hash128 hash128(std::string_view bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.high64, h.low64};
}

std::string hexText(Hash128 hash) {
  std::string out(32, '0');
  for (int i = 0; i < 16; ++i) {
    out[15 - i] = "0123456789abcdef"[(hash.high >> (4 * i)) & 15];
    out[31 - i] = "0123456789abcdef"[(hash.low >> (4 * i)) & 15];
  }
  return out;
}

} // namespace kiln::cache
