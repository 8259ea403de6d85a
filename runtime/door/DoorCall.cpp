#include "runtime/door/DoorCall.h"

#include "kernels/support/Runner.h"
#include "runtime/door/DoorDevices.h"
#include "runtime/door/DoorTensor.h"
#include "runtime/io/DType.h"

#include <nlohmann/json.hpp>

namespace kiln::door {
namespace {

using namespace kernels;

struct Given {
  Arrays inputs;
  TensorTypes inputTypes, outputTypes;
  std::map<std::string, const FfiTensor *, std::less<>> tensors, outputs;
  OptionValues options;
  Place place;
  std::string first; ///< the argument that `place` is from
  Tensor workspace;  ///< address 0: none
};

const CallTable &tableOf(const Callable &callable) {
  static const auto all = [] {
    std::map<const Callable *, CallTable> tables;
    for (const Family &family : families())
      tables.try_emplace(family.callable.get(), *family.callable);
    return tables;
  }();
  return all.find(&callable)->second;
}

std::string argumentText(std::string_view operation, std::string_view name) {
  return std::string(operation) + ": argument '" + std::string(name) + "'";
}

/// The value of an option.  A number where a flag or a text is wanted is refused by checkOptions.
bool optionOf(const FfiValue &value, OptionInfo::Kind kind, OptionValue &out) {
  std::string text;
  if (value.type == ffiFlag)
    out = value.whole != 0;
  else if (value.type == ffiWhole && kind == OptionInfo::Kind::Float)
    out = static_cast<double>(value.whole);
  else if (value.type == ffiWhole)
    out = value.whole;
  else if (value.type == ffiNumber)
    out = value.number;
  else if (textOf(value, text))
    out = std::move(text);
  else
    return false;
  return true;
}

/// Where all tensors of the call are: where its first one is.
Status placeOf(const std::string &where, const FfiTensor &tensor, Given &given) {
  const Place place{tensor.deviceType, tensor.device};
  if (given.first.empty())
    given.place = place, given.first = where;
  const bool same = place == given.place || (place.isHost() && given.place.isHost());
  return same ? Status()
              : Status::invalid(where + " is on " + place.toString() + ", " + given.first + " on " +
                                    given.place.toString(),
                                "give all tensors on one device");
}

Failure typeError(std::string message, std::string remedy) {
  return {"TypeError", std::move(message), std::move(remedy)};
}

/// `typesOnly`: outputs may be True in place of a tensor.
Failure read(const Callable &callable, std::span<const FfiValue> arguments, bool typesOnly, Given &given) {
  const FfiValue none{ffiNone, 0, {0}};
  std::size_t at = 0;
  const auto next = [&]() -> const FfiValue & { return at < arguments.size() ? arguments[at++] : (++at, none); };
  for (const TensorParameter &p : tableOf(callable).tensors) {
    if (p.isGroup)
      continue;
    const FfiValue &value = next();
    const std::string where = argumentText(callable.name(), p.name);
    if (value.type == ffiNone) {
      if (!p.optional && !(typesOnly && p.output))
        return typeError(where + " is missing", "give " + p.description);
      continue;
    }
    const FfiTensor *const tensor = tensorOf(value);
    if (!tensor && typesOnly && p.output && value.type == ffiFlag) {
      if (p.optional && value.whole)
        given.options[p.name] = true;
      continue;
    }
    if (!tensor)
      return typeError(where + " is no tensor", "give one");
    auto type = checkTensor(where, *tensor);
    if (!type.ok())
      return failureOf(callable.name(), type.status());
    if (Status s = placeOf(where, *tensor, given); !s.ok())
      return failureOf(callable.name(), s);
    if (p.output && p.optional)
      given.options[p.name] = true;
    (p.output ? given.outputTypes : given.inputTypes)[p.name] = *type;
    (p.output ? given.outputs : given.tensors)[p.name] = tensor;
  }
  for (const OptionInfo &o : tableOf(callable).options) {
    const FfiValue &value = next();
    if (value.type != ffiNone && !optionOf(value, o.kind, given.options[o.name]))
      return typeError(argumentText(callable.name(), o.name) + " is no flag, number or text", "give " + o.text);
  }
  const FfiValue &workspace = next();
  if (workspace.type != ffiNone) {
    const std::string where = argumentText(callable.name(), "workspace");
    const FfiTensor *const tensor = tensorOf(workspace);
    if (!tensor)
      return typeError(where + " is no tensor", "give one");
    auto type = checkTensor(where, *tensor);
    const Status s = type.ok() ? placeOf(where, *tensor, given) : type.status();
    if (!s.ok())
      return failureOf(callable.name(), s);
    given.workspace = windowOf(*tensor, *type);
  }
  if (arguments.size() > at)
    return typeError(std::string(callable.name()) + ": " + std::to_string(arguments.size()) +
                         " arguments: the limit is " + std::to_string(at),
                     "give fewer");
  return {};
}

std::string typeText(const TensorType &type) {
  return std::string(dtypeName(type.dtype)) + "[" + shapeText(type.shape) + "]";
}

/// The outputs are what the operation gives, and lie apart from each other and from what is read.
Status checkOutputs(const Callable &callable, const Given &given) {
  KILN_ASSIGN(const TensorTypes wanted, callable.outputs(given.inputTypes, given.options));
  for (const TensorParameter &p : tableOf(callable).tensors) {
    const auto output = given.outputs.find(p.name);
    if (!p.output || output == given.outputs.end())
      continue;
    const std::string where = argumentText(callable.name(), p.name);
    const TensorType &is = given.outputTypes.find(p.name)->second;
    const auto must = wanted.find(p.name);
    if (must == wanted.end() || is.shape != must->second.shape || is.dtype != must->second.dtype)
      return Status::invalid(where + " is " + typeText(is) +
                                 (must == wanted.end() ? "" : ": it must be " + typeText(must->second)),
                             "give it that type and shape");
    if (!given.place.isHost())
      continue; // operations compare what lies on their own device
    for (const auto *others : {&given.tensors, &given.outputs})
      for (const auto &[name, tensor] : *others)
        if (name != p.name && name != p.inPlaceOf)
          KILN_TRY(checkApart(where, *output->second, name, *tensor));
  }
  return {};
}

Status runOnHost(DoorDevice &on, const Callable &callable, Given &given) {
  for (const auto &[name, tensor] : given.tensors)
    given.inputs[name] = copyIn(*tensor, given.inputTypes.find(name)->second);
  const std::lock_guard lock(on.calls);
  KILN_ASSIGN(const PlacedCall placed, PlacedCall::create(on.device(), callable, given.inputs, given.options));
  Status ran = callable.run(on.jit(), on.plannerOf(callable), placed.call(), {});
  const std::vector<Finding> findings = on.device().takeFindings();
  if (!findings.empty())
    return {StatusCode::Findings, findings.front().toString()};
  KILN_TRY(std::move(ran));
  KILN_TRY(on.device().defaultStream().synchronize());
  KILN_ASSIGN(const Arrays results, placed.readOutputs());
  for (const auto &[name, tensor] : given.outputs)
    copyOut(results.find(name)->second, *tensor);
  return {};
}

/// The call on tensors where they lie.
Call callThere(DoorDevice &on, Given &given) {
  Call call;
  call.options = std::move(given.options);
  for (const auto &[tensors, types] :
       {std::pair(&given.tensors, &given.inputTypes), std::pair(&given.outputs, &given.outputTypes)})
    for (const auto &[name, tensor] : *tensors)
      (call.tensors[name] = windowOf(*tensor, types->find(name)->second)).device = &on.device();
  return call;
}

/// Without others' word on the stream that tvm-ffi says, which is torch's current one.  Tables of lengths are not read:
/// upper bounds that follow from them on the host are the shapes'.
Status runOnGpu(DoorDevice &on, const Callable &callable, Given &given, const Surroundings *where) {
  const Call call = callThere(on, given);
  void *native = nullptr;
  if (where)
    native = where->stream;
  else if (TVMFFIEnvGetStream)
    native = TVMFFIEnvGetStream(given.place.type, given.place.number);
  KILN_ASSIGN(const std::unique_ptr<Stream> stream, on.device().streamOf(native));
  RunOptions options{stream.get()};
  if (where)
    options.workspace = where->workspace, options.workspaceBytes = where->workspaceBytes;
  if (given.workspace.address)
    options.workspace = given.workspace.address,
    options.workspaceBytes = static_cast<std::size_t>(given.workspace.elements()) * dtypeBytes(given.workspace.dtype);
  return callable.run(on.jit(), on.plannerOf(callable), call, options);
}

Status runThere(const Callable &callable, Given &given, const Surroundings *where) {
  KILN_ASSIGN(DoorDevice *const on, DoorDevice::of(given.place));
  return given.place.isGpu() ? runOnGpu(*on, callable, given, where) : runOnHost(*on, callable, given);
}

Result<std::size_t> workspaceThere(const Callable &callable, Given &given) {
  if (!given.place.isGpu())
    return std::size_t(0);
  KILN_ASSIGN(DoorDevice *const on, DoorDevice::of(given.place));
  WorkspacePlan plan;
  KILN_TRY(on->plannerOf(callable)(callThere(*on, given), plan));
  return plan.bytes;
}

/// What arguments say, and that it is right.
Failure readWhole(const Callable &callable, std::span<const FfiValue> arguments, Given &given) {
  if (Failure f = read(callable, arguments, false, given); !f.kind.empty())
    return f;
  Status s = checkOptions(tableOf(callable), given.options);
  if (s.ok())
    s = checkOutputs(callable, given);
  return s.ok() ? Failure() : failureOf(callable.name(), s);
}

} // namespace

Failure failureOf(std::string_view operation, const Status &status) {
  constexpr const char *kinds[] = {"",
                                   "Finding",
                                   "ValueError",
                                   "FileNotFoundError",
                                   "OSError",
                                   "CompileError",
                                   "NotImplementedError",
                                   "DeviceError",
                                   "MemoryError",
                                   "NotReady",
                                   "InternalError"};
  static_assert(std::size(kinds) == static_cast<std::size_t>(StatusCode::Internal) + 1);
  const std::string &text = status.message();
  const bool named = text.starts_with(operation);
  return {kinds[static_cast<std::size_t>(status.code())], named ? text : std::string(operation) + ": " + text,
          status.remedy(), status.code()};
}

Failure run(const Family &family, std::span<const FfiValue> arguments, const Surroundings *where) {
  const Callable &callable = *family.callable;
  Given given;
  if (Failure f = readWhole(callable, arguments, given); !f.kind.empty())
    return f;
  const Status s = runThere(callable, given, where);
  return s.ok() ? Failure() : failureOf(callable.name(), s);
}

Failure workspaceOf(const Family &family, std::span<const FfiValue> arguments, std::size_t &bytes) {
  const Callable &callable = *family.callable;
  Given given;
  if (Failure f = readWhole(callable, arguments, given); !f.kind.empty())
    return f;
  const Result<std::size_t> found = workspaceThere(callable, given);
  if (!found)
    return failureOf(callable.name(), found.status());
  bytes = *found;
  return {};
}

Failure outputsOf(const Family &family, std::span<const FfiValue> arguments, TensorTypes &types) {
  const Callable &callable = *family.callable;
  Given given;
  if (Failure f = read(callable, arguments, true, given); !f.kind.empty())
    return f;
  if (Status s = checkOptions(tableOf(callable), given.options); !s.ok())
    return failureOf(callable.name(), s);
  Result<TensorTypes> found = callable.outputs(given.inputTypes, given.options);
  if (!found)
    return failureOf(callable.name(), found.status());
  types = std::move(*found);
  return {};
}

Failure outputsOf(const Family &family, std::span<const FfiValue> arguments, std::string &out) {
  TensorTypes types;
  if (Failure f = outputsOf(family, arguments, types); !f.kind.empty())
    return f;
  nlohmann::json rows = nlohmann::json::array();
  for (const auto &[name, type] : types)
    rows.push_back({{"name", name}, {"shape", type.shape}, {"dtype", dtypeName(type.dtype)}});
  out = rows.dump();
  return {};
}

} // namespace kiln::door
