//===- ArgumentClass.h - Which variant serves these arguments -------------===//
//
// An ArgumentLayout is made once a kernel: where each argument lies, and which are specialised.  `classify` reads
// packed arguments and gives their ClassKey: 2 bits an argument specialised by divisibility or stride, a word for each
// one specialised by value.  Two calls with equal keys may run the same code.  No allocation, a nanosecond an argument.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_ARGUMENTCLASS_H
#define KILN_RUNTIME_JIT_ARGUMENTCLASS_H

#include "kiln/Jit.h"

#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace kiln {

struct ClassKey {
  /// Words of classes, 32 arguments each, then the values; as many of both as the kernel has.
  static constexpr unsigned maxClassed = LaunchArguments::maxCount, maxValues = 6;
  static constexpr unsigned maxWords = (maxClassed + 31) / 32 + maxValues;
  std::array<std::uint64_t, maxWords> words{};
  unsigned used = maxWords; ///< the others are zero
  /// Of code without tensor maps by passes, for arguments that they cannot be made of: no class says that.
  bool withoutMaps = false;
  bool operator==(const ClassKey &other) const {
    bool same = used == other.used && withoutMaps == other.withoutMaps;
    for (unsigned i = 0; i < used && same; ++i)
      same = words[i] == other.words[i];
    return same;
  }
  /// Not of withoutMaps: code with maps is there first, and is found as if there were no other.
  std::uint64_t hash() const {
    std::uint64_t h = 0x9E3779B97F4A7C15u;
    for (unsigned i = 0; i < used; ++i)
      h = (h ^ words[i]) * 0xFF51AFD7ED558CCDu, h ^= h >> 32;
    return h;
  }
};

class ArgumentLayout {
public:
  /// A failure names the argument: an unknown type, a value or stride that is no integer, too many values.
  static Result<ArgumentLayout> create(const KernelSource &source);

  std::uint32_t bytes() const { return totalBytes; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(types.size()); }
  std::uint32_t offset(unsigned argument) const { return offsets[argument]; }
  const ParsedArgumentType &type(unsigned argument) const { return parsed[argument]; }
  const std::string &name(unsigned argument) const { return names[argument]; }

  /// Number and types, and of pointers what they point to; the failure names the first argument that does not fit.
  bool accepts(const ArgumentView &view) const {
    return view.count == types.size() && std::memcmp(view.types, types.data(), view.count) == 0 &&
           (!view.elements || elementsFit(view.elements));
  }
  Status checkTypes(const ArgumentView &view) const;

  /// False if a pointer's element type does not divide it: `checkPointers` then says which.
  bool classify(const std::byte *data, ClassKey &key) const {
    std::uint64_t misaligned = 0;
    for (const Pointer &p : pointers)
      misaligned |= read64(data + p.offset) & p.mask;
    unsigned bit = 0, word = 0;
    for (const Classed &c : classed) {
      const std::uint64_t value = c.wide ? read64(data + c.offset) : read32(data + c.offset);
      std::uint64_t code = (value & (c.divisor - 1)) == 0 ? codeDivisible : codeNothing;
      if (c.stride && value == 1)
        code = codeOne;
      key.words[word] |= code << bit;
      bit += 2;
      if (bit == 64)
        bit = 0, ++word;
    }
    const unsigned firstValue = classWords();
    for (std::size_t i = 0; i < values.size(); ++i)
      key.words[firstValue + i] = readInteger(data, values[i]);
    key.used = keyWords();
    return misaligned == 0;
  }
  Status checkPointers(const std::byte *data, std::string_view kernel) const;

  /// The class as facts, one an argument, and back (withoutMaps is none of them).  Facts that the kernel does not
  /// specialise by are refused.
  std::vector<ArgumentFact> facts(const ClassKey &key) const;
  Result<ClassKey> keyOf(std::span<const ArgumentFact> facts, std::string_view kernel) const;

  /// "x/16 row_stride/8 column_stride=1 n=128"; "general" if nothing is known; "x/16, no tensor maps".
  std::string variantText(const ClassKey &key) const;
  /// "x=0x7f00 n=1000".
  std::string valuesText(const std::byte *data) const;

  /// Sign extended.
  std::int64_t integer(const std::byte *data, unsigned argument) const;

private:
  static constexpr std::uint64_t codeNothing = 0, codeDivisible = 1, codeOne = 2;
  struct Pointer {
    std::uint32_t offset;
    std::uint64_t mask;
  };
  struct Element {
    std::uint32_t argument;
    DType type; ///< as kernelElement gives it
  };
  struct Classed {
    std::uint32_t offset, argument;
    bool wide, stride;
    std::uint8_t divisor; ///< a power of two
  };
  static std::uint64_t read64(const std::byte *at) {
    std::uint64_t v;
    std::memcpy(&v, at, 8);
    return v;
  }
  static std::uint64_t read32(const std::byte *at) {
    std::uint32_t v;
    std::memcpy(&v, at, 4);
    return v;
  }
  std::uint64_t readInteger(const std::byte *data, unsigned argument) const {
    return static_cast<std::uint64_t>(integer(data, argument));
  }

  unsigned classWords() const { return (static_cast<unsigned>(classed.size()) + 31) / 32; }
  unsigned keyWords() const { return classWords() + static_cast<unsigned>(values.size()); }

  bool elementsFit(const std::uint8_t *given) const {
    bool fit = true;
    for (const Element &e : elements)
      fit &= !given[e.argument] || kernelElement(elementOf(given[e.argument])) == e.type;
    return fit;
  }

  std::vector<std::string> names;
  std::vector<ParsedArgumentType> parsed;
  std::vector<ArgumentType> types;
  std::vector<std::uint32_t> offsets;
  std::vector<Pointer> pointers; ///< those whose element has more than one byte
  std::vector<Element> elements; ///< of the pointers whose element's type is known
  std::vector<Classed> classed;
  std::vector<unsigned> values;
  std::uint32_t totalBytes = 0;
};

} // namespace kiln

#endif // KILN_RUNTIME_JIT_ARGUMENTCLASS_H
