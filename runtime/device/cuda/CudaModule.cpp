#include "runtime/device/cuda/CudaModule.h"

#include "runtime/device/cuda/CudaKernel.h"
#include "runtime/device/cuda/PtxSummary.h"
#include "support/Names.h"
#include "support/Text.h"

#include <map>

namespace kiln::cuda {

namespace {

class CudaModule final : public Module {
public:
  CudaModule(std::shared_ptr<CudaContext> context, ModuleHandle module, PtxSummary summary, std::string fileName)
      : context(std::move(context)), module(module), summary(std::move(summary)), fileName(std::move(fileName)) {}
  ~CudaModule() override {
    kernels.clear();
    const ContextScope scope(*context);
    context->driver().moduleUnload(module);
  }

  Result<Kernel *> kernel(std::string_view name) override {
    const std::lock_guard<std::mutex> lock(mutex);
    std::string key(name);
    if (auto found = kernels.find(key); found != kernels.end())
      return static_cast<Kernel *>(found->second.get());
    const ContextScope scope(*context);
    KILN_TRY(scope.status());
    FunctionHandle function = nullptr;
    const ErrorCode error = context->driver().moduleGetFunction(&function, module, key.c_str());
    if (error == errorNotFound || key.find('\0') != std::string::npos)
      return noSuchKernel(key);
    KILN_TRY(context->check(error, "looking up kernel '" + key + "' of '" + fileName + "' (cuModuleGetFunction)"));
    KILN_ASSIGN(std::unique_ptr<CudaKernel> made, CudaKernel::create(context, function, key, summary.entry(name)));
    Kernel *out = made.get();
    kernels.emplace(std::move(key), std::move(made));
    return out;
  }

  std::vector<std::string> kernelNames() const override {
    std::vector<std::string> names;
    names.reserve(summary.entries.size());
    for (const KernelInfo &e : summary.entries)
      names.push_back(e.name);
    const Driver &driver = context->driver();
    if (!names.empty() || !driver.moduleGetFunctionCount || !driver.moduleEnumerateFunctions || !driver.funcGetName)
      return names;
    const ContextScope scope(*context);
    unsigned count = 0;
    if (!scope.status().ok() || driver.moduleGetFunctionCount(&count, module) != 0)
      return names;
    std::vector<FunctionHandle> functions(count);
    if (driver.moduleEnumerateFunctions(functions.data(), count, module) != 0)
      return names;
    for (FunctionHandle f : functions)
      if (const char *name = nullptr; driver.funcGetName(&name, f) == 0 && name)
        names.emplace_back(name);
    return names;
  }

private:
  Status noSuchKernel(const std::string &name) const {
    const std::vector<std::string> names = kernelNames();
    const std::vector<std::string> near = nearest(name, names);
    return {StatusCode::NotFound,
            "'" + fileName + "' has no kernel '" + shortName(name) + "'" +
                (names.empty() ? std::string() : "; its kernels: " + join(shortNames(names))),
            near.empty() ? "name one of its entries" : "did you mean " + join(shortNames(near), " or ") + "?"};
  }

  std::shared_ptr<CudaContext> context;
  ModuleHandle module;
  PtxSummary summary;
  std::string fileName;
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<CudaKernel>> kernels;
};

/// While a thread captures in the global mode, the driver refuses calls of every thread that could depend on the
/// capture, and ends it; loading a module is not one that could.  What the calling thread captures itself is its
/// caller's affair.
class OutsideCaptures {
public:
  explicit OutsideCaptures(const Driver &driver) : driver(driver) {
    changed = driver.threadExchangeCaptureMode && driver.threadExchangeCaptureMode(&mode) == 0;
  }
  ~OutsideCaptures() {
    if (changed)
      driver.threadExchangeCaptureMode(&mode);
  }
  OutsideCaptures(const OutsideCaptures &) = delete;
  OutsideCaptures &operator=(const OutsideCaptures &) = delete;

private:
  const Driver &driver;
  int mode = 2; ///< relaxed; then what it was
  bool changed = false;
};

Result<std::unique_ptr<Module>> load(std::shared_ptr<CudaContext> context, const void *image, PtxSummary summary,
                                     const std::string &fileName, const std::string &what) {
  const ContextScope scope(*context);
  KILN_TRY(scope.status());
  std::string log(8192, '\0');
  int options[] = {jit_option::errorLog, jit_option::errorLogBytes};
  // Numbers travel in the pointers themselves. NOLINTNEXTLINE(performance-no-int-to-ptr)
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size() - 1)};
  ModuleHandle module = nullptr;
  const OutsideCaptures outside(context->driver());
  const ErrorCode error = context->driver().moduleLoadDataEx(&module, image, 2, options, values);
  if (error != 0) {
    log.resize(log.find('\0'));
    while (!log.empty() && (log.back() == '\n' || log.back() == ' '))
      log.pop_back();
    Status s = context->check(error, what);
    return Status(s.code(), s.message() + (log.empty() ? "" : "\n" + log), s.remedy());
  }
  return std::unique_ptr<Module>(
      std::make_unique<CudaModule>(std::move(context), module, std::move(summary), fileName));
}

} // namespace

Result<std::unique_ptr<Module>> loadPtxModule(std::shared_ptr<CudaContext> context, std::string_view text,
                                              std::string_view fileName) {
  const std::string file(fileName);
  if (text.find('\0') != std::string_view::npos)
    return Status(StatusCode::CompileError, "'" + file + "' is not PTX: it has a zero byte",
                  text.starts_with("\x7f"
                                   "ELF")
                      ? "load a cubin as a cubin"
                      : "give PTX text");
  PtxSummary summary = summarisePtx(text, fileName);
  KILN_TRY(checkPtxTarget(summary.target, context->info().sm, fileName));
  std::string what = "loading '" + file + "'";
  if (summary.versionMajor)
    what +=
        format(" (PTX %u.%u, %s; the driver is ", summary.versionMajor, summary.versionMinor, summary.target.c_str()) +
        context->driver().versionText() + ")";
  const std::string terminated(text);
  return load(std::move(context), terminated.c_str(), std::move(summary), file, what);
}

Result<std::unique_ptr<Module>> loadCubinModule(std::shared_ptr<CudaContext> context,
                                                std::span<const std::byte> image) {
  // The driver takes no length: it believes the image's own tables.
  if (image.size() < 64 || static_cast<unsigned char>(image[0]) != 0x7f || static_cast<char>(image[1]) != 'E' ||
      static_cast<char>(image[2]) != 'L' || static_cast<char>(image[3]) != 'F')
    return Status(StatusCode::CompileError,
                  "the image of " + std::to_string(image.size()) + " bytes is not a cubin (an ELF file)",
                  "assemble PTX with ptxas, or load it as PTX");
  return load(std::move(context), image.data(), {}, "<cubin>",
              "loading a cubin of " + std::to_string(image.size()) + " bytes");
}

} // namespace kiln::cuda
