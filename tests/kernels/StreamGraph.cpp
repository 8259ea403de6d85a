#include "tests/kernels/StreamGraph.h"

#include <dlfcn.h>

namespace kiln::test {
namespace {

/// Calls a function of the driver, whose result is 0 if it did what it should.
template <typename... As> Status driverCall(void *driver, const char *name, As... arguments) {
  const auto function = reinterpret_cast<int (*)(As...)>(::dlsym(driver, name));
  if (!function)
    return Status(StatusCode::Unsupported, std::string("the driver has no ") + name);
  const int result = function(arguments...);
  return result ? Status(StatusCode::DeviceError, std::string(name) + " failed with " + std::to_string(result))
                : Status();
}

} // namespace

StreamGraph::StreamGraph(Device &device, Stream &stream, std::function<Status(Stream &)> toRecord)
    : stream(stream), calls(std::move(toRecord)) {
  if (device.info().kind == DeviceKind::Emulator)
    return;
  driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) {
    verdict = Status(StatusCode::Unsupported, "no libcuda.so.1");
    return;
  }
  constexpr int ofThisThread = 1; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  verdict = driverCall(driver, "cuCtxSetCurrent", device.native());
  if (verdict.ok())
    verdict = driverCall(driver, "cuStreamBeginCapture_v2", stream.native(), ofThisThread);
  if (!verdict.ok())
    return;
  verdict = calls(stream);
  const Status ended = driverCall(driver, "cuStreamEndCapture", stream.native(), &graph);
  if (verdict.ok())
    verdict = ended;
  if (verdict.ok())
    verdict = driverCall(driver, "cuGraphInstantiateWithFlags", &executable, graph, 0ull);
}

StreamGraph::~StreamGraph() {
  if (executable)
    (void)driverCall(driver, "cuGraphExecDestroy", executable);
  if (graph)
    (void)driverCall(driver, "cuGraphDestroy", graph);
  if (driver)
    ::dlclose(driver);
}

Status StreamGraph::replay() {
  KILN_TRY(driver ? driverCall(driver, "cuGraphLaunch", executable, stream.native()) : calls(stream));
  return stream.synchronize();
}

} // namespace kiln::test
