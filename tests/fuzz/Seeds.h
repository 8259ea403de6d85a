//===- Seeds.h - Programs whose mutations are compiled ----------------------===//
//
// Every section of every .mlir file of the repository, and the library's kernels as recorded and as the compiler prints
// them at stage tile_gpu.  Functions that are no kernels are made kernels, so that a mutation reaches the back end:
// tiles among the arguments become splats of scalars, buffers allocations, results are stored.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_FUZZ_SEEDS_H
#define KILN_TESTS_FUZZ_SEEDS_H

#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

struct Seed {
  std::string name; ///< "tests/passes/axis-info.mlir:12"
  std::string text; ///< without comments
};

/// In a fixed order.  Without the library's kernels.
std::vector<Seed> seedsOfRepository(const std::string &root);

/// The functions of one module's text as kernels, one module each.
std::vector<std::string> kernelsOf(std::string_view text);

} // namespace kiln::test

#endif // KILN_TESTS_FUZZ_SEEDS_H
