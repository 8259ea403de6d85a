//===- OfflineDevice.h - A GPU that is not there -----------------------------===//
//
// For compiling: calls are planned, and their kernels compiled, assembled and cached under the keys that a GPU of the
// target has, on machines without one and without a context on machines with one.  Memory is addresses alone, of the
// alignment that a GPU's has; whatever would read it, write it or run is refused by name.
//
// It says of itself that it is a GPU (DeviceKind::Cuda), without a driver.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_OFFLINE_OFFLINEDEVICE_H
#define KILN_RUNTIME_DEVICE_OFFLINE_OFFLINEDEVICE_H

#include "kiln/Device.h"

namespace kiln {

/// "offline:sm_90a", or "offline:sm_90a:132" with a number of multiprocessors, by which operations choose.
Result<std::unique_ptr<Device>> openOffline(std::string_view name);

} // namespace kiln

#endif // KILN_RUNTIME_DEVICE_OFFLINE_OFFLINEDEVICE_H
