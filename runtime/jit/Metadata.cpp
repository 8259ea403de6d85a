#include "runtime/jit/Metadata.h"
#include "compiler/target/KernelOptions.h"

#include <nlohmann/json.hpp>

namespace kiln {

namespace {

using json = nlohmann::ordered_json; // stages keep their order

const json *member(const json &object, const char *name) {
  if (!object.is_object())
    return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}
bool getInteger(const json &object, const char *name, std::int64_t &out) {
  const json *m = member(object, name);
  if (!m || !m->is_number_integer())
    return false;
  out = m->get<std::int64_t>();
  return true;
}
bool getText(const json &object, const char *name, std::string &out) {
  const json *m = member(object, name);
  if (!m || !m->is_string())
    return false;
  out = m->get<std::string>();
  return true;
}

/// A pointer's type may be spelled with its dialect and memory space ("!tile.ptr<f32>"): only how it is passed counts.
bool sameType(std::string_view compiled, const ParsedArgumentType &declared) {
  if (declared.type == ArgumentType::Pointer)
    return compiled.find("ptr") != std::string_view::npos;
  return compiled == argumentTypeName(declared.type);
}

Status checkArguments(const json &arguments, const KernelSource &source, const ArgumentLayout &layout) {
  if (!arguments.is_array() || arguments.size() != layout.count())
    return Status::invalid("the program has " + std::to_string(arguments.is_array() ? arguments.size() : 0) +
                               " arguments, its source " + std::to_string(layout.count()),
                           "list the program's arguments in the KernelSource");
  for (unsigned i = 0; i < layout.count(); ++i) {
    std::string type;
    std::int64_t offset = -1, bytes = -1;
    if (!getText(arguments[i], "type", type) || !getInteger(arguments[i], "offset", offset) ||
        !getInteger(arguments[i], "bytes", bytes))
      return {StatusCode::Internal,
              "the compiler's metadata describes argument " + std::to_string(i) + " incompletely"};
    if (!sameType(type, layout.type(i)) || offset != layout.offset(i) || bytes != argumentBytes(layout.type(i).type))
      return Status::invalid("argument " + std::to_string(i) + " '" + layout.name(i) + "' is " +
                                 source.arguments[i].type + " in the source and " + type + " of " +
                                 std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                                 " in the program",
                             "give the KernelSource the program's types");
  }
  return {};
}

Status parseGuard(const json &guard, const ArgumentLayout &layout, std::vector<Guard> &out) {
  const Status unknown(StatusCode::Internal,
                       "the compiled kernel relies on a fact that this runtime does not know: " +
                           guard.dump(-1, ' ', false, json::error_handler_t::replace),
                       "use the libkiln-compiler of this version");
  std::int64_t argument = -1;
  Guard one;
  if (!getInteger(guard, "argument", argument) || argument < 0 || argument >= layout.count() || guard.size() != 2)
    return unknown;
  one.argument = static_cast<std::uint32_t>(argument);
  one.offset = layout.offset(one.argument);
  const ArgumentType type = layout.type(one.argument).type;
  one.bytes = argumentBytes(type);
  if (type != ArgumentType::Pointer && type > ArgumentType::I64)
    return unknown;
  if (getInteger(guard, "divisibility", one.value) && one.value > 0 && (one.value & (one.value - 1)) == 0)
    one.kind = Guard::Kind::Divisibility;
  else if (getInteger(guard, "equals", one.value))
    one.kind = Guard::Kind::Equals;
  else
    return unknown;
  out.push_back(one);
  return {};
}

/// Blocks along x, y and z.
bool parseCluster(const json &extents, Dim3 &out) {
  std::uint32_t values[3];
  if (!extents.is_array() || extents.size() != std::size(values))
    return false;
  for (unsigned i = 0; i < std::size(values); ++i) {
    if (!extents[i].is_number_unsigned() || extents[i] < 1 || extents[i] > UINT16_MAX)
      return false;
    values[i] = extents[i].get<std::uint32_t>();
  }
  out = {values[0], values[1], values[2]};
  return true;
}

} // namespace

unsigned assemblerLevelOf(std::string_view text) {
  constexpr KernelOptionInfo option = kernelOption("assemblerLevel");
  std::int64_t level = option.standard;
  return static_cast<unsigned>(
      getInteger(json::parse(text, nullptr, false), std::string(option.attribute).c_str(), level) && option.takes(level)
          ? level
          : option.standard);
}

Result<KernelMetadata> parseMetadata(std::string_view text, const KernelSource &source, const ArgumentLayout &layout) {
  const json parsed = json::parse(text, nullptr, false);
  KernelMetadata out;
  std::int64_t warps = 0, shared = 0;
  const auto incomplete = [](const char *field) {
    return Status(StatusCode::Internal, std::string("the compiler's metadata lacks '") + field + "'",
                  "use the libkiln-compiler of this version");
  };
  if (!getText(parsed, "entry", out.entry))
    return incomplete("entry");
  if (!getText(parsed, "target", out.target))
    return incomplete("target");
  if (!getInteger(parsed, "num_warps", warps) || warps < 1 || warps > 32)
    return incomplete("num_warps");
  if (!getInteger(parsed, "shared_bytes", shared) || shared < 0 || shared > UINT32_MAX)
    return incomplete("shared_bytes");
  if (warps != source.warps)
    return Status::invalid("its text has tile.num_warps = " + std::to_string(warps) +
                               ", its KernelSource says warps = " + std::to_string(source.warps),
                           "set KernelSource::warps to " + std::to_string(warps));
  std::int64_t copyWarps = 0;
  (void)getInteger(parsed, "copy_warps", copyWarps);
  if (copyWarps < 0 || warps + copyWarps > 32)
    return incomplete("copy_warps");
  out.warps = static_cast<unsigned>(warps + copyWarps);
  out.sharedBytes = static_cast<std::uint32_t>(shared);
  if (const json *m = member(parsed, "reproducible"); m && m->is_boolean())
    out.reproducible = m->get<bool>();
  const json *arguments = member(parsed, "arguments");
  if (!arguments)
    return incomplete("arguments");
  KILN_TRY(checkArguments(*arguments, source, layout));
  if (const json *cluster = member(parsed, "cluster"); cluster && !parseCluster(*cluster, out.cluster))
    return Status(StatusCode::Internal, "the compiler's metadata has a wrong 'cluster'",
                  "use the libkiln-compiler of this version");
  if (const json *hidden = member(parsed, "hidden")) {
    KILN_ASSIGN(out.hidden, HiddenParameters::parse(*hidden, layout));
    const json *byPasses = member(parsed, "maps_by_passes");
    out.mapsByPasses = byPasses && byPasses->is_boolean() && byPasses->get<bool>();
    if (out.mapsByPasses)
      out.hidden->limitExtents();
  }
  const json *guards = member(parsed, "guards");
  if (!guards || !guards->is_array())
    return incomplete("guards");
  for (const json &guard : *guards)
    KILN_TRY(parseGuard(guard, layout, out.guards));
  if (const json *stages = member(parsed, "milliseconds"); stages && stages->is_object())
    for (const auto &[name, value] : stages->items())
      if (value.is_number())
        out.stages.push_back({"compile: " + name, value.get<double>()});
  return out;
}

std::string specializationText(std::span<const ArgumentFact> facts, bool withoutMaps) {
  std::string out;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].kind == ArgumentFact::Kind::Nothing)
      continue;
    out += (out.empty() ? "{\"argument\": " : ", {\"argument\": ") + std::to_string(i);
    out += facts[i].kind == ArgumentFact::Kind::Equals ? ", \"equals\": " + std::to_string(facts[i].value) + "}"
                                                       : ", \"divisibility\": " + std::to_string(facts[i].value) + "}";
  }
  if (withoutMaps)
    out += std::string(out.empty() ? "" : ", ") + "{\"tensor_maps\": false}";
  return "[" + out + "]";
}

} // namespace kiln
