#include "runtime/door/DoorKernel.h"

#include "kiln/KernelSource.h"
#include "runtime/door/DoorDevices.h"
#include "runtime/door/DoorTensor.h"
#include "runtime/tools/TextKernel.h"

#include <bit>
#include <limits>

namespace kiln::door {
namespace {

/// A kernel on a device, with what its parameters are.
struct OpenKernel {
  std::unique_ptr<Jit> jit;
  JitKernel *kernel = nullptr;
  std::vector<ParsedArgumentType> types;
};

Result<OpenKernel *> openKernel(DoorDevice &on, const std::string &file, const std::string &entry) {
  static std::mutex mutex;
  static auto *const known = new std::map<std::tuple<DoorDevice *, std::string, std::string>, OpenKernel>;
  const std::lock_guard lock(mutex);
  const auto key = std::tuple(&on, file, entry);
  if (const auto found = known->find(key); found != known->end())
    return &found->second;
  OpenKernel made;
  KILN_ASSIGN(JitOptions options, JitOptions::fromEnvironment());
  if (options.knobs.isolation == knob::Isolation::Auto)
    options.knobs.isolation = knob::Isolation::Child;
  const Knobs knobs = options.knobs;
  KILN_ASSIGN(made.jit, Jit::create(on.device(), std::move(options)));
  KILN_ASSIGN(const tools::TextKernel text, tools::readTextKernel(file, entry, made.jit->codeTarget(), knobs));
  KILN_ASSIGN(made.kernel, made.jit->kernel(text.source));
  for (const ArgumentSpec &a : text.source.arguments) {
    KILN_ASSIGN(ParsedArgumentType type, parseArgumentType(a.type));
    made.types.push_back(std::move(type));
  }
  return &known->emplace(key, std::move(made)).first->second;
}

/// The bits of a number as the parameter's type.
Result<std::uint64_t> bitsOf(const std::string &where, const FfiValue &value, const ParsedArgumentType &wanted) {
  const std::string type(argumentTypeName(wanted.type));
  const bool isNumber = value.type == ffiNumber, isWhole = value.type == ffiWhole || value.type == ffiFlag;
  if (wanted.type == ArgumentType::F32 || wanted.type == ArgumentType::F64) {
    if (!isNumber && !isWhole)
      return Status::invalid(where + " is no number; the parameter is " + type, "pass a number");
    const double number = isNumber ? value.number : static_cast<double>(value.whole);
    return wanted.type == ArgumentType::F64 ? std::bit_cast<std::uint64_t>(number)
                                            : std::bit_cast<std::uint32_t>(static_cast<float>(number));
  }
  if (wanted.type == ArgumentType::F16 || wanted.type == ArgumentType::BF16)
    return Status(StatusCode::Unsupported, where + ": numbers of type " + type + " cannot be passed yet",
                  "give the kernel an f32");
  if (!isWhole)
    return Status::invalid(where + " is no whole number; the parameter is " + type, "pass a whole number");
  const unsigned bits = 8 * argumentBytes(wanted.type);
  const std::int64_t least = wanted.type == ArgumentType::I1 ? 0
                             : bits == 64                    ? value.whole
                                                             : -(std::int64_t(1) << (bits - 1));
  const std::int64_t most = wanted.type == ArgumentType::I1 ? 1
                            : bits == 64                    ? value.whole
                                                            : (std::int64_t(1) << bits) - 1;
  if (value.whole < least || value.whole > most)
    return Status::invalid(where + " = " + std::to_string(value.whole) + " does not fit the parameter, " + type,
                           "pass a number of at most " + std::to_string(bits) + " bits");
  return static_cast<std::uint64_t>(value.whole);
}

/// One launch: its arguments, and tensors of the host with their copies on the emulator.
struct Launch {
  struct Copy {
    const FfiTensor *tensor;
    kernels::TensorType type;
    std::unique_ptr<Buffer> buffer;
    std::string where;
  };
  LaunchArguments arguments;
  std::vector<Copy> copies;

