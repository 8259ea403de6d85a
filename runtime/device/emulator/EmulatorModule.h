//===- EmulatorModule.h - The emulated GPU, inside ------------------------===//
//
// Private to the emulator: the device with its memory, rows and workers, and the modules loaded on it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_EMULATORMODULE_H
#define KILN_RUNTIME_DEVICE_EMULATOR_EMULATORMODULE_H

#include "kiln/Device.h"
#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/decode/Decoder.h"
#include "runtime/device/emulator/EmulatorDevice.h"
#include "runtime/device/emulator/execute/WorkerPool.h"
#include "runtime/device/emulator/memory/Memory.h"

#include <atomic>
#include <mutex>

namespace kiln::emulator {

class EmulatorDevice final : public Device {
public:
  EmulatorDevice(const Target &target, const EmulatorOptions &options, const InstructionTable &table,
                 std::unique_ptr<GlobalMemory> memory);

  const DeviceInfo &info() const override { return about; }
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes, std::string_view label) override;
  Result<std::unique_ptr<Stream>> createStream() override;
  Result<std::unique_ptr<Stream>> streamOf(void *native) override;
  Result<std::unique_ptr<Event>> createEvent() override;
  /// Whether a launch may be given the stream: not if another emulator made it, or a GPU.
  bool takes(const Stream &stream) const;
  Stream &defaultStream() override { return *standardStream; }
  Result<std::unique_ptr<Module>> loadPtx(std::string_view text, std::string_view fileName) override;
  Result<std::unique_ptr<Module>> loadCubin(std::span<const std::byte> image) override;
  Result<TensorMap> encodeTensorMap(const TensorMapRecipe &recipe) override;
  std::vector<Finding> takeFindings() override;
  LaunchStatistics takeStatistics() override;
  Status record(const Recording &what) override;
  std::vector<LaunchCounters> takeCounters() override;
  std::vector<Timeline> takeTimelines() override;

  RaceMemory raceMemory() const { return {races.mostShared, races.bytes()}; }
  /// A launch whose limits have been checked.
  Status run(const Program &program, const LaunchConfig &config, std::span<const std::byte> arguments);

  const Target &target;
  const EmulatorOptions options;
  const InstructionTable &table;
  const RowIndex rows;
  std::unique_ptr<GlobalMemory> memory;
  std::recursive_mutex mutex; ///< memory, launches, findings

private:
  DeviceInfo about;
  WorkerPool pool;
  std::unique_ptr<Stream> standardStream;
  std::vector<Finding> findings;
  LaunchStatistics statistics;
  Recording recording;
  std::vector<LaunchCounters> counters;
  std::vector<Timeline> timelines;
  std::uint64_t launches = 0;
  LaunchRaces races;
};

/// Parses, places variables, decodes every entry.
Result<std::unique_ptr<Module>> loadModule(EmulatorDevice &device, std::string_view text, std::string_view fileName);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_EMULATORMODULE_H
