// The functions of kiln/kiln.h.  Those of the operations are made of the lists at the end of kiln/operations.h.
#include "runtime/door/CStatus.h"
#include "runtime/door/DoorTensor.h"
#include "runtime/door/Fields.h"

#include <cmath>

namespace kiln::door {

LastFailure &lastFailure() {
  thread_local LastFailure one;
  return one;
}

kiln_status fail(Failure failure) {
  try {
    lastFailure() = {std::move(failure.message), std::move(failure.remedy)};
  } catch (const std::bad_alloc &) {
  }
  return static_cast<kiln_status>(failure.code);
}

namespace {

static_assert(sizeof(DLTensor) == sizeof(FfiTensor) && offsetof(DLTensor, shape) == offsetof(FfiTensor, shape) &&
              offsetof(DLTensor, byte_offset) == offsetof(FfiTensor, byteOffset));
static_assert(KILN_INTERNAL == static_cast<int>(StatusCode::Internal));

/// A field of the header's struct.
struct Row {
  const char *operation, *name;
  FieldKind kind;
  std::size_t offset;
};
constexpr Row rows[] = {
#define KILN_OPERATION(operation)
#define KILN_FIELD(operation, field, name, kind) {#operation, name, FieldKind::kind, offsetof(kiln_##operation, field)},
#include "kiln/operations.h" // its lists
#undef KILN_OPERATION
#undef KILN_FIELD
};

/// What the library knows of an operation's struct.
struct Operation {
  const kernels::Family *family = nullptr;
  std::size_t size = 0;
  std::vector<const Row *> fields; ///< in the order of DoorCall.h
};

Result<Operation> makeOperation(const char *name, std::size_t size) {
  Operation out;
  out.size = size;
  KILN_ASSIGN(out.family, kernels::findFamily(name));
  for (const Field &field : fieldsOf(*out.family->callable))
    for (const Row &row : rows)
      if (std::string_view(row.operation) == name && row.name == field.name)
        out.fields.push_back(&row);
  return out;
}

/// The value of a field; `typesOnly`: see KILN_ASKED.
Failure valueOf(const char *operation, const Row &row, const char *call, bool typesOnly, FfiValue &out) {
  const auto read = [&](auto &value) { std::memcpy(&value, call + row.offset, sizeof value); };
  out = {ffiNone, 0, {0}};
  if (row.kind == FieldKind::Tensor) {
    const DLTensor *tensor = nullptr;
    read(tensor);
    if (tensor == KILN_ASKED && !typesOnly)
      return wrong(operation, "argument '" + std::string(row.name) + "' is KILN_ASKED, which is no tensor",
                   "give a tensor to write to");
    if (tensor == KILN_ASKED)
      out.type = ffiFlag, out.whole = 1;
    else if (tensor)
      out.type = ffiTensorPointer, out.object = tensor;
  } else if (row.kind == FieldKind::Text) {
    const char *text = nullptr;
    read(text);
    if (text)
      out.type = ffiText, out.text = text;
  } else if (row.kind == FieldKind::Number) {
    double number = 0;
    read(number);
    if (!std::isnan(number))
      out.type = ffiNumber, out.number = number;
  } else {
    std::int64_t whole = 0;
    read(whole);
    if (whole != KILN_NOT_GIVEN)
      out.type = row.kind == FieldKind::Flag ? ffiFlag : ffiWhole, out.whole = whole;
    if (row.kind == FieldKind::Flag && whole != KILN_NOT_GIVEN && whole != 0 && whole != 1)
      return wrong(operation, "argument '" + std::string(row.name) + "' is " + std::to_string(whole),
                   "a flag is 0, 1 or KILN_NOT_GIVEN");
  }
  return {};
}

Failure valuesOf(const char *operation, const Operation &of, const void *call, bool typesOnly,
                 std::vector<FfiValue> &out) {
  if (!call)
    return wrong(operation, "argument 'call' is NULL",
                 "give the struct that kiln_" + std::string(operation) + "_init wrote");
  std::size_t size = 0;
  std::memcpy(&size, call, sizeof size);
  if (size < sizeof size || size > of.size || size % sizeof(std::int64_t) != 0)
    return wrong(operation,
                 "its struct says that it has " + std::to_string(size) + " bytes; this library knows " +
                     std::to_string(of.size),
                 "write it with kiln_" + std::string(operation) + "_init; a larger one is of a newer header");
  for (const Row *row : of.fields) {
    FfiValue &value = out.emplace_back(FfiValue{ffiNone, 0, {0}});
    if (row->offset + sizeof(std::int64_t) > size) // of an older header
      continue;
    if (Failure f = valueOf(operation, *row, static_cast<const char *>(call), typesOnly, value); !f.kind.empty())
      return f;
  }
  return {};
}

/// Kept from call to call: once there is room nothing is allocated.
std::vector<FfiValue> &emptyValues() {
  static thread_local std::vector<FfiValue> values;
  values.clear();
  return values;
}

Failure runCall(const char *name, const Operation &of, const void *call, const kiln_options *options) {
  Surroundings where;
  if (Failure f = surroundingsOf(name, options, where); !f.kind.empty())
    return f;
  std::vector<FfiValue> &values = emptyValues();
  Failure f = valuesOf(name, of, call, /*typesOnly=*/false, values);
  return f.kind.empty() ? run(*of.family, values, &where) : f;
}

Failure outputsOfCall(const char *name, const Operation &of, const void *call, kiln_output *outputs,
                      std::size_t *count) {
  if (!count || (*count && !outputs))
    return wrong(name, std::string("argument '") + (count ? "outputs" : "count") + "' is NULL",
                 "give room for outputs, and how many fit");
  std::vector<FfiValue> &values = emptyValues();
  kernels::TensorTypes types;
  if (Failure f = valuesOf(name, of, call, /*typesOnly=*/true, values); !f.kind.empty())
    return f;
  if (Failure f = outputsOf(*of.family, values, types); !f.kind.empty())
    return f;
  std::size_t found = 0;
  for (const Row *row : of.fields)
    if (const auto type = types.find(row->name); type != types.end()) {
      if (found++ >= *count)
        continue;
      kiln_output &out = outputs[found - 1];
      out = {row->name, {}, static_cast<std::int32_t>(type->second.shape.size()), {}};
      const DlType dl = dlTypeOf(type->second.dtype);
      out.dtype.code = dl.code, out.dtype.bits = dl.bits, out.dtype.lanes = 1;
      for (std::size_t i = 0; i < type->second.shape.size() && i < std::size(out.shape); ++i)
        out.shape[i] = static_cast<std::int64_t>(type->second.shape[i]);
    }
  const bool fits = found <= *count;
  *count = found;
  return fits ? Failure() : wrong(name, "it has " + std::to_string(found) + " outputs", "give room for so many");
}

/// f(operation), which `known` makes at its first call.
template <typename F> kiln_status with(const Result<Operation> &(*known)(), const char *name, F f) {
  return guarded([&]() -> Failure {
    const Result<Operation> &of = known();
    return of ? f(*of) : failureOf(name, of.status());
  });
}

} // namespace
} // namespace kiln::door

