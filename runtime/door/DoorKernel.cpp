#include "runtime/door/DoorKernel.h"

#include "kiln/KernelSource.h"
#include "runtime/door/DoorDevices.h"
#include "runtime/door/DoorTensor.h"
#include "runtime/tools/TextKernel.h"

#include <bit>
#include <limits>

namespace kiln::door {

/// A kernel on a device, with what its parameters are.
class OpenKernel {
public:
  Place place;
  DoorDevice *on = nullptr;
  std::unique_ptr<Jit> jit;
  JitKernel *kernel = nullptr;
  std::vector<ParsedArgumentType> types;
};

namespace {

/// `file`: its path; else `text` is the kernel's.
Result<OpenKernel *> openKernel(Place place, const std::string &file, const std::string &text,
                                const std::string &entry) {
  static std::mutex mutex;
  static auto *const known = new std::map<std::tuple<DoorDevice *, std::string, std::string, std::string>, OpenKernel>;
  KILN_ASSIGN(DoorDevice *const on, DoorDevice::of(place));
  const std::lock_guard lock(mutex);
  auto key = std::tuple(on, file, text, entry);
  if (const auto found = known->find(key); found != known->end())
    return &found->second;
  OpenKernel made;
  made.place = place, made.on = on;
  KILN_ASSIGN(JitOptions options, JitOptions::fromEnvironment());
  if (options.knobs.isolation == knob::Isolation::Auto)
    options.knobs.isolation = knob::Isolation::Child;
  const Knobs knobs = options.knobs;
  KILN_ASSIGN(made.jit, Jit::create(on->device(), std::move(options)));
  const std::string target = made.jit->codeTarget();
  KILN_ASSIGN(const tools::TextKernel described, file.empty()
                                                     ? tools::describeTextKernel(text, "text", entry, target, knobs)
                                                     : tools::readTextKernel(file, entry, target, knobs));
  KILN_ASSIGN(made.kernel, made.jit->kernel(described.source));
  for (const ArgumentSpec &a : described.source.arguments) {
    KILN_ASSIGN(ParsedArgumentType type, parseArgumentType(a.type));
    made.types.push_back(std::move(type));
  }
  return &known->emplace(std::move(key), std::move(made)).first->second;
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

  Status run(DoorDevice &on, Place place, JitKernel &kernel, Dim3 grid, void *native) {
    if (place.isGpu()) {
      KILN_ASSIGN(Stream *const stream, on.streamOf(native));
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

/// Where the tensors lie; in the host's memory if there are none.
Place placeOf(std::span<const FfiValue> given) {
  for (const FfiValue &value : given)
    if (const FfiTensor *t = tensorOf(value))
      return {t->deviceType, t->device};
  return {1, 0};
}

} // namespace

Result<OpenKernel *> openText(Place place, std::string_view text, const std::string &entry) {
  if (text.empty() || text.size() > tools::maxTextBytes)
    return Status::invalid("argument 'text' has " + std::to_string(text.size()) + " bytes; the limits are 1 and " +
                               std::to_string(tools::maxTextBytes),
                           "give a module of the tile dialect");
  return openKernel(place, {}, std::string(text), entry);
}

Status launchOpen(OpenKernel &open, const std::array<std::int64_t, 3> &grid, std::span<const FfiValue> given,
                  void *native) {
  const KernelSource &source = open.kernel->source();
  for (std::size_t d = 0; d < grid.size(); ++d)
    if (grid[d] < 1 || grid[d] > std::numeric_limits<std::int32_t>::max())
      return Status::invalid("extent " + std::to_string(d) + " of the grid is " + std::to_string(grid[d]),
                             "give a whole number from 1 to 2^31 - 1");
  if (given.size() != open.types.size())
    return Status::invalid("kernel '" + source.name + "' has " + std::to_string(open.types.size()) +
                               " parameters, the call has " + std::to_string(given.size()) + " arguments",
                           "pass one for each parameter");
  std::unique_lock<std::mutex> lock;
  if (open.place.isHost())
    lock = std::unique_lock(open.on->calls);
  Launch call;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string where = "argument '" + source.arguments[i].name + "' of kernel '" + source.name + "'";
    if (const FfiTensor *t = tensorOf(given[i])) {
      const Place here{t->deviceType, t->device};
      if (here != open.place && !(here.isHost() && open.place.isHost()))
        return Status::invalid(where + " is on " + here.toString() + ", the kernel on " + open.place.toString(),
                               "give all tensors on one device");
    }
    KILN_TRY(call.add(*open.on, open.place, where, given[i], open.types[i]));
  }
  const auto extent = [&](std::size_t d) { return static_cast<std::uint32_t>(grid[d]); };
  return call.run(*open.on, open.place, *open.kernel, {extent(0), extent(1), extent(2)}, native);
}

Failure launchText(std::span<const FfiValue> arguments) {
  std::string_view file, entry;
  if (arguments.size() < 5 || !textOf(arguments[0], file) || !textOf(arguments[1], entry) || file.empty())
    return {"TypeError", "launch: give a file, a kernel's name, three extents of a grid, and the kernel's arguments"};
  std::array<std::int64_t, 3> grid;
  for (std::size_t d = 0; d < grid.size(); ++d) {
    const FfiValue &value = arguments[2 + d];
    if (value.type != ffiWhole)
      return {"ValueError", "launch: extent " + std::to_string(d) + " of the grid is no whole number",
              "give one from 1 to 2^31 - 1"};
    grid[d] = value.whole;
  }
  const std::span<const FfiValue> given = arguments.subspan(5);
  const Place place = placeOf(given);
  const Result<OpenKernel *> open = openKernel(place, std::string(file), {}, std::string(entry));
  if (!open)
    return failureOf("launch", open.status());
  const Status s = launchOpen(**open, grid, given, streamSaid(place.type, place.number));
  return s.ok() ? Failure() : failureOf("launch", s);
}

} // namespace kiln::door
