#include "runtime/door/DoorDevices.h"

#include <nlohmann/json.hpp>

namespace kiln::door {
namespace {

struct Known {
  std::mutex mutex;
  std::map<std::int32_t, DoorDevice *> devices; ///< by number; the emulator is -1
};

Known &known() {
  static Known *const one = new Known;
  return *one;
}

} // namespace

std::string Place::toString() const {
  return isHost()  ? "the host's memory"
         : isGpu() ? "cuda:" + std::to_string(number)
                   : "device " + std::to_string(number) + " of DLPack's type " + std::to_string(type);
}

Status DoorDevice::open(Place place) {
  KILN_ASSIGN(JitOptions options, JitOptions::fromEnvironment());
  KILN_ASSIGN(opened, openDevice(place.isGpu() ? place.toString() : "emulator", emulatorOptions(options.knobs)));
  KILN_ASSIGN(service, Jit::create(*opened, std::move(options)));
  return {};
}

Result<DoorDevice *> DoorDevice::of(Place place) {
  if (!place.isHost() && !place.isGpu())
    return Status(StatusCode::Unsupported, "tensors lie on " + place.toString(),
                  "give tensors on a CUDA GPU, or in the host's memory");
  Known &all = known();
  const std::lock_guard lock(all.mutex);
  DoorDevice *&found = all.devices[place.isHost() ? -1 : place.number];
  if (!found) {
    auto made = std::make_unique<DoorDevice>();
    KILN_TRY(made->open(place));
    found = made.release();
  }
  return found;
}

bool DoorDevice::anyOpen() {
  Known &all = known();
  const std::lock_guard lock(all.mutex);
  for (const auto &[number, device] : all.devices)
    if (device)
      return true;
  return false;
}

const kernels::Callable::Planner &DoorDevice::plannerOf(const kernels::Callable &callable) {
  const std::lock_guard lock(mutex);
  kernels::Callable::Planner &planner = planners[&callable];
  if (!planner)
    planner = callable.bind(*service);
  return planner;
}

Status DoorDevice::finish(Status launched) {
  const std::vector<Finding> findings = opened->takeFindings();
  if (!findings.empty())
    return {StatusCode::Findings, findings.front().toString()};
  KILN_TRY(std::move(launched));
  return opened->defaultStream().synchronize();
}

Result<Stream *> DoorDevice::streamOf(void *native) {
  if (!native)
    return &opened->defaultStream();
  const std::lock_guard lock(mutex);
  if (const auto found = streams.find(native); found != streams.end())
    return found->second.get();
  KILN_ASSIGN(std::unique_ptr<Stream> stream, opened->streamOf(native));
  return (streams[native] = std::move(stream)).get();
}

void DoorDevice::lend(Place place, std::unique_ptr<Device> device, std::unique_ptr<Jit> jit) {
  auto *const made = new DoorDevice;
  made->opened = std::move(device), made->service = std::move(jit);
  Known &all = known();
  const std::lock_guard lock(all.mutex);
  all.devices[place.number] = made;
}

std::string describeDevices() {
  using nlohmann::json;
  std::vector<std::string> notes;
  json devices = json::array();
  for (const DeviceInfo &d : listDevices(notes))
    devices.push_back({{"name", d.name},
                       {"description", d.description},
                       {"multiprocessors", d.multiprocessors},
                       {"memory_bytes", d.memoryBytes},
                       {"driver", d.driver}});
  return json{{"devices", devices}, {"notes", notes}, {"open", DoorDevice::anyOpen()}}.dump();
}

} // namespace kiln::door
