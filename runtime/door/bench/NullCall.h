//===- NullCall.h - Calls through the door on a device that does nothing --------===//
//
// A small call of a family, as the library describes it and as arguments by position, on "GPU" 77.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DOOR_BENCH_NULLCALL_H
#define KILN_RUNTIME_DOOR_BENCH_NULLCALL_H

#include "kernels/support/Runner.h"
#include "runtime/door/DoorCall.h"
#include "runtime/door/DoorDevices.h"
#include "runtime/jit/bench/NullDevice.h"

namespace kiln::door {

inline constexpr Place nullPlace{2, 77};

/// The device of `nullPlace`, which does nothing; made at the first call.
inline Result<DoorDevice *> nothing(JitOptions options) {
  static const Result<DoorDevice *> one = [&]() -> Result<DoorDevice *> {
    auto device = std::make_unique<NullDevice>();
    KILN_ASSIGN(auto jit, Jit::create(*device, std::move(options)));
    DoorDevice::lend(nullPlace, std::move(device), std::move(jit));
    return DoorDevice::of(nullPlace);
  }();
  return one;
}

/// A tensor of a call as a caller has it.
inline FfiTensor tensorLike(const Tensor &t, std::uint8_t code, std::uint8_t bits) {
  return {reinterpret_cast<void *>(t.address),
          nullPlace.type,
          nullPlace.number,
          static_cast<std::int32_t>(t.rank),
          code,
          bits,
          1,
          t.shape.data(),
          t.strides.data(),
          0};
}

struct NullCall {
  /// A small call of the family as the library describes it, and as arguments by position.
  Status make(const std::string &name, JitOptions options) {
    using namespace kernels;
    KILN_ASSIGN(on, nothing(std::move(options)));
    KILN_ASSIGN(family, findFamily(name));
    const Callable &callable = *family->callable;
    planner = &on->plannerOf(callable);
    const DType type = callable.takes(DType::BF16) ? DType::BF16 : callable.dtypes().front();
    KILN_ASSIGN(const Samples *samples, samplesOf(*family));
    const Sample sample = samples->calls(type, SampleUse::Demo, false).front();
    KILN_ASSIGN(const Arrays inputs, sampleInputs(on->jit(), *family, sample, 1));
    KILN_ASSIGN(PlacedCall created, PlacedCall::create(on->device(), callable, inputs, sample.options));
    placed = std::make_unique<PlacedCall>(std::move(created));
    const Call &call = placed->call();
    tensors.reserve(call.tensors.size());
    for (const TensorParameter &p : callable.tensors()) {
      if (p.isGroup)
        continue;
      FfiValue value{ffiNone, 0, {0}};
      if (const auto t = call.tensors.find(p.name); t != call.tensors.end()) {
        const DType of = t->second.dtype;
        const std::uint8_t code = of == DType::BF16 ? 4 : isFloat(of) ? 2 : isUnsigned(of) ? 1 : 0;
        tensors.push_back(tensorLike(t->second, code, static_cast<std::uint8_t>(bitsOf(of))));
        value.type = ffiTensorPointer, value.object = &tensors.back();
        outputs.push_back(p.output);
      }
      values.push_back(value);
    }
    for (const OptionInfo &o : callable.options()) {
      FfiValue value{ffiNone, 0, {0}};
      if (const auto v = sample.options.find(o.name); v != sample.options.end()) {
        if (const bool *flag = std::get_if<bool>(&v->second))
          value.type = ffiFlag, value.whole = *flag;
        else if (const std::int64_t *whole = std::get_if<std::int64_t>(&v->second))
          value.type = ffiWhole, value.whole = *whole;
        else if (const double *number = std::get_if<double>(&v->second))
          value.type = ffiNumber, value.number = *number;
        else
          texts.push_back(std::make_unique<std::string>(std::get<std::string>(v->second))),
              value.type = ffiText, value.text = texts.back()->c_str();
      }
      values.push_back(value);
    }
    return {};
  }
  Failure throughDoor() {
    const Surroundings where{nullptr, workspace.address(), workspace.size()};
    return run(*family, values, &where);
  }
  Status direct() {
    return family->callable->run(on->jit(), *planner, placed->call(),
                                 {.workspace = workspace.address(), .workspaceBytes = workspace.size()});
  }
  DoorDevice *on = nullptr;
  const kernels::Callable::Planner *planner = nullptr;
  const kernels::Family *family = nullptr;
  std::unique_ptr<kernels::PlacedCall> placed;
  std::vector<FfiTensor> tensors;
  std::vector<bool> outputs; ///< of `tensors`
  std::vector<std::unique_ptr<std::string>> texts;
  std::vector<FfiValue> values;
  NullBuffer workspace{std::size_t(64) << 20};
};

} // namespace kiln::door

#endif // KILN_RUNTIME_DOOR_BENCH_NULLCALL_H
