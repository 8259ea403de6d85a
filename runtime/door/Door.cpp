// The exported functions in tvm-ffi's calling convention.  Those of the operations are generated from
// kernels/Families.def (CMakeLists.txt): each is one line, KILN_DOOR_OPERATION(name).
#include "runtime/door/DoorCall.h"
#include "runtime/door/DoorDevices.h"
#include "runtime/door/DoorKernel.h"

#include <exception>

namespace kiln::door {
namespace {

int raise(const Failure &failure) {
  if (TVMFFIErrorSetRaisedFromCStr)
    TVMFFIErrorSetRaisedFromCStr(failure.kind.c_str(), failure.toString().c_str());
  return -1;
}

/// No exception leaves the library.
template <typename F> int guarded(F f) {
  try {
    const Failure failure = f();
    return failure.kind.empty() ? 0 : raise(failure);
  } catch (const std::bad_alloc &) {
    return raise({"MemoryError", "kiln: the host has no memory left"});
  } catch (const std::exception &e) {
    return raise({"InternalError", std::string("kiln: ") + e.what()});
  }
}

Failure giveText(const std::string &text, FfiValue *result) {
  const FfiBytes bytes{text.data(), text.size()};
  if (!TVMFFIStringFromByteArray || TVMFFIStringFromByteArray(&bytes, result) != 0)
    return {"InternalError", "kiln: tvm-ffi made no text of the result"};
  return {};
}

std::span<const FfiValue> spanOf(const FfiValue *arguments, std::int32_t count) {
  return {arguments, static_cast<std::size_t>(count)};
}

int operation(const char *name, const FfiValue *arguments, std::int32_t count, FfiValue *result) {
  return guarded([&]() -> Failure {
    const auto family = kernels::findFamily(name);
    if (!family.ok())
      return failureOf(name, family.status());
    if (Failure f = run(**family, spanOf(arguments, count)); !f.kind.empty())
      return f;
    *result = {ffiNone, 0, {0}};
    return {};
  });
}

} // namespace
} // namespace kiln::door

#define KILN_DOOR_EXPORT extern "C" __attribute__((visibility("default"))) int
#define KILN_DOOR_OPERATION(name)                                                                                      \
  KILN_DOOR_EXPORT __tvm_ffi_kiln_##name(void *, const kiln::door::FfiValue *arguments, std::int32_t count,            \
                                         kiln::door::FfiValue *result) {                                               \
    return kiln::door::operation(#name, arguments, count, result);                                                     \
  }
#include "DoorOperations.inc"

KILN_DOOR_EXPORT __tvm_ffi_kiln_describe(void *, const kiln::door::FfiValue *, std::int32_t,
                                         kiln::door::FfiValue *result) {
  return kiln::door::guarded([&] { return kiln::door::giveText(kiln::door::describeAll(), result); });
}

KILN_DOOR_EXPORT __tvm_ffi_kiln_devices(void *, const kiln::door::FfiValue *, std::int32_t,
                                        kiln::door::FfiValue *result) {
  return kiln::door::guarded([&] { return kiln::door::giveText(kiln::door::describeDevices(), result); });
}

/// (file, kernel, grid's x, y, z, the kernel's arguments)
KILN_DOOR_EXPORT __tvm_ffi_kiln_launch(void *, const kiln::door::FfiValue *arguments, std::int32_t count,
                                       kiln::door::FfiValue *result) {
  return kiln::door::guarded([&] {
    *result = {kiln::door::ffiNone, 0, {0}};
    return kiln::door::launchText(kiln::door::spanOf(arguments, count));
  });
}

/// (operation, the arguments of its call)
KILN_DOOR_EXPORT __tvm_ffi_kiln_outputs(void *, const kiln::door::FfiValue *arguments, std::int32_t count,
                                        kiln::door::FfiValue *result) {
  using namespace kiln::door;
  return guarded([&]() -> Failure {
    std::string_view name;
    std::string types;
    if (count < 1 || !textOf(arguments[0], name))
      return {"TypeError", "outputs: argument 0 is no text: give the operation's name"};
    const auto family = kiln::kernels::findFamily(name);
    if (!family.ok())
      return failureOf("outputs", family.status());
    if (Failure f = outputsOf(**family, spanOf(arguments + 1, count - 1), types); !f.kind.empty())
      return f;
    return giveText(types, result);
  });
}
