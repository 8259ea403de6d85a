#include "runtime/door/OperationCall.h"

#include "runtime/door/DoorTensor.h"

#include <vector>

namespace kiln::door {
namespace {

using namespace kernels;

Failure typeError(std::string message, std::string remedy) {
  return {"TypeError", std::move(message), std::move(remedy)};
}

bool refuse(Failure &to, Failure what) {
  to = std::move(what);
  return false;
}

bool sameShape(const Tensor &a, const Tensor &b) {
  if (a.dtype != b.dtype || a.rank != b.rank)
    return false;
  for (unsigned d = 0; d < a.rank; ++d)
    if (a.shape[d] != b.shape[d])
      return false;
  return true;
}

/// Writes the value; whether it is another one than before.  A text keeps its memory.
template <typename T> bool assign(OptionValue &to, T value) {
  T *const old = std::get_if<T>(&to);
  if (old && *old == value)
    return false;
  to = value;
  return true;
}
bool assign(OptionValue &to, std::string_view value) {
  if (std::string *const old = std::get_if<std::string>(&to)) {
    if (*old == value)
      return false;
    old->assign(value);
  } else
    to = std::string(value);
  return true;
}

} // namespace

OperationTable::OperationTable(const Family &family, std::size_t number)
    : callable(family.callable.get()), number(number), table(*callable) {
  std::erase_if(table.tensors, [](const TensorParameter &p) { return p.isGroup; });
}

const OperationTable &tableOf(const Family &family) {
  static const auto *const all = [] {
    auto *made = new std::vector<OperationTable>;
    for (const Family &f : families())
      made->emplace_back(f, made->size());
    return made;
  }();
  return (*all)[static_cast<std::size_t>(&family - families().data())];
}

std::string argumentText(std::string_view operation, std::string_view name) {
  return std::string(operation) + ": argument '" + std::string(name) + "'";
}

OperationCall &OperationCall::of(const Family &family) {
  static thread_local std::vector<std::unique_ptr<OperationCall>> calls(families().size());
  const OperationTable &operation = tableOf(family);
  std::unique_ptr<OperationCall> &call = calls[operation.number];
  if (!call)
    call.reset(new OperationCall(operation));
  return *call;
}

OperationCall::OperationCall(const OperationTable &operation)
    : operation(operation), given(operation.table.tensors.size()) {
  for (const TensorParameter &p : operation.table.tensors) {
    tensors.emplace_back(call.tensors, p.name);
    asked.emplace_back();
    if (p.output && p.optional)
      asked.back().emplace(call.options, p.name);
  }
  for (const OptionInfo &o : operation.table.options)
    options.emplace_back(call.options, o.name);
}

bool OperationCall::readPlace(const FfiTensor &tensor, std::string_view name, Failure &wrong) {
  const Place its{tensor.deviceType, tensor.device};
  if (first.empty())
    place = its, first = name;
  if (its == place || (its.isHost() && place.isHost()))
    return true;
  const std::string_view of = operation.table.name;
  return refuse(wrong, failureOf(of, Status::invalid(argumentText(of, name) + " is on " + its.toString() + ", " +
                                                         argumentText(of, first) + " on " + place.toString(),
                                                     "give all tensors on one device")));
}

bool OperationCall::readTensor(std::size_t number, const FfiValue &value, bool typesOnly, Failure &wrong) {
  const TensorParameter &p = operation.table.tensors[number];
  const std::string_view of = operation.table.name;
  const FfiTensor *const tensor = tensorOf(value);
  const bool mayBeWord = typesOnly && p.output && (value.type == ffiNone || value.type == ffiFlag);
  given[number] = tensor;
  if (!tensor && value.type == ffiNone && !p.optional && !mayBeWord)
    return refuse(wrong, typeError(argumentText(of, p.name) + " is missing", "give " + p.description));
  if (!tensor && value.type != ffiNone && !mayBeWord)
    return refuse(wrong, typeError(argumentText(of, p.name) + " is no tensor", "give one"));
  hasChanged |= tensors[number].put(tensor != nullptr);
  if (auto &flag = asked[number]) {
    hasChanged |= flag->put(tensor || (value.type == ffiFlag && value.whole));
    flag->value() = true;
  }
  if (!tensor)
    return true;
  Tensor window;
  if (Status s = readWindow(*tensor, window); !s.ok())
    return refuse(wrong, failureOf(of, Status(s.code(), argumentText(of, p.name) + " " + s.message(), s.remedy())));
  if (!readPlace(*tensor, p.name, wrong))
    return false;
  Tensor &to = tensors[number].value();
  hasChanged |= !sameShape(window, to);
  to = window;
  return true;
}

bool OperationCall::readOption(std::size_t number, const FfiValue &value, Failure &wrong) {
  const OptionInfo &o = operation.table.options[number];
  hasChanged |= options[number].put(value.type != ffiNone);
  if (value.type == ffiNone)
    return true;
  OptionValue &to = options[number].value();
  std::string_view text;
  if (value.type == ffiFlag)
    hasChanged |= assign(to, value.whole != 0);
  else if (value.type == ffiWhole && o.kind == OptionInfo::Kind::Float)
    hasChanged |= assign(to, static_cast<double>(value.whole));
  else if (value.type == ffiWhole)
    hasChanged |= assign(to, value.whole);
  else if (value.type == ffiNumber)
    hasChanged |= assign(to, value.number);
  else if (textOf(value, text))
    hasChanged |= assign(to, text);
  else
    return refuse(
        wrong, typeError(argumentText(operation.table.name, o.name) + " is no flag, number or text", "give " + o.text));
  return true;
}

bool OperationCall::readWorkspace(const FfiValue &value, Failure &wrong) {
  workspace = {};
  if (value.type == ffiNone)
    return true;
  const std::string_view of = operation.table.name;
  const FfiTensor *const tensor = tensorOf(value);
  if (!tensor)
    return refuse(wrong, typeError(argumentText(of, "workspace") + " is no tensor", "give one"));
  if (Status s = readWindow(*tensor, workspace); !s.ok())
    return refuse(wrong,
                  failureOf(of, Status(s.code(), argumentText(of, "workspace") + " " + s.message(), s.remedy())));
  if (!workspace.isDense())
    return refuse(
        wrong, failureOf(of, Status::invalid(argumentText(of, "workspace") + " is not dense", "give it without gaps")));
  if (workspace.address == 0)
    workspace.address = Plan::alignment; // of no bytes, and given: a call that needs some refuses it
  return readPlace(*tensor, "workspace", wrong);
}

Failure OperationCall::read(std::span<const FfiValue> arguments, bool typesOnly) {
  const CallTable &table = operation.table;
  const FfiValue none{ffiNone, 0, {0}};
  const std::size_t fields = table.tensors.size() + table.options.size() + 1;
  if (arguments.size() > fields)
    return typeError(table.name + ": " + std::to_string(arguments.size()) + " arguments: the limit is " +
                         std::to_string(fields),
                     "give fewer");
  const auto at = [&](std::size_t i) -> const FfiValue & { return i < arguments.size() ? arguments[i] : none; };
  first = {};
  place = {1, 0};
  // It stays true until a call is accepted: of one that was refused nobody knows what it left here.
  Failure wrong;
  bool isRight = true;
  // Most are left out, now and before.
  for (std::size_t i = 0; i < table.tensors.size() && isRight; ++i)
    if (const FfiValue &value = at(i); value.type == ffiNone && table.tensors[i].optional && !isIn(i))
      given[i] = nullptr;
    else
      isRight = readTensor(i, value, typesOnly, wrong);
  for (std::size_t i = 0; i < table.options.size() && isRight; ++i)
    if (const FfiValue &value = at(table.tensors.size() + i); value.type != ffiNone || options[i].isIn())
      isRight = readOption(i, value, wrong);
  isRight = isRight && readWorkspace(at(fields - 1), wrong);
  hasChanged |= typesOnly || !isRight;
  return wrong;
}

} // namespace kiln::door
