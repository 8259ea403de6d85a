//===- EmulatorDevice.h - "emulator:TARGET" -------------------------------===//
//
// A Device that runs PTX on the CPU.  A launch runs to its end before `launch` returns; launches and copies of one
// device exclude each other, so it may be used from several threads.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_EMULATORDEVICE_H
#define KILN_RUNTIME_DEVICE_EMULATOR_EMULATORDEVICE_H

#include "kiln/Device.h"

#include <memory>

namespace kiln {

/// `target` must outlive the device.  Fails if the options name a CPU level that this program or CPU lacks.
Result<std::unique_ptr<Device>> createEmulatorDevice(const Target &target, const EmulatorOptions &options = {});

/// What `createEmulatorDevice` would make, without making it.
DeviceInfo emulatorInfo(const Target &target, const EmulatorOptions &options = {});

/// Bytes that the race checks of an emulator device held in its last launch.
struct RaceMemory {
  std::size_t shared = 0; ///< for the shared memory of one block, at most
  std::size_t global = 0; ///< for global memory, not counting 4 for every 4 bytes that were touched
};
RaceMemory raceMemory(const Device &emulator);

} // namespace kiln

#endif // KILN_RUNTIME_DEVICE_EMULATOR_EMULATORDEVICE_H
