//===- TensorCases.h - Tensor copies on any device ------------------------===//
//
// One box that is loaded, stored or reduced by a kernel written for it, and compared byte by byte with what
// TensorReference.h says: on the emulator in its own tests, on a GPU in kiln-gpu-tests.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_EMULATOR_TENSORCASES_H
#define KILN_TESTS_EMULATOR_TENSORCASES_H

#include "kiln/Device.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace kiln::test {

struct TensorCase {
  enum class Kind { Load, Store, Reduce } kind = Kind::Load;
  std::string reduction; ///< "add", ...
  TensorMapRecipe map;   ///< the address is an offset in the tensor's buffer
  std::int32_t at[TensorMapRecipe::maxRank] = {};
  std::uint32_t offset = 0; ///< of the box in shared memory
  std::uint64_t seed = 0;   ///< of the data
  std::string text() const;
};

/// A tensor of at most tensorBytes bytes, a box of at most boxAreaBytes, anywhere near the tensor; stores start inside
/// or after it.
TensorCase randomTensorCase(std::mt19937_64 &random, TensorCase::Kind kind);
constexpr std::size_t tensorBytes = 1 << 17, boxAreaBytes = 24 << 10;

class TensorRunner {
public:
  explicit TensorRunner(Device &device);
  struct Outcome {
    bool refused = false; ///< the device does not make such a map
    std::string why;      ///< empty: every byte is right
  };
  Outcome run(const TensorCase &c);

private:
  Result<Kernel *> kernelOf(const TensorCase &c);
  Device &device;
  std::unique_ptr<Buffer> tensor, area;
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> modules;
};

} // namespace kiln::test

#endif // KILN_TESTS_EMULATOR_TENSORCASES_H
