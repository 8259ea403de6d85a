#include "runtime/tools/BenchResources.h"

#include "compiler/codegen/Assembler.h"
#include "kiln/Knobs.h"
#include "runtime/cache/KernelCache.h"
#include "runtime/jit/Metadata.h"
#include "runtime/tools/BenchPrediction.h"
#include "support/Names.h"
#include "support/Text.h"

namespace kiln::tools {
namespace {

/// The PTX of a kernel that an emulator loaded, as the cache has it.
Result<std::string> ptxOf(const LoadedKernel &kernel, const Knobs &knobs) {
  KILN_ASSIGN(const std::string folder, cacheDirectory(knobs));
  if (folder.empty())
    return Status::invalid("the kernel cache is switched off", "name a folder with --cache-dir");
  KILN_ASSIGN(const auto kernels, cache::KernelCache::open({.directory = folder, .create = false}));
  const std::optional<cache::KeyText> key = cache::KeyText::parse(kernel.key());
  std::optional<cache::Entry> entry;
  if (key) {
    KILN_ASSIGN(entry, kernels->lookup(*key));
  }
  if (!entry || entry->kind != cache::EntryKind::Ptx)
    return Status(StatusCode::NotFound, "the kernel cache has no PTX of kernel '" + kernel.name() + "'");
  return std::move(entry->payload);
}

/// As the assembler that would be used for the target says; of what the driver would assemble, as far as that tells.
Status addAssembled(const LoadedKernel &kernel, std::string_view arch, Json &row) {
  KILN_ASSIGN(const Knobs knobs, Knobs::fromEnvironment());
  KILN_ASSIGN(const std::string ptx, ptxOf(kernel, knobs));
  AssemblerSearch search;
  search.nvJitLink = knobs.nvJitLink;
  search.ptxas = knobs.ptxas;
  KILN_ASSIGN(const auto assembler, findAssembler(search));
  KILN_ASSIGN(const AssembledModule module,
              assembler->assemble(ptx, arch, {.optimisation = assemblerLevelOf(kernel.metadata())}));
  if (module.resources.kernels.size() != 1)
    return Status(StatusCode::NotFound, "its report does not name the kernel");
  const KernelResources &found = module.resources.kernels[0];
  row["registers"] = found.registers;
  if (found.spillStoreBytes && found.spillLoadBytes)
    row["spillBytes"] = *found.spillStoreBytes + *found.spillLoadBytes;
  return {};
}

} // namespace

Result<Json> resourcesRow(Device &device, Jit &jit, const FamilyCall &of) {
  const kernels::Callable &callable = *of.family->callable;
  KILN_ASSIGN(const kernels::Arrays inputs, randomInputsOf(jit, of, InputValues::Any));
  KILN_ASSIGN(const kernels::PlacedCall placed,
              kernels::PlacedCall::createForPlans(device, callable, inputs, optionsAsOnGpu(of)));
  const kernels::Callable::Planner planner = callable.bind(jit);
  KILN_ASSIGN(const std::vector<const LoadedKernel *> loaded,
              prepareAll([&](Plan &plan) { return planner(placed.call(), plan); }));
  Json row = {{"kernel", of.family->name()},
              {"dtype", dtypeName(of.type)},
              {"shape", sizeTextOf(of)},
              {"kernels", Json::array()}};
  for (const LoadedKernel *kernel : loaded) {
    const KernelInfo &info = kernel->function().info();
    Json one = {{"kernel", shortName(kernel->name())},
                {"threads", kernel->threads()},
                {"sharedBytes", info.staticSharedBytes + kernel->dynamicSharedBytes()}};
    if (device.info().driver.empty()) { // nothing was loaded
      const Json said = Json::parse(kernel->metadata(), nullptr, /*allow_exceptions=*/false);
      for (const auto &[to, from] : {std::pair("registers", "registers"), std::pair("spillBytes", "spill_bytes")})
        if (said.is_object() && said.contains(from))
          one[to] = said[from];
    } else if (device.info().kind == DeviceKind::Cuda) {
      one["registers"] = info.registersPerThread;
      one["spillBytes"] = info.localBytesPerThread;
    } else if (Status s = addAssembled(*kernel, jit.codeTarget(), one); !s.ok())
      one["unknown"] = s.toString();
    row["kernels"].push_back(std::move(one));
  }
  return row;
}

std::string resourcesText(const Json &row) {
  std::string out = row["kernel"].get<std::string>() + " " + row["dtype"].get<std::string>() + " " +
                    row["shape"].get<std::string>() + "\n";
  for (const Json &k : row["kernels"]) {
    const auto number = [&](const char *name) {
      return k.contains(name) ? std::to_string(k[name].get<std::uint64_t>()) : std::string("unknown");
    };
    out += "  " + k["kernel"].get<std::string>() + ": " + number("threads") + " threads, " + number("registers") +
           " registers, " + number("spillBytes") + " bytes spilled, " + number("sharedBytes") +
           " bytes of shared memory\n";
    if (k.contains("unknown"))
      out += "    " + k["unknown"].get<std::string>() + "\n";
  }
  return out;
}

} // namespace kiln::tools
