// The exported functions in tvm-ffi's calling convention.  Those of the operations are generated from
// kernels/Families.def (CMakeLists.txt): each is one line, KILN_DOOR_OPERATION(name).
#include "runtime/door/BoundCall.h"
#include "runtime/door/DoorCall.h"
#include "runtime/door/DoorDevices.h"
#include "runtime/door/DoorKernel.h"
#include "runtime/door/TorchOperation.h"

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

/// f(family, the arguments of its call): `count` arguments begin with the operation's name.
template <typename F> int aboutCall(const char *function, const FfiValue *arguments, std::int32_t count, F f) {
  return guarded([&]() -> Failure {
    std::string_view name;
    if (count < 1 || !textOf(arguments[0], name))
      return {"TypeError", std::string(function) + ": argument 0 is no text", "give the operation's name"};
    const auto family = kernels::findFamily(name);
    if (!family.ok())
      return failureOf(function, family.status());
    return f(**family, spanOf(arguments + 1, count - 1));
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

/// (operation, the arguments of its call; True for an optional output): its outputs' types, as a text
KILN_DOOR_EXPORT __tvm_ffi_kiln_outputs(void *, const kiln::door::FfiValue *arguments, std::int32_t count,
                                        kiln::door::FfiValue *result) {
  using namespace kiln::door;
  return aboutCall("outputs", arguments, count,
                   [&](const kiln::kernels::Family &family, std::span<const FfiValue> call) -> Failure {
                     std::string types;
                     if (Failure f = outputsOf(family, call, types); !f.kind.empty())
                       return f;
                     return giveText(types, result);
                   });
}

/// (operation, whether to wait, the arguments of its call): whether the code is there
KILN_DOOR_EXPORT __tvm_ffi_kiln_prepare(void *, const kiln::door::FfiValue *arguments, std::int32_t count,
                                        kiln::door::FfiValue *result) {
  using namespace kiln::door;
  return aboutCall("prepare", arguments, count,
                   [&](const kiln::kernels::Family &family, std::span<const FfiValue> call) -> Failure {
                     if (call.empty() || call[0].type != ffiFlag)
                       return {"TypeError", "prepare: argument 1 is no flag", "say whether to wait: True or False"};
                     bool isReady = false;
                     if (Failure f = prepare(family, call.subspan(1), call[0].whole != 0, isReady); !f.kind.empty())
                       return f;
                     *result = {ffiFlag, 0, {isReady}};
                     return {};
                   });
}

/// (operation, the arguments of its call): what it would launch, as a text
KILN_DOOR_EXPORT __tvm_ffi_kiln_explain(void *, const kiln::door::FfiValue *arguments, std::int32_t count,
                                        kiln::door::FfiValue *result) {
  using namespace kiln::door;
  return aboutCall("explain", arguments, count,
                   [&](const kiln::kernels::Family &family, std::span<const FfiValue> call) -> Failure {
                     std::string text;
                     if (Failure f = explain(family, call, text); !f.kind.empty())
                       return f;
                     return giveText(text, result);
                   });
}

/// (operation, the arguments of its call): bytes, a whole number
KILN_DOOR_EXPORT __tvm_ffi_kiln_workspace(void *, const kiln::door::FfiValue *arguments, std::int32_t count,
                                          kiln::door::FfiValue *result) {
  using namespace kiln::door;
  return aboutCall("workspace", arguments, count,
                   [&](const kiln::kernels::Family &family, std::span<const FfiValue> call) -> Failure {
                     std::size_t bytes = 0;
                     if (Failure f = workspaceOf(family, call, bytes); !f.kind.empty())
                       return f;
                     *result = {ffiWhole, 0, {static_cast<std::int64_t>(bytes)}};
                     return {};
                   });
}

/// (operation, names of arrays, names of options, the options' values): a function of the arrays (BoundCall.h)
KILN_DOOR_EXPORT __tvm_ffi_kiln_bind(void *, const kiln::door::FfiValue *arguments, std::int32_t count,
                                     kiln::door::FfiValue *result) {
  using namespace kiln::door;
  return aboutCall("bind", arguments, count,
                   [&](const kiln::kernels::Family &family, std::span<const FfiValue> call) -> Failure {
                     std::unique_ptr<BoundCall> bound;
                     if (Failure f = BoundCall::create(family, call, bound); !f.kind.empty())
                       return f;
                     const auto run = [](void *self, const FfiValue *arrays, std::int32_t n, FfiValue *out) {
                       *out = {ffiNone, 0, {0}};
                       return guarded([&] { return static_cast<BoundCall *>(self)->run(spanOf(arrays, n)); });
                     };
                     *result = {ffiFunctionObject, 0, {0}};
                     const auto remove = [](void *self) { delete static_cast<BoundCall *>(self); };
                     if (!TVMFFIFunctionCreate || TVMFFIFunctionCreate(bound.get(), run, remove, &result->object) != 0)
                       return {"InternalError", "kiln: tvm-ffi made no function of the call"};
                     (void)bound.release();
                     return {};
                   });
}

/// (operation, name in the namespace kiln of torch, key, inputs, options, outputs: TorchOperation.h): whether it is
/// done
KILN_DOOR_EXPORT __tvm_ffi_kiln_torch_implement(void *, const kiln::door::FfiValue *arguments, std::int32_t count,
                                                kiln::door::FfiValue *result) {
  using namespace kiln::door;
  return aboutCall("torch_implement", arguments, count,
                   [&](const kiln::kernels::Family &family, std::span<const FfiValue> call) -> Failure {
                     std::string_view texts[5];
                     for (std::size_t i = 0; i < std::size(texts); ++i)
                       if (call.size() != std::size(texts) || !textOf(call[i], texts[i]))
                         return {"TypeError", "torch_implement: arguments 1 to 5 are no texts", "give texts"};
                     bool isDone = false;
                     if (Failure f = implementInTorch(family, std::string(texts[0]), std::string(texts[1]),
                                                      {texts[2], texts[3], texts[4]}, isDone);
                         !f.kind.empty())
                       return f;
                     *result = {ffiFlag, 0, {isDone}};
                     return {};
                   });
}
