//===- BenchPrediction.h - --predict of kiln bench and kiln explain --------===//
//
// A call's launches through the performance model (runtime/model), as a row of the table and of the JSON.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_BENCHPREDICTION_H
#define KILN_RUNTIME_TOOLS_BENCHPREDICTION_H

#include "kiln/Device.h"
#include "runtime/model/Prediction.h"
#include "runtime/tools/FamilyCalls.h"
#include "runtime/tools/Report.h"
#include "runtime/tools/RunOptions.h"

#include <string>
#include <string_view>

namespace kiln::tools {

/// The emulator that the options name, ready to run a sample of each launch's blocks, and the GPU that it stands for. A
/// GPU is refused: it can be measured; and schedules of which no sample can be taken.
Result<std::unique_ptr<Device>> openForPrediction(const RunOptions &options, model::Hardware &hardware);

/// From here on the emulator runs a sample of each launch's blocks.
Status recordSample(Device &device);

/// The call's options, with those that are others on the emulator as they are on a GPU if nobody asks for them.
kernels::OptionValues optionsAsOnGpu(const FamilyCall &call);

/// What a call would take on that GPU, and each of its launches.  `jit` is of the device.
Result<Json> predictedRow(Device &device, Jit &jit, const model::Hardware &hardware, const FamilyCall &call);

/// The table: its head, and a call with a line for each launch.
std::string predictionHead(std::string_view hardware);
std::string predictionText(const Json &row);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_BENCHPREDICTION_H
