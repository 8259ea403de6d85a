//===- LoweringHarness.h - tile_gpu text to PTX, and onto the emulator ------===//
//
// `lowered` runs the three lowering passes and the back end on text at stage tile_gpu.  `Text` helps to write such
// text. `Kernel` holds the PTX with an emulator: outputs are poisoned, findings are failures.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_LOWERING_LOWERINGHARNESS_H
#define KILN_TESTS_LOWERING_LOWERINGHARNESS_H

#include "compiler/layout/TileLayout.h"
#include "tests/emulator/PtxHarness.h"

#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

struct LoweredKernel {
  bool ok = false;
  std::string errors; ///< diagnostics, one a line
  std::string ptx;
  std::string tiles; ///< after kiln-lower-tiles
  std::string llvm;  ///< before O3
  std::uint32_t sharedBytes = 0;
  double milliseconds = 0; ///< passes and back end, without parsing
};

/// Where a text starts: ready for lowering; before shared memory is made explicit, allocated and guarded by barriers;
/// at stage tile, before it has layouts.
enum class From : unsigned char { Lowering, Expansion, Tile };

/// `text`: a module without tile_gpu.target, which is added.  Source lines in the PTX are lines of the text.
LoweredKernel lowered(std::string_view text, std::string_view target, bool keepStages = false,
                      From from = From::Lowering, bool lineInfo = false);

/// The text after a pass asked for these tensor maps of its kernel, "#tile_gpu.tensor_map<..>" each.
std::string withTensorMaps(std::string_view text, const std::vector<std::string> &recipes);

/// "#tile_gpu.blocked<..>" of an encoding.
std::string attribute(const layout::Encoding &encoding);
std::string attribute(const layout::SharedEncoding &encoding);
/// "tensor<64x32xf32, #..>"
std::string tensorType(const layout::Sizes &shape, std::string_view element, const layout::Encoding &encoding);
/// "64x32"
std::string extents(const layout::Sizes &shape);

/// A kernel "k" with those parameters and body.
std::string kernelModule(std::string_view parameters, std::string_view body, unsigned warps,
                         std::string_view functionAttributes = {});

/// Lowers and runs; every finding and every failure is in `error`.
struct KernelRun {
  std::string error;
  std::string ptx;
};
KernelRun runKernel(Emulator &gpu, std::string_view target, std::string_view text, unsigned warps,
                    const std::vector<Argument> &arguments, Dim3 grid = {}, From from = From::Lowering);

/// Random encodings over 2^logWarps warps.  Of any rank from 1 to 3.
layout::Encoding randomBlocked(std::mt19937_64 &random, unsigned rank, unsigned logWarps);
/// Bits of the core dealt to registers, lanes and warps at random; some lanes or warps may hold copies.
layout::Encoding randomLinear(std::mt19937_64 &random, const layout::Sizes &shape, unsigned logWarps);
/// One of the two, or a slice of a blocked encoding.
layout::Encoding randomLayout(std::mt19937_64 &random, const layout::Sizes &shape, unsigned logWarps);
/// Extents m * 2^k of at most 2^maxBits * 15 elements.
layout::Sizes randomShape(std::mt19937_64 &random, unsigned rank, unsigned maxBits);

} // namespace kiln::test

#endif // KILN_TESTS_LOWERING_LOWERINGHARNESS_H
