//===- Lines.h - A PTX module as lines, and the structure that moves need -----===//
#ifndef KILN_TESTS_MUTANTS_LINES_H
#define KILN_TESTS_MUTANTS_LINES_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

/// One instruction, taken apart.
struct Instruction {
  std::string_view guard;                 ///< "@%p1", "@!%p1" or empty
  std::string_view opcode;                ///< "st.shared.b32"
  std::vector<std::string_view> operands; ///< split at the commas outside of brackets and braces
  std::string_view bare;                  ///< without guard, with ';'
};

class Lines {
public:
  explicit Lines(std::string_view ptx);

  std::size_t size() const { return lines.size(); }
  std::string_view operator[](std::size_t i) const { return lines[i]; }
  std::string_view trimmed(std::size_t i) const { return stripped[i]; }
  /// Nothing for labels, directives, comments, braces.
  std::optional<Instruction> instruction(std::size_t i) const;
  bool isLabel(std::size_t i) const;
  /// How many braces are open before the line; a function's body has 1.
  unsigned depth(std::size_t i) const { return depths[i]; }
  std::string_view entry(std::size_t i) const { return entries[i]; }
  std::string_view location(std::size_t i) const { return locations[i]; }

  /// A statement: an instruction, or everything between two braces deeper than the line's.  From the line `i`, first
  /// and last line of it; empty if `i` starts none.
  struct Unit {
    std::size_t first, last;
  };
  /// The unit of depth `depth` that holds line `i`.
  Unit unitOf(std::size_t i, unsigned depth) const;
  /// The next (step 1) or last (step -1) unit of straight-line code that touches memory or synchronises.
  std::optional<Unit> accessFrom(const Unit &unit, int step) const;

private:
  std::vector<std::string_view> lines, stripped;
  std::vector<unsigned> depths;
  std::vector<std::string> entries, locations;
};

/// Memory that others see, synchronisation, matrix products of the asynchronous kind.
bool isAccess(std::string_view opcode);

} // namespace kiln::test

#endif // KILN_TESTS_MUTANTS_LINES_H
