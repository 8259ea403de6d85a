#include "tests/runtime/FakeDriver.h"

#include <cstdlib>
#include <cstring>

using kiln::test::FakeCuda;
using kiln::test::FakeLaunch;

static FakeCuda *state() {
  static FakeCuda the;
  return &the;
}
extern "C" FakeCuda *fakeCuda() {
  return state();
}

/// The error injected for `name`, after noting the call.
static int enter(const char *name) {
  state()->calls.emplace_back(name);
  auto found = state()->failures.find(name);
  return found == state()->failures.end() ? 0 : found->second;
}
#define ENTER(name)                                                                                                    \
  if (int injected = enter(name))                                                                                      \
  return injected

static thread_local void *current = nullptr;
static char contextObject, foreignContext, functionObject;
static int needContext() {
  return current == &contextObject || current == &foreignContext ? 0 : 201;
}
/// A context that somebody else made.
extern "C" void *fakeForeignContext() {
  return &foreignContext;
}
static void *makeObject() {
  ++state()->liveObjects;
  return std::malloc(1);
}
static int dropObject(void *object) {
  --state()->liveObjects;
  std::free(object);
  return 0;
}

extern "C" {

int cuInit(unsigned) {
  ENTER("cuInit");
  return 0;
}
int cuDriverGetVersion(int *version) {
  ENTER("cuDriverGetVersion");
  *version = 12090;
  return 0;
}
int cuGetErrorName(int error, const char **text) {
  switch (error) {
  case 1:
    *text = "CUDA_ERROR_INVALID_VALUE";
    return 0;
  case 2:
    *text = "CUDA_ERROR_OUT_OF_MEMORY";
    return 0;
  case 100:
    *text = "CUDA_ERROR_NO_DEVICE";
    return 0;
  case 218:
    *text = "CUDA_ERROR_INVALID_PTX";
    return 0;
  case 222:
    *text = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION";
    return 0;
  case 500:
    *text = "CUDA_ERROR_NOT_FOUND";
    return 0;
  case 700:
    *text = "CUDA_ERROR_ILLEGAL_ADDRESS";
    return 0;
  default:
    *text = nullptr;
    return 1;
  }
}
int cuGetErrorString(int, const char **text) {
  *text = "as the driver explains it";
  return 0;
}
int cuDeviceGetCount(int *count) {
  ENTER("cuDeviceGetCount");
  *count = state()->devices;
  return 0;
}
int cuDeviceGet(int *device, int ordinal) {
  ENTER("cuDeviceGet");
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char *name, int bytes, int) {
  ENTER("cuDeviceGetName");
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(bytes));
  return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int) {
  ENTER("cuDeviceGetAttribute");
  switch (attribute) {
  case 1:
  case 2:
  case 3:
    *value = 1024;
    return 0;
  case 4:
    *value = 64;
    return 0;
  case 5:
    *value = 0x7fffffff;
    return 0;
  case 6:
  case 7:
    *value = 65535;
    return 0;
  case 16:
    *value = 132;
    return 0;
  case 38:
    *value = state()->l2Bytes;
    return 0;
  case 75:
    *value = state()->major;
    return 0;
  case 76:
    *value = state()->minor;
    return 0;
  case 97:
    *value = 232448;
    return 0;
  default:
    return 1;
  }
}
int cuDeviceGetPCIBusId(char *text, int bytes, int) {
  ENTER("cuDeviceGetPCIBusId");
  std::strncpy(text, "0000:19:00.0", static_cast<std::size_t>(bytes));
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t *bytes, int) {
  ENTER("cuDeviceTotalMem_v2");
  *bytes = 1ull << 37;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int) {
  ENTER("cuDevicePrimaryCtxRetain");
  ++state()->liveObjects;
  *context = &contextObject;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  ENTER("cuDevicePrimaryCtxRelease_v2");
  --state()->liveObjects;
  return 0;
}
int cuCtxGetCurrent(void **context) {
  ENTER("cuCtxGetCurrent");
  *context = current;
  return 0;
}
int cuCtxSetCurrent(void *context) {
  ENTER("cuCtxSetCurrent");
  ++state()->contextSwitches;
  current = context;
  return 0;
}
int cuCtxGetDevice(int *device) {
  ENTER("cuCtxGetDevice");
  *device = current == &foreignContext ? state()->devices - 1 : 0;
  return needContext();
}
int cuStreamGetCtx(void *, void **context) {
  ENTER("cuStreamGetCtx");
  *context = state()->streamContext ? state()->streamContext : current;
  return 0;
}
int cuMemHostAlloc(void **memory, std::size_t bytes, unsigned) {
  ENTER("cuMemHostAlloc");
  if (int e = needContext())
    return e;
  if (bytes > 1ull << 32)
    return 2;
  *memory = std::malloc(bytes);
  ++state()->liveObjects;
  return 0;
}
int cuMemFreeHost(void *memory) {
  ENTER("cuMemFreeHost");
  return dropObject(memory);
}
int cuMemAlloc_v2(std::uint64_t *address, std::size_t bytes) {
  ENTER("cuMemAlloc_v2");
  if (int e = needContext())
    return e;
  if (bytes > 1ull << 32)
    return 2;
  *address = reinterpret_cast<std::uint64_t>(std::malloc(bytes));
  state()->allocations[*address] = bytes;
  return 0;
}
int cuMemFree_v2(std::uint64_t address) {
  ENTER("cuMemFree_v2");
  if (!state()->allocations.erase(address))
    return 1;
  std::free(reinterpret_cast<void *>(address));
  return 0;
}
int cuMemcpyHtoD_v2(std::uint64_t to, const void *from, std::size_t bytes) {
  ENTER("cuMemcpyHtoD_v2");
  if (int e = needContext())
    return e;
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return 0;
}
int cuMemcpyDtoH_v2(void *to, std::uint64_t from, std::size_t bytes) {
  ENTER("cuMemcpyDtoH_v2");
  if (int e = needContext())
    return e;
  std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return 0;
}
/// The stream of the last asynchronous copy is kept.
int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void *from, std::size_t bytes, void *stream) {
  ENTER("cuMemcpyHtoDAsync_v2");
  state()->copyStream = stream;
  if (int e = needContext())
    return e;
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, std::uint64_t from, std::size_t bytes, void *stream) {
  ENTER("cuMemcpyDtoHAsync_v2");
  state()->copyStream = stream;
  if (int e = needContext())
    return e;
  std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return 0;
}
int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes, void *) {
  ENTER("cuMemcpyDtoDAsync_v2");
  if (int e = needContext())
    return e;
  std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
  return 0;
}
int cuMemsetD8_v2(std::uint64_t to, unsigned char value, std::size_t bytes) {
  ENTER("cuMemsetD8_v2");
  if (int e = needContext())
    return e;
  std::memset(reinterpret_cast<void *>(to), value, bytes);
  return 0;
}
int cuStreamCreate(void **stream, unsigned) {
  ENTER("cuStreamCreate");
  *stream = makeObject();
  return 0;
}
int cuStreamDestroy_v2(void *stream) {
  ENTER("cuStreamDestroy_v2");
  return dropObject(stream);
}
int cuStreamSynchronize(void *) {
  ENTER("cuStreamSynchronize");
  return needContext();
}
int cuStreamIsCapturing(void *, int *status) {
  ENTER("cuStreamIsCapturing");
  *status = state()->captureStatus;
  return needContext();
}
int cuThreadExchangeStreamCaptureMode(int *mode) {
  ENTER("cuThreadExchangeStreamCaptureMode");
  std::swap(*mode, state()->captureMode);
  return 0;
}
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const std::uint64_t *dims,
                           const std::uint64_t *strides, const unsigned *box, const unsigned *elementStrides,
                           int interleave, int swizzle, int promotion, int fill) {
  ENTER("cuTensorMapEncodeTiled");
  std::uint64_t words[16] = {reinterpret_cast<std::uint64_t>(address)};
  words[1] = static_cast<unsigned>(type | interleave << 8 | swizzle << 16 | promotion << 20 | fill << 24);
  words[2] = rank;
  for (unsigned i = 0; i < rank && i < 3; ++i) {
    words[3 + 3 * i] = dims[i];
    words[4 + 3 * i] = i + 1 < rank ? strides[i] : 0;
    words[5 + 3 * i] = std::uint64_t(elementStrides[i]) << 32 | box[i];
  }
  std::memcpy(map, words, sizeof words);
  return reinterpret_cast<std::uint64_t>(map) % 64 ? 1 : needContext();
}
int cuEventCreate(void **event, unsigned) {
  ENTER("cuEventCreate");
  *event = makeObject();
  return 0;
}
int cuEventDestroy_v2(void *event) {
  ENTER("cuEventDestroy_v2");
  return dropObject(event);
}
int cuEventRecord(void *, void *) {
  ENTER("cuEventRecord");
  return needContext();
}
int cuEventSynchronize(void *) {
  ENTER("cuEventSynchronize");
  return needContext();
}
int cuEventElapsedTime(float *milliseconds, void *, void *) {
  ENTER("cuEventElapsedTime");
  *milliseconds = 1.5f;
  return 0;
}
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
  char *log = nullptr;
  std::size_t logBytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == 5)
      log = static_cast<char *>(values[i]);
    if (options[i] == 6)
      logBytes = reinterpret_cast<std::size_t>(values[i]);
  }
  if (log)
    std::strncpy(log, state()->ptxLog.c_str(), logBytes);
  state()->modeAtLoad = state()->captureMode;
  ENTER("cuModuleLoadDataEx");
  if (int e = needContext())
    return e;
  if (static_cast<const char *>(image)[0] != 0x7f)
    state()->image = static_cast<const char *>(image);
  *module = makeObject();
  return 0;
}
int cuModuleUnload(void *module) {
  ENTER("cuModuleUnload");
  return dropObject(module);
}
int cuModuleGetFunction(void **function, void *, const char *name) {
  ENTER("cuModuleGetFunction");
  if (std::strcmp(name, "add") != 0)
    return 500;
  *function = &functionObject;
  return 0;
}
int cuModuleGetFunctionCount(unsigned *count, void *) {
  ENTER("cuModuleGetFunctionCount");
  *count = 1;
  return 0;
}
int cuModuleEnumerateFunctions(void **functions, unsigned, void *) {
  ENTER("cuModuleEnumerateFunctions");
  functions[0] = &functionObject;
  return 0;
}
int cuFuncGetName(const char **name, void *) {
  ENTER("cuFuncGetName");
  *name = "add";
  return 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *) {
  ENTER("cuFuncGetAttribute");
  *value = state()->functionAttributes[attribute];
  return 0;
}
int cuFuncSetAttribute(void *, int attribute, int value) {
  ENTER("cuFuncSetAttribute");
  state()->attributesSet.emplace_back(attribute, value);
  return 0;
}
int cuFuncGetParamInfo(void *, std::size_t index, std::size_t *offset, std::size_t *bytes) {
  ENTER("cuFuncGetParamInfo");
  if (index >= state()->parameters.size())
    return 1;
  *offset = state()->parameters[index].offset;
  *bytes = state()->parameters[index].bytes;
  return 0;
}

