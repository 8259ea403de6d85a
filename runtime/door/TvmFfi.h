//===- TvmFfi.h - What the door uses of DLPack and of tvm-ffi's calling convention ---===//
//
// A tensor is DLPack's DLTensor; a function is `int f(void *self, const FfiValue *arguments, int32_t count, FfiValue
// *result)`, 0 for success.  Both layouts are fixed by their projects' C ABI (DLPack 1.x, apache-tvm-ffi 0.1), and are
// declared here under names of our own, so that nothing of theirs is needed to build.
//
// Invariant: the functions of tvm-ffi are weak.  The library loads without tvm-ffi; it is only called by it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DOOR_TVMFFI_H
#define KILN_RUNTIME_DOOR_TVMFFI_H

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kiln::door {

/// DLPack's DLTensor.
struct FfiTensor {
  void *data;
  std::int32_t deviceType, device; ///< 1: the host, 2: CUDA
  std::int32_t rank;
  std::uint8_t code, bits; ///< the element's type
  std::uint16_t lanes;
  const std::int64_t *shape, *strides; ///< strides count elements; none: dense
  std::uint64_t byteOffset;
};
static_assert(sizeof(FfiTensor) == 48 && offsetof(FfiTensor, shape) == 24);

/// tvm-ffi's TVMFFIAny.
struct FfiValue {
  std::int32_t type;
  std::uint32_t smallLength; ///< of a text within the value
  union {
    std::int64_t whole;
    double number;
    const char *text;
    char small[8];
    const void *object;
  };
};
static_assert(sizeof(FfiValue) == 16);

struct FfiBytes {
  const char *data;
  std::size_t size;
};

/// Of FfiValue::type.
enum FfiType : std::int32_t {
  ffiNone = 0,
  ffiWhole = 1,
  ffiFlag = 2,
  ffiNumber = 3,
  ffiTensorPointer = 7, ///< an FfiTensor
  ffiText = 8,          ///< ends with a zero
  ffiSmallText = 11,
  ffiTextObject = 65, ///< an FfiBytes after the object's header
  ffiFunctionObject = 68,
  ffiTensorObject = 70 ///< an FfiTensor after the object's header
};
constexpr std::size_t ffiHeaderBytes = 24; ///< of an object

extern "C" {
__attribute__((weak)) void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
__attribute__((weak)) void *TVMFFIEnvGetStream(std::int32_t deviceType, std::int32_t device);
/// `self` is the function's first argument; `remove` is called when nobody has the function any more.
__attribute__((weak)) int TVMFFIFunctionCreate(void *self,
                                               int (*call)(void *self, const FfiValue *arguments, std::int32_t count,
                                                           FfiValue *result),
                                               void (*remove)(void *self), const void **function);
__attribute__((weak)) int TVMFFIStringFromByteArray(const FfiBytes *bytes, FfiValue *result);
}

/// The stream that tvm-ffi says, which is torch's current one; nullptr: none.
inline void *streamSaid(std::int32_t deviceType, std::int32_t device) {
  return TVMFFIEnvGetStream ? TVMFFIEnvGetStream(deviceType, device) : nullptr;
}

/// The tensor that the value is; nullptr: it is none.
inline const FfiTensor *tensorOf(const FfiValue &value) {
  if (value.type == ffiTensorPointer)
    return static_cast<const FfiTensor *>(value.object);
  if (value.type == ffiTensorObject)
    return reinterpret_cast<const FfiTensor *>(static_cast<const char *>(value.object) + ffiHeaderBytes);
  return nullptr;
}

/// Whether the value is a text, and which; it lives as long as the value.
inline bool textOf(const FfiValue &value, std::string_view &out) {
  if (value.type == ffiText)
    out = value.text;
  else if (value.type == ffiSmallText)
    out = {value.small, value.smallLength};
  else if (value.type == ffiTextObject) {
    const auto *bytes = reinterpret_cast<const FfiBytes *>(static_cast<const char *>(value.object) + ffiHeaderBytes);
    out = {bytes->data, bytes->size};
  } else
    return false;
  return true;
}

} // namespace kiln::door

#endif // KILN_RUNTIME_DOOR_TVMFFI_H
