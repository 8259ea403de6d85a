#include "RecorderImpl.h"

#include <algorithm>
#include <cstring>

namespace kiln::language {

using detail::Handle;
using detail::Operand;

//===----------------------------------------------------------------------===//
// The thread's recording
//===----------------------------------------------------------------------===//

static thread_local Recorder *currentRecorder = nullptr;

Recorder *Recorder::current() {
  return currentRecorder && currentRecorder->ok() ? currentRecorder : nullptr;
}
Recorder *Recorder::open(std::string_view what, Location loc) {
  Recorder *r = current();
  return r && r->outsideCombine(what, loc) ? r : nullptr;
}
Recorder *Recorder::any() {
  return currentRecorder;
}
void Recorder::setCurrent(Recorder *recorder) {
  currentRecorder = recorder;
}

/// Differs between recordings of one thread, and between threads that live at the same time.
static std::uint64_t newRecordingId() {
  static thread_local std::uint64_t count = 0;
  const std::uint64_t thread = reinterpret_cast<std::uintptr_t>(&count);
  return (thread << 24) ^ ++count;
}

Recorder::Recorder(std::string_view name, const KernelOptions &options, std::vector<KernelArgument> arguments,
                   Location loc)
    : grade(options.grade == Grade::OfScope ? precise : options.grade), recordingId(newRecordingId()), kernelName(name),
      options(options), arguments(std::move(arguments)), location(loc) {
  text.reserve(8192);
  types.reserve(32);
  values.reserve(256);
  isOpen.push_back(true);
  openRegions.push_back(0);
  for (std::size_t i = 0; i < this->arguments.size(); ++i) {
    const KernelArgument &a = this->arguments[i];
    const auto kind = a.isPointer ? ValueType::Kind::Pointer : ValueType::Kind::Number;
    values.push_back({typeId({signless(a.element), kind}), 0, static_cast<std::uint32_t>(i), -2, loc});
  }
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

std::string_view Recorder::fileOf(Location loc) const {
  std::string_view file = loc.file_name();
  std::string_view root = options.sourceRoot;
  while (root.size() > 1 && root.back() == '/')
    root.remove_suffix(1);
  if (!root.empty() && file.size() > root.size() && file.starts_with(root) && (file[root.size()] == '/' || root == "/"))
    file.remove_prefix(root.size() + (root == "/" ? 0 : 1));
  return file;
}

std::string Recorder::where(Location loc) const {
  loc = effective(loc);
  return std::string(fileOf(loc)) + ":" + std::to_string(loc.line());
}

void Recorder::fail(Location loc, std::string_view what, const std::string &message, std::string remedy) {
  if (!ok())
    return;
  loc = effective(loc);
  failure = Status::invalid(where(loc) + ":" + std::to_string(loc.column()) + ": kernel '" + kernelName +
                                "': " + std::string(what) + ": " + message,
                            std::move(remedy));
}

void Recorder::failKernel(const std::string &message, std::string remedy) {
  if (ok())
    failure = Status::invalid(where(location) + ":" + std::to_string(location.column()) + ": kernel '" + kernelName +
                                  "': " + message,
                              std::move(remedy));
}

unsigned Recorder::firstOf(std::string_view tensor) const {
  std::size_t rest = 0; // arguments of the declared tensors
  for (const TensorDeclaration &t : options.tensors)
    rest += 1 + 2 * static_cast<std::size_t>(t.rank);
  std::size_t i = arguments.size() - rest;
  while (i < arguments.size() && arguments[i].name != tensor)
    ++i;
  return static_cast<unsigned>(i);
}

void Recorder::checkArguments() {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (arguments[i].name == arguments[j].name)
        failKernel("the arguments " + std::to_string(j) + " and " + std::to_string(i) + " are both called '" +
                       arguments[i].name + "'",
                   "give each argument a name of its own");
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

DType Recorder::signless(DType e) {
  return isUnsigned(e) ? static_cast<DType>(static_cast<unsigned>(e) - static_cast<unsigned>(DType::U8) +
                                            static_cast<unsigned>(DType::I8))
                       : e;
}

TypeId Recorder::typeId(const ValueType &type) {
  for (TypeId i = 0; i < types.size(); ++i)
    if (types[i].type == type)
      return i;
  std::string out;
  const std::string_view element = elementText(type.element);
  const auto shape = [&] {
    for (unsigned d = 0; d < type.shape.rank(); ++d) {
      appendInteger(out, type.shape[d]);
      out += 'x';
    }
  };
  if (type.kind == ValueType::Kind::Pipeline || type.kind == ValueType::Kind::Buffer) {
    out = detail::pipelineTypeText(type, element);
  } else if (type.kind == ValueType::Kind::View) {
    out += "!tile.view<";
    shape();
    out += element;
    if (type.unit < 0)
      out += ", unit = none";
    else if (type.unit != static_cast<int>(type.shape.rank()) - 1)
      out += ", unit = " + std::to_string(type.unit);
    out += '>';
  } else {
    if (type.isTile) {
      out += "tensor<";
      shape();
    }
    if (type.kind == ValueType::Kind::Pointer)
      out += "!tile.ptr<";
    out += element;
    if (type.kind == ValueType::Kind::Pointer)
      out += '>';
    if (type.isTile)
      out += '>';
  }
  types.push_back({type, std::move(out)});
  return static_cast<TypeId>(types.size() - 1);
}

TypeId Recorder::withElement(TypeId like, DType e) {
  ValueType t = type(like);
  t.element = signless(e);
  t.kind = ValueType::Kind::Number;
  return typeId(t);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

ValueId Recorder::define(TypeId type, Location loc) {
  values.push_back({type, region(), nextNumber++, -1, effective(loc)});
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Recorder::defineParts(std::uint32_t number, std::span<const TypeId> types, Location loc) {
  const auto first = static_cast<ValueId>(values.size());
  for (std::size_t i = 0; i < types.size(); ++i)
    values.push_back({types[i], region(), number,
                      static_cast<std::int16_t>(types.size() == 1 ? -1 : static_cast<int>(i)), effective(loc)});
  return first;
}

const ValueType *Recorder::peek(const Handle &h) const {
  return h.recording == recordingId && h.index < values.size() ? &typeOf(h.index) : nullptr;
}

std::optional<ValueId> Recorder::find(const Handle &h, std::string_view what, Location loc) {
  if (h.recording == 0)
    fail(loc, what, "an operand has no value: its variable was not assigned", "assign it before its first use");
  else if (h.recording != recordingId || h.index >= values.size())
    fail(loc, what, "an operand belongs to another kernel", "use values inside the body of the kernel that made them");
  else if (const Value &v = values[h.index]; !isOpen[v.region])
    fail(loc, what, "an operand was computed at " + where(v.location) + ", inside a loop or condition that has ended",
         "return it from that body: as a carried value of the loop, or from both bodies of the condition");
  else if (inCombine() && v.region != region())
    fail(loc, what, "a combine function uses a value from outside, computed at " + where(v.location),
         "use the function's parameters and C++ numbers only; pass the value as one more operand");
  else
    return h.index;
  return std::nullopt;
}

std::optional<ValueId> Recorder::find(const Operand &o, std::string_view what, Location loc) {
  const auto id = find(o.handle, what, loc);
  if (!id)
    return id;
  const ValueType &t = typeOf(*id);
  if (o.kind == Operand::Kind::Pipeline) {
    if (t.kind == ValueType::Kind::Pipeline)
      return id;
    fail(loc, what, "an operand of type " + typeText(value(*id).type) + " is used as a pipeline",
         "use what pipeline() gave");
    return std::nullopt;
  }
  const bool pointer = o.kind == Operand::Kind::Pointer;
  if (t.element == signless(o.element) && t.kind == (pointer ? ValueType::Kind::Pointer : ValueType::Kind::Number))
    return id;
  fail(loc, what,
       "an operand of type " + typeText(value(*id).type) + " is used as " +
           std::string(pointer ? "a pointer to " : "") + std::string(elementName(o.element)),
       "make the C++ value from the recorded one with cast or bitcast");
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Operands brought to one type
//===----------------------------------------------------------------------===//

bool Recorder::goodShape(const Shape &shape, std::string_view what, Location loc) {
  const std::string problem = shape.problem();
  if (problem.empty())
    return true;
  fail(loc, what, "no tile has the shape " + shape.toString() + ": " + problem, "choose another tile size");
  return false;
}

bool Recorder::commonShape(std::span<const Operand *const> operands, std::string_view what, Location loc,
                           std::optional<Shape> &shape) {
  for (const Operand *o : operands) {
    if (o->kind != Operand::Kind::Value && o->kind != Operand::Kind::Pointer)
      continue;
    const auto id = find(*o, what, loc);
    if (!id)
      return false;
    const ValueType &t = typeOf(*id);
    if (!t.isTile)
      continue;
    if (!shape) {
      shape = t.shape;
      continue;
    }
    if (*shape == t.shape)
      continue;
    const std::string shapes = "shapes " + shape->toString() + " and " + t.shape.toString();
    if (shape->rank() != t.shape.rank()) {
      fail(loc, what,
           shapes + " have ranks " + std::to_string(shape->rank()) + " and " + std::to_string(t.shape.rank()),
           "add dimensions of extent 1 to the smaller one with expandDims(x, dimension)");
      return false;
    }
    for (unsigned d = 0; d < shape->rank(); ++d) {
      const std::int64_t a = (*shape)[d], b = t.shape[d];
      if (a != b && a != 1 && b != 1) {
        fail(loc, what,
             shapes + " differ in dimension " + std::to_string(d) + ": " + std::to_string(a) + " and " +
                 std::to_string(b),
             "make the extents equal; only an extent of 1 is repeated");
        return false;
      }
      shape->set(d, a == 1 ? b : a);
    }
    if (!goodShape(*shape, what, loc))
      return false;
  }
  return true;
}

bool Recorder::broadcastsTo(const Shape &from, const Shape &to, std::string_view what, std::string_view role,
                            Location loc) {
  bool good = from.rank() == to.rank();
  for (unsigned d = 0; good && d < from.rank(); ++d)
    good = from[d] == to[d] || from[d] == 1;
  if (!good)
    fail(loc, what,
         std::string(role) + " has the shape " + from.toString() + ", which does not broadcast to " + to.toString(),
         from.rank() != to.rank() ? "give both the same rank with expandDims(x, dimension)"
                                  : "make the extents equal; only an extent of 1 is repeated");
  return good;
}

ValueId Recorder::splat(ValueId scalar, const Shape &shape, Location loc) {
  ValueType t = typeOf(scalar);
  t.isTile = true;
  t.shape = shape;
  const TypeId to = typeId(t);
  return result(to, loc, Op::Splat, ' ', ValueText{scalar}, " : ", TypeText{value(scalar).type}, " to ", TypeText{to});
}

ValueId Recorder::broadcast(ValueId tile, const Shape &shape, Location loc) {
  ValueType t = typeOf(tile);
  if (t.shape == shape)
    return tile;
  t.shape = shape;
  const TypeId to = typeId(t);
  return result(to, loc, Op::Broadcast, ' ', ValueText{tile}, " : ", TypeText{value(tile).type}, " to ", TypeText{to});
}

std::optional<ValueId> Recorder::constant(DType e, const detail::Constant &c, const Shape *shape, std::string_view what,
                                          Location loc) {
  std::string literal;
  if (!appendLiteral(literal, e, c)) {
    fail(loc, what,
         "the number " + constantText(c) + " is no " + std::string(elementName(e)) + ", which holds " + rangeText(e),
         "use a number in that range, or cast the other operand to a wider type");
    return std::nullopt;
  }
  const TypeId type = shape ? tile(e, *shape) : scalar(e);
  if (shape)
    return result(type, loc, Op::Constant, " dense<", std::string_view(literal), "> : ", TypeText{type});
  if (e == DType::I1)
    return result(type, loc, Op::Constant, ' ', std::string_view(literal));
  return result(type, loc, Op::Constant, ' ', std::string_view(literal), " : ", TypeText{type});
}

std::optional<ValueId> Recorder::bring(const Operand &o, const Shape *shape, std::string_view what, Location loc) {
  if (o.kind == Operand::Kind::Constant)
    return constant(o.element, o.constant, shape, what, loc);
  const auto id = find(o, what, loc);
  if (!id)
    return id;
  const ValueType &t = typeOf(*id);
  if (!shape) {
    if (!t.isTile)
      return id;
    fail(loc, what, "a tile of shape " + t.shape.toString() + " is used as a scalar", "reduce it first");
    return std::nullopt;
  }
  return t.isTile ? broadcast(*id, *shape, loc) : splat(*id, *shape, loc);
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

void Recorder::openRegion(Frame frame) {
  frames.push_back(std::move(frame));
  openRegions.push_back(static_cast<RegionId>(isOpen.size()));
  isOpen.push_back(true);
}

void Recorder::closeRegion() {
  isOpen[openRegions.back()] = false;
  openRegions.pop_back();
  frames.pop_back();
}

bool Recorder::outsideCombine(std::string_view what, Location loc) {
  if (!inCombine())
    return true;
  fail(loc, what, "inside a combine function, which works on scalars only",
       "move it out; a combine function uses its parameters, C++ numbers and arithmetic");
  return false;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

void Recorder::put(ValueText v) {
  const Value &row = values[v.id];
  text += '%';
  if (row.part == -2) {
    text += arguments[row.number].name;
    return;
  }
  appendInteger(text, row.number);
  if (row.part >= 0) {
    text += '#';
    appendInteger(text, row.part);
  }
}

void Recorder::putLocation(Location loc) {
  loc = effective(loc);
  if (loc.file_name() != lastFile) {
    lastFile = loc.file_name();
    lastPrefix = " loc(";
    appendQuoted(lastPrefix, fileOf(loc));
    lastPrefix += ':';
  }
  text += lastPrefix;
  appendInteger(text, loc.line());
  text += ':';
  appendInteger(text, loc.column());
  text += ')';
}

std::string Recorder::alias(const std::string &attribute) {
  const auto at = std::find(attributes.begin(), attributes.end(), attribute);
  const auto index = at - attributes.begin();
  if (at == attributes.end())
    attributes.push_back(attribute);
  return "#layout" + std::to_string(index);
}

Kernel Recorder::finish() {
  Kernel kernel;
  kernel.kernelName = kernelName;
  kernel.args = arguments;
  kernel.configEntries = options.config;
#define KILN_KERNEL_OPTION(field, ...) kernel.values.field = options.field;
#define KILN_KERNEL_OPTION3 KILN_KERNEL_OPTION
#include "compiler/target/KernelOptions.def"
  kernel.state = std::move(failure);
  if (!kernel.state.ok())
    return kernel;
  std::string body = std::move(text);
  text.clear();
  text.reserve(body.size() + 1024);
  putAll("// ", std::string_view(kernelName));
  if (const std::string config = kernel.configText(); !config.empty()) {
    put(": ");
    // A comment ends with its line.
    for (const char c : config)
      put(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  }
  put('\n');
  for (std::size_t i = 0; i < attributes.size(); ++i)
    putAll("#layout", static_cast<std::int64_t>(i), " = ", std::string_view(attributes[i]), '\n');
  putAll("module {\n  ", Op::Func, " @", std::string_view(kernelName), "(");
  for (unsigned i = 0; i < arguments.size(); ++i) {
    const KernelArgument &a = arguments[i];
    putAll(i ? ",\n      " : "", ValueText{i}, ": ", TypeText{values[i].type}, " {");
    if (a.traits.divisibility)
      putAll("tile.divisibility = ", a.traits.divisibility, " : i32, ");
    putAll("tile.name = ", Quoted{a.name}, a.traits.noalias ? ", tile.noalias" : "");
    if (const std::string_view how = specializationName(a.traits.specialization); !how.empty())
      putAll(", tile.specialize = ", Quoted{how});
    if (a.counts)
      putAll(", tile.element = ", elementText(*a.counts));
    put('}');
    putLocation(location);
  }
  put(") attributes {tile.kernel");
  forEachKernelOption(options, [&](const auto &option, const auto &value) {
    if (option.isWritten(value))
      putAll(", tile.", option.attribute, " = ", std::string_view(option.attributeOf(value)));
  });
  putAll("} {\n", std::string_view(body));
  line(location, Op::Return);
  put("  }");
  endLine(location);
  put("}");
  endLine(location);
  kernel.module = std::move(text);
  return kernel;
}

} // namespace kiln::language
