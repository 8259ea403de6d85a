//===- Driver.h - The CUDA driver, loaded at run time ---------------------===//
//
// Kiln neither includes cuda.h nor links libcuda: this is its own declaration of the few driver functions it calls,
// with the values that the driver API documents.  `Driver::open` loads the library, finds the functions and initialises
// the driver; a Driver is immutable afterwards and may be used from any thread.  The library stays loaded until the
// process ends (drivers run threads of their own).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_CUDA_DRIVER_H
#define KILN_RUNTIME_DEVICE_CUDA_DRIVER_H

#include "support/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace kiln::cuda {

using ErrorCode = int;    ///< CUresult
using DeviceHandle = int; ///< CUdevice
using ContextHandle = struct ContextTag *;
using StreamHandle = struct StreamTag *;
using EventHandle = struct EventTag *;
using ModuleHandle = struct ModuleTag *;
using FunctionHandle = struct FunctionTag *;

inline constexpr ErrorCode errorOutOfMemory = 2, errorNoDevice = 100, errorInvalidImage = 200,
                           errorNoBinaryForGpu = 209, errorInvalidPtx = 218, errorJitCompilerNotFound = 221,
                           errorUnsupportedPtxVersion = 222, errorInvalidSource = 300, errorNotFound = 500,
                           errorNotReady = 600, errorIllegalAddress = 700, errorLaunchOutOfResources = 701,
                           errorLaunchTimeout = 702, errorAssert = 710, errorHardwareStack = 714,
                           errorLaunchFailed = 719, errorCaptureImplicit = 906;

/// CUdevice_attribute.
namespace attribute {
inline constexpr int maxThreadsPerBlock = 1, maxBlockX = 2, maxBlockY = 3, maxBlockZ = 4, maxGridX = 5, maxGridY = 6,
                     maxGridZ = 7, multiprocessors = 16, l2Bytes = 38, major = 75, minor = 76, sharedPerBlockOptIn = 97;
} // namespace attribute

/// CUfunction_attribute.
namespace function_attribute {
inline constexpr int maxThreadsPerBlock = 0, sharedBytes = 1, localBytes = 3, registers = 4, maxDynamicSharedBytes = 8,
                     clusterSizeMustBeSet = 10, requiredClusterX = 11, requiredClusterY = 12, requiredClusterZ = 13,
                     nonPortableClusterAllowed = 14;
} // namespace function_attribute

/// CUjit_option.
namespace jit_option {
inline constexpr int errorLog = 5, errorLogBytes = 6;
} // namespace jit_option

/// CUlaunchAttribute: 8 bytes of identifier and padding, then a value of 64 bytes.
struct LaunchAttribute {
  static constexpr unsigned cooperative = 2, clusterDimension = 4;
  unsigned id = 0;
  unsigned padding = 0;
  alignas(8) unsigned value[16] = {};
};
static_assert(sizeof(LaunchAttribute) == 72);

/// CUlaunchConfig.
struct LaunchDescription {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  StreamHandle stream;
  LaunchAttribute *attributes;
  unsigned attributeCount;
};
static_assert(sizeof(LaunchDescription) == 56);

/// Entries of cuLaunchKernel's `extra` array.
inline void *const launchParamEnd = nullptr;
inline void *const launchParamBufferPointer = reinterpret_cast<void *>(1);
inline void *const launchParamBufferSize = reinterpret_cast<void *>(2);

class Driver {
public:
  static constexpr const char *defaultLibrary = "libcuda.so.1";

  /// A failure says whether the library, a function of it, or the driver's start was missing.
  static Result<std::shared_ptr<const Driver>> open(const std::string &library = defaultLibrary);

  int version = 0; ///< 13000 for CUDA 13.0
  std::string versionText() const;

  /// "CUDA_ERROR_INVALID_VALUE (invalid argument)".
  std::string errorText(ErrorCode error) const;

  /// Ok for 0; else a Status "`what`: NAME (text)" whose code and remedy follow from the error.
  Status check(ErrorCode error, const std::string &what) const;

// NOLINTBEGIN(bugprone-macro-parentheses): they declare members
#define KILN_CUDA_FUNCTION(name, symbol, parameters) ErrorCode(*name) parameters = nullptr;
#define KILN_CUDA_OPTIONAL(name, symbol, parameters) ErrorCode(*name) parameters = nullptr;
// NOLINTEND(bugprone-macro-parentheses)
#include "runtime/device/cuda/DriverFunctions.def"
};

/// True for errors after which the context refuses all further work: a kernel faulted.
bool isSticky(ErrorCode error);

} // namespace kiln::cuda

#endif // KILN_RUNTIME_DEVICE_CUDA_DRIVER_H
