#include "Kernel.h"

#include "RecorderImpl.h"

#include <charconv>

namespace kiln::language {

ConfigValue::ConfigValue(double c) {
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, c);
  text.assign(buffer, end);
}

std::string KernelArgument::typeText() const {
  const std::string name(elementText(element));
  return isPointer ? "ptr<" + name + ">" : name;
}

std::string_view specializationName(Specialization how) {
  constexpr std::string_view names[] = {"", "none", "divisibility", "stride", "value"};
  return names[static_cast<unsigned>(how)];
}

Kernel Kernel::failed(Status why) {
  Kernel kernel;
  kernel.state = std::move(why);
  return kernel;
}

std::string Kernel::configText() const {
  std::string out;
  for (const ConfigEntry &e : configEntries)
    out += e.name + " = " + e.value.text + ", ";
  forEachKernelOption(values, [&](const auto &option, const auto &value) {
    if (option.isWritten(value))
      out += std::string(option.field) + " = " + option.textOf(value) + ", ";
  });
  out.resize(out.size() - 2); // warps are always there
  return out;
}

namespace detail {

static bool isIdentifier(std::string_view name) {
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (i && c >= '0' && c <= '9')))
      return false;
  }
  return !name.empty();
}

Recording::Recording(std::string_view name, const KernelOptions &options, std::vector<KernelArgument> arguments,
                     Location loc)
    : recorder(std::make_unique<Recorder>(name, options, std::move(arguments), loc)) {
  if (Recorder::any()) {
    recorder->failKernel("is recorded inside the body of another kernel",
                         "record one kernel after the other; share code between kernels as C++ functions");
    refused = recorder->finish();
    recorder.reset();
    return;
  }
  if (!isIdentifier(name))
    recorder->failKernel("the name '" + std::string(name) + "' is no identifier",
                         "use letters, digits and _, and no digit first");
  else if (const int w = options.warps; w < 1 || w > 32 || (w & (w - 1)))
    recorder->failKernel("has " + std::to_string(w) + " warps", "a block has 1, 2, 4, 8, 16 or 32");
  forEachKernelOption(options, [&](const auto &option, const auto &value) {
    if (!option.allows(value))
      recorder->failKernel("has " + option.named(value), option.rule());
  });
  recorder->checkArguments();
  Recorder::setCurrent(recorder.get());
}

Recording::~Recording() {
  if (recorder)
    Recorder::setCurrent(nullptr);
}

bool Recording::active() const {
  return recorder && recorder->ok();
}

Handle Recording::argument(unsigned index) const {
  return recorder->argument(index);
}

Kernel Recording::finish() {
  return recorder ? recorder->finish() : std::move(refused);
}

} // namespace detail
} // namespace kiln::language
