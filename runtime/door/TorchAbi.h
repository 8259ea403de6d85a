//===- TorchAbi.h - What the door uses of torch's stable C ABI ----------------===//
//
// Functions of libtorch that are plain C and keep their meaning from one version of torch to the next
// (torch/csrc/stable/c/shim.h, torch/csrc/inductor/aoti_torch/c/shim.h; torch 2.10 and later).  They are found in the
// torch of the process, if it has one: nothing of torch is needed to build, and nothing is loaded here.
//
// Each returns 0 for success, but for those that give nothing back.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DOOR_TORCHABI_H
#define KILN_RUNTIME_DOOR_TORCHABI_H

#include <cstddef>
#include <cstdint>

namespace kiln::door {

/// A value on the stack of a call.  A tensor is a TorchTensor that is the callee's; a flag, a whole number or a number
/// lies in the value; a text is a TorchText that is the callee's.  One that may be missing is 0, or points to such a
/// value on the heap, which is the callee's.
using TorchValue = std::uint64_t;
using TorchTensor = struct TorchTensorOpaque *;
using TorchText = struct TorchTextOpaque *;
using TorchLibrary = struct TorchLibraryOpaque *;
using TorchKernel = void (*)(TorchValue *stack, std::uint64_t arguments, std::uint64_t results);

/// The version whose meaning of these functions is wanted.
constexpr std::uint64_t torchVersion = (std::uint64_t(2) << 56) | (std::uint64_t(10) << 48);

#define KILN_TORCH_FUNCTIONS(F)                                                                                        \
  F(aoti_torch_library_init_impl, int,                                                                                 \
    (const char *space, const char *key, const char *file, std::uint32_t line, TorchLibrary *library))                 \
  F(torch_library_impl, int, (TorchLibrary library, const char *name, TorchKernel kernel, std::uint64_t version))      \
  F(aoti_torch_delete_tensor_object, int, (TorchTensor tensor))                                                        \
  F(aoti_torch_get_data_ptr, int, (TorchTensor tensor, void **data))                                                   \
  F(aoti_torch_get_dim, int, (TorchTensor tensor, std::int64_t *rank))                                                 \
  F(aoti_torch_get_sizes, int, (TorchTensor tensor, std::int64_t **sizes))                                             \
  F(aoti_torch_get_strides, int, (TorchTensor tensor, std::int64_t **strides))                                         \
  F(aoti_torch_get_dtype, int, (TorchTensor tensor, std::int32_t *dtype))                                              \
  F(aoti_torch_get_device_type, int, (TorchTensor tensor, std::int32_t *type))                                         \
  F(aoti_torch_get_device_index, int, (TorchTensor tensor, std::int32_t *index))                                       \
  F(aoti_torch_empty_strided, int,                                                                                     \
    (std::int64_t rank, const std::int64_t *sizes, const std::int64_t *strides, std::int32_t dtype,                    \
     std::int32_t deviceType, std::int32_t device, TorchTensor *tensor))                                               \
  F(aoti_torch_copy_, int, (TorchTensor to, TorchTensor from, std::int32_t nonBlocking))                               \
  F(aoti_torch_zero_, int, (TorchTensor tensor))                                                                       \
  F(torch_string_c_str, int, (TorchText text, const char **data))                                                      \
  F(torch_delete_string, int, (TorchText text))                                                                        \
  F(aoti_torch_device_type_cpu, std::int32_t, ())                                                                      \
  F(aoti_torch_device_type_cuda, std::int32_t, ())                                                                     \
  F(aoti_torch_warn, void, (const char *function, const char *file, std::uint32_t line, const char *message))          \
  F(aoti_torch_check, void,                                                                                            \
    (bool isRight, const char *function, const char *file, std::uint32_t line, const char *message))

/// Elements' types: torch's function, DLPack's code and bits.
#define KILN_TORCH_DTYPES(F)                                                                                           \
  F(bfloat16, 4, 16)                                                                                                   \
  F(float16, 2, 16)                                                                                                    \
  F(float32, 2, 32)                                                                                                    \
  F(float64, 2, 64)                                                                                                    \
  F(float8_e4m3fn, 10, 8)                                                                                              \
  F(float8_e5m2, 12, 8)                                                                                                \
  F(int8, 0, 8)                                                                                                        \
  F(int16, 0, 16)                                                                                                      \
  F(int32, 0, 32)                                                                                                      \
  F(int64, 0, 64)                                                                                                      \
  F(uint8, 1, 8)                                                                                                       \
  F(uint16, 1, 16)                                                                                                     \
  F(uint32, 1, 32)                                                                                                     \
  F(uint64, 1, 64)                                                                                                     \
  F(bool, 6, 8)                                                                                                        \
  F(complex32, 5, 32)                                                                                                  \
  F(complex64, 5, 64)                                                                                                  \
  F(complex128, 5, 128)

struct TorchAbi {
#define KILN_TORCH_MEMBER(name, type, arguments) type(*name) arguments = nullptr;
  KILN_TORCH_FUNCTIONS(KILN_TORCH_MEMBER)
#undef KILN_TORCH_MEMBER
  /// Of a GPU's current stream; nullptr: this torch has no CUDA.
  int (*aoti_torch_get_current_cuda_stream)(std::int32_t device, void **stream) = nullptr;

  /// What the thread's last failure was; nullptr: torch is older than 2.13.
  const char *(*torch_exception_get_what_without_backtrace)() = nullptr;

  std::int32_t cpu = 0, cuda = 1; ///< devices' types

  /// Types as torch and DLPack number them.
  struct DType {
    std::int32_t torch = -1;
    std::uint8_t code = 0, bits = 0;
  };
#define KILN_TORCH_COUNT(name, code, bits) +1
  DType dtypes[0 KILN_TORCH_DTYPES(KILN_TORCH_COUNT)];
#undef KILN_TORCH_COUNT
  const DType *dtypeOf(std::int32_t torch) const;
  const DType *dtypeOf(std::uint8_t code, std::uint8_t bits) const;

  /// That of this process's torch; nullptr: it has none, or one without these functions.
  static const TorchAbi *find();
};

} // namespace kiln::door

#endif // KILN_RUNTIME_DOOR_TORCHABI_H
