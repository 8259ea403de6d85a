//===- Space.h - The configurations that a sweep may try ---------------------===//
//
// Every combination of the parameters' values, numbered as if the last parameter were the last digit; and, if one is
// added, a configuration after them all, whose values are none of those: what the call takes where nothing is tuned.
//
// Invariant: parameters have distinct names, and each at least one value and no value twice.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_SPACE_H
#define KILN_RUNTIME_TUNE_SPACE_H

#include "support/Status.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kiln::tune {

struct Parameter {
  std::string name;
  std::vector<std::string> values; ///< in an order in which neighbours are alike
  bool operator==(const Parameter &) const = default;
};

/// A value of each parameter, in the space's order.
using Configuration = std::vector<std::string>;

class Space {
public:
  /// More are refused: they would be judged one by one.
  static constexpr std::size_t most = 1 << 17;

  /// The failure names the parameter that has no value or the same value or name twice.
  static Result<Space> create(std::vector<Parameter> parameters);

  const std::vector<Parameter> &parameters() const { return all; }
  std::size_t size() const { return count + (added ? 1 : 0); }
  /// One configuration more, and its number; at most one.  It must have a value of each parameter.
  std::size_t add(Configuration configuration);
  Configuration at(std::size_t number) const;
  /// Nothing: a value is not among its parameter's.
  std::optional<std::size_t> numberOf(const Configuration &configuration) const;
  /// Those that differ in one parameter, by one place in the list of its values; of the added one none.
  std::vector<std::size_t> neighbours(std::size_t number) const;
  /// "block_m=64, warps=4".
  std::string text(const Configuration &configuration) const;

private:
  std::vector<Parameter> all;
  std::size_t count = 1; ///< combinations
  std::optional<Configuration> added;
};

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_SPACE_H