  Status add(DoorDevice &on, Place place, const std::string &where, const FfiValue &value,
             const ParsedArgumentType &wanted) {
    const FfiTensor *const tensor = tensorOf(value);
    if (wanted.type != ArgumentType::Pointer) {
      KILN_ASSIGN(const std::uint64_t bits, bitsOf(where, value, wanted));
      arguments.add(wanted.type, bits);
      return {};
    }
    if (!tensor)
      return Status::invalid(where + " is no tensor; the parameter is a pointer to " + wanted.element, "pass an array");
    Tensor window;
    if (const Status s = readWindow(*tensor, window); !s.ok())
      return {s.code(), where + " " + s.message(), s.remedy()};
    if (!wanted.pointsTo(window.dtype))
      return Status::invalid(where + " holds " + std::string(dtypeName(window.dtype)) +
                                 "; the parameter is a pointer to " + wanted.element,
                             "convert it");
    if (place.isGpu()) {
      arguments.add(ArgumentType::Pointer, window.address);
      return {};
    }
    if (!window.isDense())
      return Status(StatusCode::Unsupported, where + " is not dense: on the emulator a kernel gets a dense copy",
                    "give an array in C order");
    for (const Copy &other : copies)
      KILN_TRY(checkApart(where, *tensor, other.where, *other.tensor));
    kernels::TensorType type = typeOf(window);
    const Array data = copyIn(*tensor, type);
    KILN_ASSIGN(std::unique_ptr<Buffer> buffer, on.device().allocate(data.data.size(), where));
    if (!data.data.empty())
      KILN_TRY(buffer->copyFromHost(0, data.data));
    arguments.add(ArgumentType::Pointer, buffer->address());
    copies.push_back({tensor, std::move(type), std::move(buffer), where});
    return {};
  }

  Status run(DoorDevice &on, Place place, JitKernel &kernel, Dim3 grid) {
    if (place.isGpu()) {
      KILN_ASSIGN(Stream *const stream, on.streamOf(streamSaid(place.type, place.number)));
      return kernel.launch(grid, stream, arguments);
    }
    KILN_TRY(on.finish(kernel.launch(grid, nullptr, arguments)));
    for (const Copy &copy : copies) {
      Array data{copy.type.dtype, copy.type.shape, {}};
      data.data.resize(copy.type.elements() * dtypeBytes(copy.type.dtype));
      if (!data.data.empty())
        KILN_TRY(copy.buffer->copyToHost(0, data.data));
      copyOut(data, *copy.tensor);
    }
    return {};
  }
};

Status launch(const std::string &file, const std::string &entry, Dim3 grid, std::span<const FfiValue> given) {
  Place place{1, 0};
  bool any = false;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (const FfiTensor *t = tensorOf(given[i])) {
      const Place here{t->deviceType, t->device};
      if (any && here != place)
        return Status::invalid("argument " + std::to_string(i) + " is on " + here.toString() + ", others on " +
                                   place.toString(),
                               "give all arrays on one device");
      place = here, any = true;
    }
  KILN_ASSIGN(DoorDevice *const on, DoorDevice::of(place));
  KILN_ASSIGN(OpenKernel *const open, openKernel(*on, file, entry));
  const KernelSource &source = open->kernel->source();
  if (given.size() != open->types.size())
    return Status::invalid("kernel '" + source.name + "' has " + std::to_string(open->types.size()) +
                               " parameters, the call has " + std::to_string(given.size()) + " arguments",
                           "pass one for each parameter");
  std::unique_lock<std::mutex> lock;
  if (place.isHost())
    lock = std::unique_lock(on->calls);
  Launch call;
  for (std::size_t i = 0; i < given.size(); ++i)
    KILN_TRY(call.add(*on, place, "argument '" + source.arguments[i].name + "' of kernel '" + source.name + "'",
                      given[i], open->types[i]));
  return call.run(*on, place, *open->kernel, grid);
}

} // namespace

Failure launchText(std::span<const FfiValue> arguments) {
  std::string_view file, entry;
  if (arguments.size() < 5 || !textOf(arguments[0], file) || !textOf(arguments[1], entry))
    return {"TypeError", "launch: give a file, a kernel's name, three extents of a grid, and the kernel's arguments"};
  std::uint32_t extents[3];
  for (int d = 0; d < 3; ++d) {
    const FfiValue &value = arguments[2 + static_cast<std::size_t>(d)];
    if (value.type != ffiWhole || value.whole < 1 || value.whole > std::numeric_limits<std::int32_t>::max())
      return {"ValueError",
              "launch: extent " + std::to_string(d) + " of the grid is no whole number from 1 to 2^31 - 1"};
    extents[d] = static_cast<std::uint32_t>(value.whole);
  }
  const Status s =
      launch(std::string(file), std::string(entry), {extents[0], extents[1], extents[2]}, arguments.subspan(5));
  return s.ok() ? Failure() : failureOf("launch", s);
}

} // namespace kiln::door