static void record(FakeLaunch launch, void **extra) {
  // extra: (1, buffer), (2, address of its size), end.
  unsigned char *buffer = nullptr;
  std::size_t bytes = 0;
  for (void **e = extra; e && *e; e += 2) {
    if (*e == reinterpret_cast<void *>(1))
      buffer = static_cast<unsigned char *>(e[1]);
    if (*e == reinterpret_cast<void *>(2))
      bytes = *static_cast<std::size_t *>(e[1]);
  }
  launch.arguments.assign(buffer, buffer + bytes);
  state()->launches.push_back(std::move(launch));
}

int cuLaunchKernel(void *, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **, void **extra) {
  ENTER("cuLaunchKernel");
  if (int e = needContext())
    return e;
  record({{gx, gy, gz}, {bx, by, bz}, {0, 0, 0}, shared, stream, {}}, extra);
  return 0;
}

struct FakeAttribute {
  unsigned id, padding, value[16];
};
struct FakeConfig {
  unsigned grid[3], block[3], shared;
  void *stream;
  FakeAttribute *attributes;
  unsigned count;
};
int cuLaunchKernelEx(const FakeConfig *c, void *, void **, void **extra) {
  ENTER("cuLaunchKernelEx");
  if (int e = needContext())
    return e;
  FakeLaunch launch{{c->grid[0], c->grid[1], c->grid[2]},
                    {c->block[0], c->block[1], c->block[2]},
                    {0, 0, 0},
                    c->shared,
                    c->stream,
                    {},
                    false};
  for (unsigned i = 0; i < c->count; ++i)
    if (c->attributes[i].id == 2)
      launch.cooperative = c->attributes[i].value[0] != 0;
    else if (c->attributes[i].id == 4)
      std::memcpy(launch.cluster, c->attributes[i].value, sizeof launch.cluster);
  record(std::move(launch), extra);
  return 0;
}

} // extern "C"