KILN_API const char *kiln_error_message(void) {
  return kiln::door::lastFailure().message.c_str();
}
KILN_API const char *kiln_error_remedy(void) {
  return kiln::door::lastFailure().remedy.c_str();
}
KILN_API std::uint32_t kiln_version(void) {
  return KILN_VERSION_NUMBER;
}
KILN_API const char *kiln_describe(void) {
  static std::string text; // empty where there was no memory for it
  kiln::door::guarded([] {
    static const bool isMade = (text = kiln::door::describeAll(), true);
    (void)isMade;
    return kiln::door::Failure();
  });
  return text.c_str();
}
KILN_API void kiln_options_init(kiln_options *options) {
  if (options)
    *options = {sizeof *options, nullptr, nullptr, 0};
}

namespace kiln::door {
namespace {

/// Nothing is given: in bits what each kind of field has for that.
void initialise(const Operation &of, void *call) {
  std::memset(call, 0, of.size);
  std::memcpy(call, &of.size, sizeof of.size);
  const double nan = std::nan("");
  const std::int64_t none = KILN_NOT_GIVEN;
  for (const Row *row : of.fields) {
    char *const at = static_cast<char *>(call) + row->offset;
    if (row->kind == FieldKind::Number)
      std::memcpy(at, &nan, sizeof nan);
    else if (row->kind == FieldKind::Flag || row->kind == FieldKind::Whole)
      std::memcpy(at, &none, sizeof none);
  }
}

} // namespace
} // namespace kiln::door

#define KILN_FIELD(operation, field, name, kind)
#define KILN_OPERATION(operation)                                                                                      \
  static const kiln::Result<kiln::door::Operation> &knownOf_##operation() {                                            \
    static const kiln::Result<kiln::door::Operation> one =                                                             \
        kiln::door::makeOperation(#operation, sizeof(kiln_##operation));                                               \
    return one;                                                                                                        \
  }                                                                                                                    \
  KILN_API void kiln_##operation##_init(kiln_##operation *call) {                                                      \
    if (!call)                                                                                                         \
      return;                                                                                                          \
    call->size = 0; /* which is refused, if there is no memory for what follows */                                     \
    kiln::door::with(knownOf_##operation, #operation, [&](const kiln::door::Operation &of) {                           \
      kiln::door::initialise(of, call);                                                                                \
      return kiln::door::Failure();                                                                                    \
    });                                                                                                                \
  }                                                                                                                    \
  KILN_API kiln_status kiln_##operation##_run(const kiln_##operation *call, const kiln_options *options) {             \
    return kiln::door::with(knownOf_##operation, #operation, [&](const kiln::door::Operation &of) {                    \
      return kiln::door::runCall(#operation, of, call, options);                                                       \
    });                                                                                                                \
  }                                                                                                                    \
  KILN_API kiln_status kiln_##operation##_workspace(const kiln_##operation *call, std::size_t *bytes) {                \
    return kiln::door::with(knownOf_##operation, #operation, [&](const kiln::door::Operation &of) {                    \
      std::vector<kiln::door::FfiValue> &values = kiln::door::emptyValues();                                           \
      if (!bytes)                                                                                                      \
        return kiln::door::wrong(#operation, "argument 'bytes' is NULL", "give the address of a number");              \
      kiln::door::Failure f = kiln::door::valuesOf(#operation, of, call, false, values);                               \
      return f.kind.empty() ? kiln::door::workspaceOf(*of.family, values, *bytes) : f;                                 \
    });                                                                                                                \
  }                                                                                                                    \
  KILN_API kiln_status kiln_##operation##_outputs(const kiln_##operation *call, kiln_output *outputs,                  \
                                                  std::size_t *count) {                                                \
    return kiln::door::with(knownOf_##operation, #operation, [&](const kiln::door::Operation &of) {                    \
      return kiln::door::outputsOfCall(#operation, of, call, outputs, count);                                          \
    });                                                                                                                \
  }
#include "kiln/operations.h" // its lists
