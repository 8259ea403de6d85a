//===- TensorMapCache.h - Tensor maps that a launch made before -----------===//
//
// A few maps of one parameter of one compiled kernel, found by what they describe: address, extents, strides.  Any
// thread may look up and insert; nobody locks, waits or allocates.  A slot is a sequence lock: its version is odd while
// one thread writes, and a reader that saw it change takes the map as not found.  A map is never wrong, only missing.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_TENSORMAPCACHE_H
#define KILN_RUNTIME_JIT_TENSORMAPCACHE_H

#include "compiler/target/TensorMap.h"

#include <array>
#include <atomic>
#include <cstring>

namespace kiln {

class TensorMapCache {
public:
  static constexpr std::size_t slots = 8;

  /// Address, extents, strides; unused ones are 0.
  using Key = std::array<std::uint64_t, 2 * TensorMapRecipe::maxRank>;
  static Key keyOf(const TensorMapRecipe &r) {
    Key key{};
    key[0] = r.address;
    for (unsigned i = 0; i < r.rank; ++i)
      key[1 + i] = r.dims[i];
    for (unsigned i = 0; i + 1 < r.rank; ++i)
      key[1 + TensorMapRecipe::maxRank + i] = r.strides[i];
    return key;
  }

  /// Copies the map's bytes to `to`; what is written there if none is found has no meaning.
  bool find(const Key &key, std::byte *to) const {
    for (const Slot &s : table) {
      const std::uint32_t version = s.version.load(std::memory_order_acquire);
      if (version == 0 || version % 2 || !sameKey(s, key))
        continue;
      for (std::size_t i = 0; i < s.bytes.size(); ++i) {
        const std::uint64_t word = s.bytes[i].load(std::memory_order_relaxed);
        std::memcpy(to + 8 * i, &word, 8);
      }
      std::atomic_thread_fence(std::memory_order_acquire); // the version is read after the words
      if (s.version.load(std::memory_order_relaxed) == version)
        return true;
    }
    return false;
  }

  /// Takes the place of the oldest; if another thread writes there, the map is not kept.
  void insert(const Key &key, const TensorMap &map) {
    Slot &s = table[next.fetch_add(1, std::memory_order_relaxed) % slots];
    std::uint32_t version = s.version.load(std::memory_order_relaxed);
    if (version % 2 || !s.version.compare_exchange_strong(version, version + 1, std::memory_order_acquire))
      return;
    std::atomic_thread_fence(std::memory_order_release); // the odd version is seen before the words
    for (std::size_t i = 0; i < key.size(); ++i)
      s.key[i].store(key[i], std::memory_order_relaxed);
    for (std::size_t i = 0; i < s.bytes.size(); ++i) {
      std::uint64_t word;
      std::memcpy(&word, map.bytes.data() + 8 * i, 8);
      s.bytes[i].store(word, std::memory_order_relaxed);
    }
    const std::uint32_t after = version + 2;
    s.version.store(after ? after : 2, std::memory_order_release); // 0: never written
  }

private:
  struct Slot {
    std::atomic<std::uint32_t> version{0};
    std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Key>> key{};
    std::array<std::atomic<std::uint64_t>, TensorMap::size / 8> bytes{};
  };
  static bool sameKey(const Slot &s, const Key &key) {
    for (std::size_t i = 0; i < key.size(); ++i)
      if (s.key[i].load(std::memory_order_relaxed) != key[i])
        return false;
    return true;
  }
  std::array<Slot, slots> table;
  std::atomic<std::uint32_t> next{0};
};

} // namespace kiln

#endif // KILN_RUNTIME_JIT_TENSORMAPCACHE_H
