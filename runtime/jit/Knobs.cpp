#include "kiln/Knobs.h"

#include "kiln/Device.h"
#include "runtime/cache/KernelCache.h"
#include "support/ParseNumber.h"
#include "support/Text.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace kiln {

namespace {

using knob::Checks;
using knob::Isolation;
using knob::Number;
using knob::Switch;

constexpr KnobInfo table[] = {
#define KILN_KNOB(field, variable, flag, type, standard, inKey, request, text)                                         \
  {#field, variable, flag, KnobType::type, standard, KnobInKey::inKey, request, text},
#include "runtime/jit/Knobs.def"
};

Result<bool> parseBool(std::string_view text) {
  for (std::string_view yes : {"1", "on", "true", "yes"})
    if (text == yes)
      return true;
  for (std::string_view no : {"", "0", "off", "false", "no"})
    if (text == no)
      return false;
  return Status::invalid("'" + std::string(text) + "' is neither on nor off", "use 1 or 0");
}

Result<std::uint64_t> parseBytes(std::string_view text) {
  const auto refuse = [&] {
    return Status::invalid("'" + std::string(text) + "' is no number of bytes", "use a number, or one with K, M or G");
  };
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<std::uint64_t> value = parseNumber<std::uint64_t>(text.substr(0, digits));
  const std::string_view suffix = text.substr(digits);
  if (!value)
    return refuse();
  unsigned shift = 0;
  if (suffix == "K" || suffix == "k")
    shift = 10;
  else if (suffix == "M" || suffix == "m")
    shift = 20;
  else if (suffix == "G" || suffix == "g")
    shift = 30;
  else if (!suffix.empty())
    return refuse();
  if (*value > (~std::uint64_t(0) >> shift))
    return refuse();
  return *value << shift;
}

// `read` and `write`, one overload a kind of value.  Text and Path are the same C++ type.
Status read(std::string_view text, std::string &out) {
  out = text;
  return {};
}
Status read(std::string_view text, std::vector<std::string> &out) {
  out.clear();
  for (std::string_view part : split(text, ':'))
    if (!part.empty())
      out.emplace_back(part);
  return {};
}
Status read(std::string_view text, bool &out) {
  KILN_ASSIGN(out, parseBool(text));
  return {};
}
Status read(std::string_view text, std::uint64_t &out) {
  KILN_ASSIGN(out, parseBytes(text));
  return {};
}
Status read(std::string_view text, Switch &out) {
  if (text == "auto") {
    out = Switch::Auto;
    return {};
  }
  const Result<bool> value = parseBool(text);
  if (!value || text.empty())
    return Status::invalid("'" + std::string(text) + "' is none of on, off, auto", "use on, off or auto");
  out = *value ? Switch::On : Switch::Off;
  return {};
}
Status read(std::string_view text, Isolation &out) {
  if (text == "thread")
    out = Isolation::Thread;
  else if (text == "none")
    out = Isolation::None;
  else if (text == "child")
    out = Isolation::Child;
  else if (text == "auto")
    out = Isolation::Auto;
  else
    return Status::invalid("'" + std::string(text) + "' is none of auto, thread, none, child",
                           "use auto, thread, none or child");
  return {};
}
Status read(std::string_view text, Schedule &out) {
  KILN_ASSIGN(out, parseSchedule(text));
  return {};
}
Status read(std::string_view text, MatrixMode &out) {
  KILN_ASSIGN(out, parseMatrixMode(text));
  return {};
}
Status read(std::string_view text, Checks &out) {
  if (text == "on")
    out = Checks::On;
  else if (text == "off")
    out = Checks::Off;
  else if (text == "fail")
    out = Checks::Fail;
  else
    return Status::invalid("'" + std::string(text) + "' is none of on, off, fail", "use on, off or fail");
  return {};
}
Status read(std::string_view text, Number &out) {
  const std::optional<std::uint64_t> value = parseNumber<std::uint64_t>(text);
  if (!value)
    return Status::invalid("'" + std::string(text) + "' is no number from 0 to 18446744073709551615",
                           "use a whole number");
  out = static_cast<Number>(*value);
  return {};
}

std::string write(const std::string &value) {
  return value;
}
std::string write(const std::vector<std::string> &value) {
  return join(value, ":");
}
std::string write(bool value) {
  return value ? "1" : "0";
}
std::string write(std::uint64_t value) {
  for (unsigned shift : {30u, 20u, 10u})
    if (value && value % (std::uint64_t(1) << shift) == 0)
      return std::to_string(value >> shift) + (shift == 30 ? "G" : shift == 20 ? "M" : "K");
  return std::to_string(value);
}
std::string write(Switch value) {
  return value == Switch::Auto ? "auto" : value == Switch::On ? "on" : "off";
}
std::string write(Isolation value) {
  switch (value) {
  case Isolation::Auto:
    return "auto";
  case Isolation::Thread:
    return "thread";
  case Isolation::None:
    return "none";
  case Isolation::Child:
    return "child";
  }
  return "?";
}
std::string write(Schedule value) {
  return std::string(scheduleName(value));
}
std::string write(MatrixMode value) {
  return std::string(matrixModeName(value));
}
std::string write(Checks value) {
  return value == Checks::On ? "on" : value == Checks::Off ? "off" : "fail";
}
std::string write(Number value) {
  return std::to_string(static_cast<std::uint64_t>(value));
}

const KnobInfo *findKnob(std::string_view name) {
  for (const KnobInfo &k : table)
    if (name == k.variable || name == k.flag)
      return &k;
  return nullptr;
}

Status noSuchKnob(std::string_view name) {
  std::vector<std::string> names;
  for (const KnobInfo &k : table)
    names.emplace_back(name.starts_with("--") ? k.flag : k.variable);
  const std::vector<std::string> near = nearest(name, names);
  return {StatusCode::NotFound, "there is no setting '" + std::string(name) + "'",
          near.empty() ? "settings: " + join(names) : "did you mean " + join(near, " or ") + "?"};
}

} // namespace

std::span<const KnobInfo> allKnobs() {
  return table;
}

std::string_view knobTypeName(KnobType type) {
  switch (type) {
  case KnobType::Text:
    return "text";
  case KnobType::Path:
    return "path";
  case KnobType::Paths:
    return "paths, separated by `:`";
  case KnobType::Bool:
    return "0 or 1";
  case KnobType::Bytes:
    return "bytes";
  case KnobType::Switch:
    return "on, off, auto";
  case KnobType::Isolation:
    return "auto, thread, child, none";
  case KnobType::Schedule:
    return "in-order, random, adversarial";
  case KnobType::MatrixMode:
    return "exact, fast";
  case KnobType::Checks:
    return "on, off, fail";
  case KnobType::Number:
    return "number";
  }
  return "?";
}

Knobs::Knobs() {
  for (const KnobInfo &k : table)
    (void)set(k.variable, k.standard); // a test reads every default back
}

Status Knobs::set(std::string_view name, std::string_view value) {
  const KnobInfo *info = findKnob(name);
  if (!info)
    return noSuchKnob(name);
  const std::string_view wanted = info->field;
#define KILN_KNOB(field, variable, flag, type, standard, inKey, request, text)                                         \
  if (wanted == #field)                                                                                                \
    if (Status s = read(value, this->field); !s.ok())                                                                  \
      return std::move(s).withContext(std::string(name));
#include "runtime/jit/Knobs.def"
  return {};
}

Result<std::string> Knobs::get(std::string_view name) const {
  const KnobInfo *info = findKnob(name);
  if (!info)
    return noSuchKnob(name);
  const std::string_view wanted = info->field;
#define KILN_KNOB(field, variable, flag, type, standard, inKey, request, text)                                         \
  if (wanted == #field)                                                                                                \
    return write(this->field);
#include "runtime/jit/Knobs.def"
  return Status(StatusCode::Internal, "setting '" + std::string(name) + "' has no field");
}

Result<Knobs> Knobs::fromEnvironment() {
  Knobs out;
  for (const KnobInfo &k : table)
    if (const char *value = std::getenv(std::string(k.variable).c_str()))
      KILN_TRY(out.set(k.variable, value));
  return out;
}

EmulatorOptions emulatorOptions(const Knobs &knobs) {
  EmulatorOptions out;
  out.schedule = knobs.schedule;
  out.seed = static_cast<std::uint64_t>(knobs.seed);
  out.mma = knobs.mma;
  out.checks = knobs.checks != knob::Checks::Off;
  out.strictProxy = knobs.strictProxy;
  return out;
}

Result<std::string> cacheDirectory(const Knobs &knobs) {
  if (knobs.cacheDir == "off")
    return std::string();
  return cache::defaultCacheDirectory([&](const char *name) -> const char * {
    if (std::strcmp(name, "KILN_CACHE_DIR") == 0)
      return knobs.cacheDir.empty() ? nullptr : knobs.cacheDir.c_str();
    return std::getenv(name);
  });
}

std::vector<std::string> unknownKnobVariables() {
  std::vector<std::string> out;
  for (char **entry = ::environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (name.starts_with("KILN_") && !name.starts_with("KILN_TEST_") && !findKnob(name))
      out.emplace_back(name);
  }
  return out;
}

std::string knobsPage() {
  std::string page =
      "# Settings\n\n"
      "Each setting is an environment variable, a flag of the commands and a field of `kiln::Knobs`. The "
      "list is `runtime/jit/Knobs.def`; a test\nkeeps this page equal to it. \"In the key\" says what of "
      "a setting decides which compiled kernel is used: nothing, its value, or the contents of\nthe "
      "files that it names.\n\n"
      "| variable | flag | field | value | default | in the key | meaning |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const KnobInfo &k : table) {
    const std::string_view inKey = k.inKey == KnobInKey::No ? "no" : k.inKey == KnobInKey::Value ? "value" : "contents";
    page += "| `" + std::string(k.variable) + "` | `" + std::string(k.flag) + "` | `" + std::string(k.field) + "` | " +
            std::string(knobTypeName(k.type)) + " | " +
            (k.standard.empty() ? std::string("empty") : "`" + std::string(k.standard) + "`") + " | " +
            std::string(inKey) + " | " + std::string(k.text) + " |\n";
  }
  return page;
}

} // namespace kiln
