//===- Samples.h - Calls to try a family with ---------------------------------===//
//
// Sizes and options worth a look, a measurement or a check, and values for the inputs.
//
// Invariant: every sample is a call that the family accepts, and the same one every time.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_SAMPLES_H
#define KILN_KERNELS_SUPPORT_SAMPLES_H

#include "kernels/support/Callable.h"

namespace kiln::kernels {

struct Sample {
  TensorTypes inputs;
  OptionValues options = {};
  std::vector<std::string> made = {}; ///< inputs that come from the family that makes them (TensorParameter::madeBy)
  Arrays given = {};                  ///< values of inputs that are not to be random
};

/// What samples are for: a look at the kernel, its speed, its defects.
enum class SampleUse : std::uint8_t { Demo, Bench, Check };

class Samples {
public:
  virtual ~Samples() = default;

  /// Inputs of a size worth looking at: "small" for the emulator, else "large".
  virtual TensorTypes example(DType dtype, bool large) const { return {}; }
  /// Calls of that type; `gpu`: sizes that fill one.  By default of the example, for Check in four sizes.
  virtual std::vector<Sample> calls(DType dtype, SampleUse use, bool gpu) const;
  /// Values to try an input with, the same for the same seed; nothing: any random ones (randomInput, Runner.h).
  virtual std::optional<Array> input(std::string_view name, const TensorType &type, std::uint64_t seed) const {
    return {};
  }
  /// Those of a table (i32) of a call with `all` these inputs, which they have to fit; nothing: as `input`.
  virtual std::optional<Array> table(std::string_view name, const TensorTypes &all, std::uint64_t seed) const {
    return {};
  }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_SAMPLES_H
