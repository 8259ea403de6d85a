//===- DoorDevices.h - The devices that the door's callers use ----------------===//
//
// One device and one Jit for each GPU, and one emulator for tensors in the host's memory, with the knobs of the
// environment.  Made at the first call that needs it and never destroyed: threads may call while the process ends.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DOOR_DOORDEVICES_H
#define KILN_RUNTIME_DOOR_DOORDEVICES_H

#include "kernels/support/Callable.h"
#include "kiln/Jit.h"

#include <mutex>

namespace kiln::door {

/// DLPack's device: its type and number.
struct Place {
  std::int32_t type = 0, number = 0;
  bool operator==(const Place &) const = default;
  bool isHost() const { return type == 1 || type == 3; } ///< 3: pinned
  bool isGpu() const { return type == 2; }
  std::string toString() const;
};

class DoorDevice {
public:
  /// That of tensors in this place.
  static Result<DoorDevice *> of(Place place);
  /// Whether a call has made one.
  static bool anyOpen();

  Device &device() const { return *opened; }
  Jit &jit() const { return *service; }
  /// The operation, bound at the first call.
  const kernels::Callable::Planner &plannerOf(const kernels::Callable &callable);

  /// A stream that somebody else made; kept from the first call that names it.  nullptr: the default one.
  Result<Stream *> streamOf(void *native);

  /// Makes the device of a place, for tests: one over another device than `of` would open.
  static void lend(Place place, std::unique_ptr<Device> device, std::unique_ptr<Jit> jit);

  /// Of a call on the emulator: launches share the device's memory and its findings.
  std::mutex calls;
  /// The end of such a call: what was found is the answer, whatever the launch says of it.
  Status finish(Status launched);

private:
  Status open(Place place);
  std::unique_ptr<Device> opened;
  std::unique_ptr<Jit> service;
  std::mutex mutex; ///< of `planners` and `streams`
  std::map<void *, std::unique_ptr<Stream>> streams;
  std::map<const kernels::Callable *, kernels::Callable::Planner> planners;
};

/// What this machine offers, and whether a device is in use: {"devices": [..], "notes": [..], "open": ..}.
std::string describeDevices();

} // namespace kiln::door

#endif // KILN_RUNTIME_DOOR_DOORDEVICES_H
