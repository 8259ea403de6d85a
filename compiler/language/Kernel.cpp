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

namespace detail {

static constexpr int mostClusterBlocks = 8; // as tile.cluster has it

static bool isCluster(const std::array<int, 3> &cluster) {
  return cluster != std::array<int, 3>{1, 1, 1};
}

static std::string clusterText(const std::array<int, 3> &cluster) {
  return std::to_string(cluster[0]) + "x" + std::to_string(cluster[1]) + "x" + std::to_string(cluster[2]);
}

static bool goodCluster(const std::array<int, 3> &cluster) {
  std::int64_t blocks = 1;
  for (const int n : cluster) {
    if (n < 1 || n > mostClusterBlocks || (n & (n - 1)))
      return false;
    blocks *= n;
  }
  return blocks <= mostClusterBlocks;
}

} // namespace detail

Kernel Kernel::failed(Status why) {
  Kernel kernel;
  kernel.state = std::move(why);
  return kernel;
}

std::string Kernel::configText() const {
  std::string out;
  for (const ConfigEntry &e : configEntries)
    out += e.name + " = " + e.value.text + ", ";
  forEachKernelOption(values, [&](const KernelOptionInfo &option, int value) {
    if (option.isWritten(value))
      out += std::string(option.field) + " = " + std::to_string(value) + ", ";
  });
  if (detail::isCluster(clusterBlocks))
    return out + "cluster = " + detail::clusterText(clusterBlocks);
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
  else if (!goodCluster(options.cluster))
    recorder->failKernel("has a cluster of " + clusterText(options.cluster) + " blocks",
                         "each extent is a power of two, and their product at most " +
                             std::to_string(mostClusterBlocks));
  forEachKernelOption(options, [&](const KernelOptionInfo &option, int value) {
    if (!option.allows(value))
      recorder->failKernel("has " + std::string(option.field) + " " + std::to_string(value), option.rule());
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
