#include "runtime/jit/ArgumentClass.h"

#include "support/Text.h"

#include <bit>

namespace kiln {

namespace {

bool isInteger(ArgumentType type) {
  return type >= ArgumentType::I1 && type <= ArgumentType::I64;
}

std::string position(std::size_t i, std::string_view name) {
  return "argument " + std::to_string(i) + " '" + std::string(name) + "'";
}

using FactKind = ArgumentFact::Kind;

} // namespace

Result<ArgumentLayout> ArgumentLayout::create(const KernelSource &source) {
  ArgumentLayout out;
  const std::string kernel = "kernel '" + source.name + "': ";
  if (source.arguments.size() > LaunchArguments::maxCount)
    return Status::invalid(kernel + std::to_string(source.arguments.size()) + " arguments; the limit is " +
                               std::to_string(LaunchArguments::maxCount),
                           "pass a table in memory");
  for (std::size_t i = 0; i < source.arguments.size(); ++i) {
    const ArgumentSpec &spec = source.arguments[i];
    const std::string what = kernel + position(i, spec.name);
    Result<ParsedArgumentType> type = parseArgumentType(spec.type);
    if (!type)
      return type.takeStatus().withContext(what);
    const std::uint32_t size = argumentBytes(type->type);
    const std::uint32_t offset = (out.totalBytes + size - 1) / size * size;
    out.totalBytes = offset + size;
    const bool pointer = type->type == ArgumentType::Pointer;
    const bool classable = pointer || type->type == ArgumentType::I32 || type->type == ArgumentType::I64;
    switch (spec.specialise) {
    case Specialise::None:
      break;
    case Specialise::Divisibility:
    case Specialise::Stride:
      if (!classable || (pointer && spec.specialise == Specialise::Stride))
        return Status::invalid(what + " of type " + spec.type + " cannot be specialised by " +
                                   std::string(specialiseName(spec.specialise)),
                               "divisibility is for pointers, i32 and i64; stride for i32 and i64");
      if (!std::has_single_bit(spec.elementBytes) || (pointer && spec.elementBytes != 1))
        return Status::invalid(what + " counts elements of " + std::to_string(spec.elementBytes) + " bytes",
                               "integers count elements of 1, 2, 4 or 8 bytes");
      out.classed.push_back({offset, static_cast<std::uint32_t>(i), size == 8, spec.specialise == Specialise::Stride,
                             static_cast<std::uint8_t>(classDivisor(spec))});
      break;
    case Specialise::Value:
      if (!isInteger(type->type))
        return Status::invalid(what + " of type " + spec.type + " cannot be specialised by value",
                               "only integers can; make it part of the configuration");
      if (out.values.size() == ClassKey::maxValues)
        return Status::invalid(what + ": a kernel has at most " + std::to_string(ClassKey::maxValues) +
                                   " arguments specialised by value",
                               "make it part of the configuration");
      out.values.push_back(static_cast<unsigned>(i));
      break;
    }
    if (pointer && type->elementBytes > 1)
      out.pointers.push_back({offset, type->elementBytes - 1u});
    if (type->elementType)
      out.elements.push_back({static_cast<std::uint32_t>(i), kernelElement(*type->elementType)});
    out.offsets.push_back(offset);
    out.types.push_back(type->type);
    out.names.push_back(spec.name);
    out.parsed.push_back(std::move(*type));
  }
  if (out.totalBytes > LaunchArguments::maxBytes)
    return Status::invalid(kernel + "its arguments take " + std::to_string(out.totalBytes) + " bytes; the limit is " +
                               std::to_string(LaunchArguments::maxBytes),
                           "pass a table in memory");
  return out;
}

Status ArgumentLayout::checkTypes(const ArgumentView &view) const {
  const auto fits = [](ArgumentType wanted, ArgumentType given) {
    return wanted == given ||
           (given == ArgumentType::Word64 && (wanted == ArgumentType::Pointer || wanted == ArgumentType::I64));
  };
  if (view.count != types.size()) {
    if (view.count > LaunchArguments::maxCount)
      return Status::invalid("more arguments were given than a launch can take",
                             "the limits are " + std::to_string(LaunchArguments::maxCount) + " arguments and " +
                                 std::to_string(LaunchArguments::maxBytes) + " bytes");
    return Status::invalid("it has " + std::to_string(types.size()) + " arguments (" + join(names) + "), " +
                               std::to_string(view.count) + " were given",
                           view.count < types.size() ? "'" + names[view.count] + "' is the first that is missing"
                                                     : "leave out the last ones");
  }
  for (std::uint32_t i = 0; i < view.count; ++i)
    if (!fits(types[i], view.types[i])) {
      const std::string wanted(argumentTypeName(types[i]));
      return Status::invalid(position(i, names[i]) + " has type " + wanted + ", a value of type " +
                                 std::string(argumentTypeName(view.types[i])) + " was given",
                             types[i] == ArgumentType::Pointer ? "give a Tensor, a Buffer or an address"
                                                               : "convert the value to " + wanted);
    }
  for (const Element &e : elements) {
    const ParsedArgumentType &wanted = parsed[e.argument];
    const std::uint8_t code = view.elements ? view.elements[e.argument] : 0;
    if (code && !wanted.pointsTo(elementOf(code)))
      return Status::invalid(position(e.argument, names[e.argument]) + " is a pointer to " + wanted.element +
                                 ", a tensor of " + std::string(dtypeName(elementOf(code))) + " was given",
                             "convert the tensor to " + wanted.element + ", or record the kernel for " +
                                 std::string(dtypeName(elementOf(code))));
  }
  return {};
}

Status ArgumentLayout::checkPointers(const std::byte *data, std::string_view kernel) const {
  for (unsigned i = 0; i < count(); ++i) {
    if (types[i] != ArgumentType::Pointer)
      continue;
    const std::uint64_t address = read64(data + offsets[i]);
    if (address & (parsed[i].elementBytes - 1u))
      return Status::invalid("kernel '" + std::string(kernel) + "': " + position(i, names[i]) + " is " +
                                 format("0x%llx", static_cast<unsigned long long>(address)) +
                                 ", which is no multiple of the " + std::to_string(parsed[i].elementBytes) +
                                 " bytes of " + parsed[i].element,
                             "align the pointer to its element type");
  }
  return {};
}

std::int64_t ArgumentLayout::integer(const std::byte *data, unsigned argument) const {
  const std::byte *at = data + offsets[argument];
  switch (argumentBytes(types[argument])) {
  case 1:
    return types[argument] == ArgumentType::I1 ? static_cast<std::int64_t>(*at) : static_cast<std::int8_t>(*at);
  case 2: {
    std::int16_t v;
    std::memcpy(&v, at, 2);
    return v;
  }
  case 4:
    return static_cast<std::int32_t>(read32(at));
  default:
    return static_cast<std::int64_t>(read64(at));
  }
}

std::vector<ArgumentFact> ArgumentLayout::facts(const ClassKey &key) const {
  std::vector<ArgumentFact> out(count());
  for (std::size_t i = 0; i < classed.size(); ++i) {
    const std::uint64_t code = key.words[i / 32] >> (2 * (i % 32)) & 3;
    if (code == codeDivisible)
      out[classed[i].argument] = ArgumentFact::divisible(classed[i].divisor);
    else if (code == codeOne)
      out[classed[i].argument] = ArgumentFact::equals(1);
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    out[values[i]] = {FactKind::Equals, static_cast<std::int64_t>(key.words[classWords() + i])};
  return out;
}

Result<ClassKey> ArgumentLayout::keyOf(std::span<const ArgumentFact> given, std::string_view kernel) const {
  const std::string prefix = "kernel '" + std::string(kernel) + "': ";
  if (!given.empty() && given.size() != count())
    return Status::invalid(prefix + std::to_string(given.size()) + " facts for " + std::to_string(count()) +
                               " arguments",
                           "give one an argument, or none");
  ClassKey key;
  key.used = keyWords();
  std::vector<ArgumentFact> left(given.begin(), given.end());
  left.resize(count());
  for (std::size_t i = 0; i < classed.size(); ++i) {
    ArgumentFact &fact = left[classed[i].argument];
    std::uint64_t code = codeNothing;
    // Of stronger facts the kernel uses what it asks for.
    if (fact.kind == FactKind::Divisible && fact.value > 0 && fact.value % classed[i].divisor == 0)
      code = codeDivisible;
    else if (fact.kind == FactKind::Equals && fact.value == 1 && classed[i].stride)
      code = codeOne;
    else if (fact.kind != FactKind::Nothing)
      continue; // left over, refused below
    key.words[i / 32] |= code << (2 * (i % 32));
    fact = {};
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    ArgumentFact &fact = left[values[i]];
    if (fact.kind != FactKind::Equals)
      return Status::invalid(prefix + position(values[i], names[values[i]]) +
                                 " is specialised by value, and no value "
                                 "was given",
                             "give its value");
    key.words[classWords() + i] = static_cast<std::uint64_t>(fact.value);
    fact = {};
  }
  for (unsigned i = 0; i < count(); ++i)
    if (left[i].kind != FactKind::Nothing)
      return Status::invalid(prefix + position(i, names[i]) + " is not specialised by " +
                                 (left[i].kind == FactKind::Equals ? "the value " : "divisibility by ") +
                                 std::to_string(left[i].value),
                             "declare it so in the kernel");
  return key;
}

std::string ArgumentLayout::variantText(const ClassKey &key) const {
  std::string out;
  const std::vector<ArgumentFact> known = facts(key);
  for (unsigned i = 0; i < count(); ++i) {
    if (known[i].kind == FactKind::Nothing)
      continue;
    out += (out.empty() ? "" : " ") + names[i];
    out += (known[i].kind == FactKind::Divisible ? "/" : "=") + std::to_string(known[i].value);
  }
  return (out.empty() ? "general" : out) + (key.withoutMaps ? ", no tensor maps" : "");
}

std::string ArgumentLayout::valuesText(const std::byte *data) const {
  std::string out;
  for (unsigned i = 0; i < count(); ++i) {
    out += (out.empty() ? "" : " ") + names[i] + "=";
    const std::byte *at = data + offsets[i];
    if (types[i] == ArgumentType::Pointer)
      out += format("0x%llx", static_cast<unsigned long long>(read64(at)));
    else if (isInteger(types[i]))
      out += std::to_string(integer(data, i));
    else if (types[i] == ArgumentType::F32) {
      float v;
      std::memcpy(&v, at, 4);
      out += format("%.9g", static_cast<double>(v));
    } else if (types[i] == ArgumentType::F64) {
      double v;
      std::memcpy(&v, at, 8);
      out += format("%.17g", v);
    } else {
      std::uint16_t v;
      std::memcpy(&v, at, 2);
      out += format("bits 0x%04x", v);
    }
  }
  return out;
}

} // namespace kiln
