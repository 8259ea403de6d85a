//===- Matrix.h - Speed of matrix instructions ----------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_BENCH_MATRIX_H
#define KILN_RUNTIME_DEVICE_EMULATOR_BENCH_MATRIX_H

#include "kiln/Device.h"

#include <string>
#include <vector>

namespace kiln::bench {

struct MatrixRate {
  std::string kernel; ///< "wgmma m64n128k16 f32 += bf16, A shared"
  MatrixMode mode = MatrixMode::Exact;
  bool checks = false;
  double flops = 0; ///< a second of CPU time a core
};

/// Loops of products on one worker, checks off and on, best of `repeat` launches.
Result<std::vector<MatrixRate>> measureMatrix(const std::string &cpuLevel, unsigned repeat);

} // namespace kiln::bench

#endif // KILN_RUNTIME_DEVICE_EMULATOR_BENCH_MATRIX_H
