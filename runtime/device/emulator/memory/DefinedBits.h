//===- DefinedBits.h - One bit a byte: has it been written? ---------------===//
//
// Bit i of a word array stands for byte i of a memory.  Words may be shared by threads: every access is a relaxed
// atomic, and a partly covered word is changed with fetch_or, so neighbours on other threads lose nothing.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_MEMORY_DEFINEDBITS_H
#define KILN_RUNTIME_DEVICE_EMULATOR_MEMORY_DEFINEDBITS_H

#include <cstdint>

namespace kiln::emulator {

/// The bits of [first, first + n) inside the word that holds bit `first`; n is cut to the word.
inline std::uint64_t definedMask(std::uint64_t first, std::uint64_t n, std::uint64_t &inWord) {
  const unsigned shift = first % 64;
  inWord = n < 64 - shift ? n : 64 - shift;
  return (inWord == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << inWord) - 1) << shift;
}

inline bool allDefined(const std::uint64_t *bits, std::uint64_t first, std::uint64_t n) {
  while (n) {
    std::uint64_t inWord;
    const std::uint64_t mask = definedMask(first, n, inWord);
    if ((__atomic_load_n(bits + first / 64, __ATOMIC_RELAXED) & mask) != mask)
      return false;
    first += inWord;
    n -= inWord;
  }
  return true;
}

inline void markDefined(std::uint64_t *bits, std::uint64_t first, std::uint64_t n) {
  while (n) {
    std::uint64_t inWord;
    const std::uint64_t mask = definedMask(first, n, inWord);
    std::uint64_t *word = bits + first / 64;
    if (inWord == 64)
      __atomic_store_n(word, mask, __ATOMIC_RELAXED);
    else if ((__atomic_load_n(word, __ATOMIC_RELAXED) & mask) != mask)
      __atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
    first += inWord;
    n -= inWord;
  }
}

inline void clearDefined(std::uint64_t *bits, std::uint64_t first, std::uint64_t n) {
  while (n) {
    std::uint64_t inWord;
    const std::uint64_t mask = definedMask(first, n, inWord);
    if (inWord == 64)
      __atomic_store_n(bits + first / 64, 0, __ATOMIC_RELAXED);
    else
      __atomic_fetch_and(bits + first / 64, ~mask, __ATOMIC_RELAXED);
    first += inWord;
    n -= inWord;
  }
}

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_MEMORY_DEFINEDBITS_H
