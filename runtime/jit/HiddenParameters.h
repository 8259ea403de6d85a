//===- HiddenParameters.h - What a launch passes besides its arguments ----===//
//
// Compiled code may have more parameters than its kernel has arguments: tensor maps, which the launcher makes of the
// arguments.  The metadata describes each by a recipe (CompilerTable.h); here it is read once, and at each launch the
// parameters are written after the arguments.  Maps that a launch made before are reused (TensorMapCache.h): such a
// launch allocates and locks nothing.  No more does one of arguments that a map cannot be made of, until somebody asks
// why: where passes made the maps, other code runs instead (Jit.cpp), and that may be so at every launch.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_HIDDENPARAMETERS_H
#define KILN_RUNTIME_JIT_HIDDENPARAMETERS_H

#include "runtime/jit/ArgumentClass.h"
#include "runtime/jit/TensorMapCache.h"

#include <nlohmann/json_fwd.hpp>

namespace kiln {

/// A number made of integer arguments and constants, ready to be computed.
class ArgumentExpression {
public:
  /// False if the JSON is none, names no integer argument, or is nested too deep.
  bool parse(const nlohmann::ordered_json &json, const ArgumentLayout &layout, unsigned depth = 0);
  /// Nothing if a result does not fit 64 bits, or a divisor is not positive.
  std::optional<std::int64_t> value(const ArgumentLayout &layout, const std::byte *arguments) const;
  /// "row_stride * 2".
  std::string text(const ArgumentLayout &layout) const;

private:
  struct Step {
    enum Kind : std::uint8_t { Constant, Argument, Operator } kind;
    std::int64_t value = 0; ///< the constant, the argument's number, an ExpressionOperator
  };
  std::vector<Step> steps; ///< operands before their operator
};

class HiddenParameters {
public:
  /// `list`: the metadata's "hidden".
  static Result<std::shared_ptr<HiddenParameters>> parse(const nlohmann::ordered_json &list,
                                                         const ArgumentLayout &layout);
  /// Takes the offsets that the loaded code has for them; `parameters`: those after the arguments.  Only the driver of
  /// a GPU knows these offsets: a GPU aligns maps to 64 bytes where it keeps parameters, and the first parameter does
  /// not lie at a multiple of that.  False if these are other parameters.
  bool place(std::span<const ParameterInfo> parameters, const ArgumentLayout &layout);

  /// Passes made maps: their code reaches elements by coordinates of 32 bits, signed, and a tensor with more along a
  /// dimension breaks a rule.
  void limitExtents() {
    for (const auto &map : maps)
      map->mostExtent = INT32_MAX;
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(maps.size()); }
  static constexpr std::uint32_t size = TensorMap::size; ///< of each
  /// Of all parameters: the arguments, and these.
  std::uint32_t bytes() const { return totalBytes; }

  enum class Outcome : std::uint8_t { Written, RuleBroken, DeviceFailed };
  /// Fills `parameters`, bytes() long.  Of these outcomes only DeviceFailed has a text: `failure`.
  Outcome write(Device &device, const ArgumentLayout &layout, const std::byte *arguments, std::byte *parameters,
                Status &failure) const;
  /// Whether no map breaks a rule.
  bool fits(const ArgumentLayout &layout, const std::byte *arguments) const;
  /// Names the arguments that a map cannot be made of, their values, the rule and what to change; ok if they fit.
  Status brokenRule(const ArgumentLayout &layout, const std::byte *arguments) const;

private:
  struct Map {
    std::uint32_t offset = 0; ///< by PTX's rules, until it is placed
    unsigned address = 0;     ///< the argument
    TensorMapRecipe form;     ///< all but address, extents and strides
    std::vector<ArgumentExpression> extents, strides;
    std::int64_t mostExtent = INT64_MAX;
    mutable TensorMapCache known;
  };
  static Status parseMap(const nlohmann::ordered_json &json, const ArgumentLayout &layout, Map &out);
  /// False if an extent or a stride is none; `why` says which, where it is wanted.
  static bool evaluate(const Map &map, const ArgumentLayout &layout, const std::byte *arguments,
                       TensorMapRecipe &recipe, Status *why = nullptr);
  /// "the tensor map of argument 0 'x' (extents 'n' = 100; strides 'row_stride' * 2 = 40 bytes)".
  static std::string describe(const Map &map, const ArgumentLayout &layout, const std::byte *arguments);

  std::vector<std::unique_ptr<Map>> maps; ///< in the order of their offsets
  std::uint32_t totalBytes = 0;
};

} // namespace kiln

#endif // KILN_RUNTIME_JIT_HIDDENPARAMETERS_H
