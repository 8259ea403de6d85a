//===- BenchPrediction.h - kiln bench --predict ----------------------------===//
//
// A call's launches through the performance model (runtime/model), as a row of the table and of the JSON.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_BENCHPREDICTION_H
#define KILN_RUNTIME_TOOLS_BENCHPREDICTION_H

#include "kiln/Device.h"
#include "runtime/model/Prediction.h"
#include "runtime/tools/Report.h"

#include <string>
#include <string_view>
#include <vector>

namespace kiln::tools {

/// Blocks of each launch that the emulator runs; and the longest that a launch may take it, in seconds: those of
/// kernels whose results depend on the order of blocks run whole.
constexpr std::uint64_t blocksOfPrediction = 32;
constexpr double secondsOfPrediction = 60;

/// Of an emulator's target.  A GPU is refused: it can be measured; and schedules of which no sample can be taken.
Result<model::Hardware> hardwareForPrediction(const Device &device);

struct CallPrediction {
  double milliseconds = 0;
  std::vector<std::pair<std::string, model::Prediction>> launches; ///< a kernel's name, its prediction
};

/// Of the launches that `device` has counted since the last look; `bytes` are those of the call's tensors and of its
/// workspace.
CallPrediction predictCall(Device &device, const model::Hardware &hardware, double bytes);

Json toJson(const CallPrediction &prediction, std::string_view kernel, std::string_view dtype, const std::string &shape,
            double bytes, double flops);

void printPredictionHead(const model::Hardware &hardware);
void printPrediction(const Json &row);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_BENCHPREDICTION_H
