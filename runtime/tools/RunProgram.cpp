#include "runtime/tools/RunProgram.h"

#include "runtime/io/File.h"
#include "runtime/tools/EntryName.h"

namespace kiln::tools {
namespace {

class PtxProgram final : public RunProgram {
public:
  PtxProgram(std::unique_ptr<Module> module, Kernel &kernel, const LaunchConfig &config)
      : module(std::move(module)), kernel(kernel), config(config) {}

  const KernelInfo &info() const override { return kernel.info(); }
  Status launch(std::span<const std::byte> packed) override { return kernel.launch(config, packed); }
  void describe(Json &report) const override {
    report["grid"] = toJson(config.grid);
    report["block"] = toJson(config.block);
    report["shared"] = config.dynamicSharedBytes;
  }

private:
  std::unique_ptr<Module> module;
  Kernel &kernel;
  LaunchConfig config;
};

} // namespace

bool isTextKernel(const std::string &file) {
  return file.ends_with(".mlir");
}

Result<std::unique_ptr<RunProgram>> loadPtxProgram(Device &device, const RunOptions &o) {
  LaunchConfig config;
  for (const auto &[option, text] : {std::pair("--grid", &o.grid), std::pair("--block", &o.block)})
    if (text->empty())
      return Status::invalid(std::string(option) + " is required to run PTX",
                             std::string("write it as ") + option + " 4,1,1");
  KILN_ASSIGN(config.grid, parseDims("--grid", o.grid));
  KILN_ASSIGN(config.block, parseDims("--block", o.block));
  if (!o.cluster.empty()) {
    KILN_ASSIGN(config.cluster, parseDims("--cluster", o.cluster));
  }
  config.dynamicSharedBytes = o.sharedBytes;
  config.cooperative = o.cooperative;
  KILN_ASSIGN(const std::string image, readTextFile(o.file));
  const bool cubin = image.starts_with("\x7f"
                                       "ELF");
  KILN_ASSIGN(std::unique_ptr<Module> module,
              cubin ? device.loadCubin(std::as_bytes(std::span(image.data(), image.size())))
                    : device.loadPtx(image, o.file));
  KILN_ASSIGN(const std::string name, chooseEntry(o.file, module->kernelNames(), o.entry));
  KILN_ASSIGN(Kernel * kernel, module->kernel(name));
  return std::unique_ptr<RunProgram>(new PtxProgram(std::move(module), *kernel, config));
}

Result<std::unique_ptr<RunProgram>> loadProgram(Device &device, const RunOptions &o, FirstCalls &firstCalls) {
  return isTextKernel(o.file) ? loadTextProgram(device, o, firstCalls) : loadPtxProgram(device, o);
}

} // namespace kiln::tools
