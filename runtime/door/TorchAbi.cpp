#include "runtime/door/TorchAbi.h"

#include <dlfcn.h>

#include <algorithm>
#include <optional>

namespace kiln::door {
namespace {

/// A library that the process has loaded already.
void *loaded(const char *name) {
  return ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

template <typename F> bool take(void *library, const char *name, F &function) {
  function = library ? reinterpret_cast<F>(::dlsym(library, name)) : nullptr;
  return function != nullptr;
}

std::optional<TorchAbi> load() {
  TorchAbi abi;
  void *const torch = loaded("libtorch_cpu.so");
  bool isWhole = torch != nullptr;
#define KILN_TORCH_TAKE(name, type, arguments) isWhole = isWhole && take(torch, #name, abi.name);
  KILN_TORCH_FUNCTIONS(KILN_TORCH_TAKE)
#undef KILN_TORCH_TAKE
  if (!isWhole)
    return std::nullopt;
  (void)take(loaded("libtorch_cuda.so"), "aoti_torch_get_current_cuda_stream", abi.aoti_torch_get_current_cuda_stream);
  (void)take(torch, "torch_exception_get_what_without_backtrace", abi.torch_exception_get_what_without_backtrace);
  abi.cpu = abi.aoti_torch_device_type_cpu(), abi.cuda = abi.aoti_torch_device_type_cuda();
  TorchAbi::DType *row = abi.dtypes;
  std::int32_t (*number)() = nullptr;
#define KILN_TORCH_ROW(name, code, bits)                                                                               \
  *row++ = {take(torch, "aoti_torch_dtype_" #name, number) ? number() : -1, code, bits};
  KILN_TORCH_DTYPES(KILN_TORCH_ROW)
#undef KILN_TORCH_ROW
  return abi;
}

} // namespace

const TorchAbi *TorchAbi::find() {
  static const std::optional<TorchAbi> abi = load();
  return abi ? &*abi : nullptr;
}

const TorchAbi::DType *TorchAbi::dtypeOf(std::int32_t torch) const {
  const auto *const row = std::ranges::find(dtypes, torch, &DType::torch);
  return torch < 0 || row == std::end(dtypes) ? nullptr : row;
}

const TorchAbi::DType *TorchAbi::dtypeOf(std::uint8_t code, std::uint8_t bits) const {
  const auto *const row =
      std::ranges::find_if(dtypes, [&](const DType &d) { return d.code == code && d.bits == bits && d.torch >= 0; });
  return row == std::end(dtypes) ? nullptr : row;
}

} // namespace kiln::door
