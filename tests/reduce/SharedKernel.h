//===- SharedKernel.h - Kernels on whole tiles, through shared memory -------===//
//
// A TileKernel reads dense arrays as tiles, runs a body on them and writes tiles and scalars back, in one block.  run()
// puts it through expand-shared, allocate-shared, insert-barriers, verify-barriers, the lowering and the back end, and
// executes it on the emulator, whose race checks count as errors.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_REDUCE_SHAREDKERNEL_H
#define KILN_TESTS_REDUCE_SHAREDKERNEL_H

#include "tests/lowering/LoweringHarness.h"

namespace kiln::test {

struct SharedStage {
  std::string errors;
  std::string text; ///< after verify-barriers
  std::uint32_t sharedBytes = 0;
};

/// The four passes on a module's text.
SharedStage throughShared(std::string_view text, std::string_view target, std::int64_t scratchBytes = 49152);

class TileKernel {
public:
  explicit TileKernel(unsigned logWarps) : warps(1u << logWarps) {}

  /// %name, a tile of the array that is the kernel's next argument.
  void input(const std::string &name, const layout::Sizes &shape, const std::string &element,
             const layout::Encoding &encoding);
  /// %value goes to the array that is the kernel's next argument; an empty shape is a scalar.
  void output(const std::string &value, const layout::Sizes &shape, const std::string &element,
              const layout::Encoding *encoding);
  /// Operations between inputs and outputs.
  void body(const std::string &text) { code += text; }
  std::string text() const;

  /// The error, or nothing.
  std::string run(Emulator &gpu, std::string_view target, const std::vector<Argument> &arguments,
                  std::int64_t scratchBytes = 49152) const;

private:
  std::string view(const std::string &name, const layout::Sizes &shape, const std::string &element, std::string &zeros);
  unsigned warps;
  std::string parameters, code;
};

/// Elements of a shape.
std::size_t volume(const layout::Sizes &shape);
/// The shape without a dimension.
layout::Sizes without(const layout::Sizes &shape, unsigned axis);
/// The layout of a reduction's result.
layout::Encoding sliced(const layout::Encoding &encoding, unsigned axis);

/// Calls visit(indices) for each line of elements along the axis, in order along the axis; lines are in row-major
/// order.
template <typename Visit> void eachLine(const layout::Sizes &shape, unsigned axis, Visit visit) {
  std::size_t inner = 1, outer = 1;
  for (std::size_t d = 0; d < shape.size(); ++d)
    (d < axis ? outer : inner) *= d == axis ? 1 : static_cast<std::size_t>(shape[d]);
  const auto extent = static_cast<std::size_t>(shape[axis]);
  std::vector<std::size_t> line(extent);
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t i = 0; i < inner; ++i) {
      for (std::size_t k = 0; k < extent; ++k)
        line[k] = (o * extent + k) * inner + i;
      visit(static_cast<const std::vector<std::size_t> &>(line));
    }
}

struct TileCase {
  unsigned logWarps = 0, axis = 0;
  layout::Sizes shape;
  layout::Encoding encoding;
  const char *target = "";
  std::int64_t scratchBytes = 0;
};
/// A random shape with a layout that fits it, up to 8 warps.
TileCase randomCase(std::mt19937_64 &random, unsigned maxBits);

} // namespace kiln::test

#endif // KILN_TESTS_REDUCE_SHAREDKERNEL_H
