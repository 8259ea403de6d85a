// `kiln devices`: the GPUs and emulator targets of this machine.
#include "kiln/Knobs.h"
#include "runtime/tools/Commands.h"
#include "runtime/tools/Report.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace kiln::tools {

namespace {

struct Options {
  bool report = false, json = false;
};

std::string gibibytes(std::uint64_t bytes) {
  return bytes ? format("%.1f GiB", double(bytes) / (1ull << 30)) : "-";
}
std::string capabilityOf(unsigned sm) {
  return format("%u.%u", sm / 10, sm % 10);
}

/// How it sums matrix products, if not as hardware does.
std::string modeText(const DeviceInfo &d) {
  return d.mma == MatrixMode::Exact ? "" : ", mma " + std::string(matrixModeName(d.mma));
}

std::vector<std::string> capabilityNames(const Target &target) {
  std::vector<std::string> out;
  for (Capability c : allCapabilities())
    if (target.has(c))
      out.emplace_back(capabilityName(c));
  return out;
}

Json toJson(const DeviceInfo &d) {
  Json out = {{"name", d.name},
              {"kind", d.kind == DeviceKind::Cuda ? "cuda" : "emulator"},
              {"description", d.description},
              {"sm", d.sm},
              {"target", d.target ? Json(d.target->name) : Json()},
              {"multiprocessors", d.multiprocessors},
              {"memoryBytes", d.memoryBytes},
              {"driver", d.driver},
              {"hostThreads", d.hostThreads}};
  if (d.kind == DeviceKind::Emulator)
    out["mma"] = matrixModeName(d.mma);
  if (const Target *t = d.target)
    out["limits"] = {{"sharedStatic", t->sharedStatic},
                     {"sharedOptIn", t->sharedOptIn},
                     {"sharedPerMultiprocessor", t->sharedPerSm},
                     {"sharedReservedPerBlock", t->sharedReserved},
                     {"registersPerMultiprocessor", t->registersPerSm},
                     {"registersPerThread", t->registersPerThread},
                     {"threadsPerBlock", t->threadsPerBlock},
                     {"warpsPerMultiprocessor", t->warpsPerSm},
                     {"blocksPerMultiprocessor", t->blocksPerSm},
                     {"capabilities", capabilityNames(*t)}};
  return out;
}

void printReport(const DeviceInfo &d) {
  std::printf("%s: %s, compute capability %s\n", d.name.c_str(), d.description.c_str(), capabilityOf(d.sm).c_str());
  if (d.kind == DeviceKind::Cuda)
    std::printf("  driver            %s\n  multiprocessors   %u\n  memory            %s (%llu bytes)\n",
                d.driver.c_str(), d.multiprocessors, gibibytes(d.memoryBytes).c_str(),
                static_cast<unsigned long long>(d.memoryBytes));
  else
    std::printf("  CPU level         %s\n  host threads      %u%s\n", d.driver.empty() ? "unknown" : d.driver.c_str(),
                d.hostThreads, modeText(d).c_str());
  const Target *t = d.target;
  if (!t) {
    std::printf("  target            none of Kiln's: kernels for older targets run\n\n");
    return;
  }
  std::printf("  target            %s\n"
              "  shared memory     %u bytes a block static, %u opted in, %u a multiprocessor, %u reserved a block\n"
              "  registers         %u a multiprocessor, at most %u a thread\n"
              "  threads           at most %u a block; %u warps, %u blocks a multiprocessor\n"
              "  capabilities      %s\n\n",
              std::string(t->name).c_str(), t->sharedStatic, t->sharedOptIn, t->sharedPerSm, t->sharedReserved,
              t->registersPerSm, t->registersPerThread, t->threadsPerBlock, t->warpsPerSm, t->blocksPerSm,
              join(capabilityNames(*t)).c_str());
}

int devices(const Options &o) {
  const Result<Knobs> knobs = Knobs::fromEnvironment();
  if (!knobs.ok())
    return fail("devices", knobs.status(), o.json);
  std::vector<std::string> notes;
  const std::vector<DeviceInfo> all = listDevices(notes, emulatorOptions(*knobs));
  if (o.json) {
    Json list = Json::array();
    for (const DeviceInfo &d : all)
      list.push_back(toJson(d));
    printJson({{"devices", list}, {"notes", notes}, {"status", 0}});
    return 0;
  }
  if (o.report)
    for (const DeviceInfo &d : all)
      printReport(d);
  else {
    std::vector<std::vector<std::string>> rows = {{"NAME", "DESCRIPTION", "CAPABILITY", "MEMORY", "DRIVER"}};
    for (const DeviceInfo &d : all)
      rows.push_back({d.name, d.description, capabilityOf(d.sm), gibibytes(d.memoryBytes),
                      d.kind == DeviceKind::Cuda ? d.driver
                                                 : (d.driver.empty() ? "" : d.driver + ", ") +
                                                       std::to_string(d.hostThreads) + " host threads" + modeText(d)});
    printTable(rows);
  }
  for (const std::string &note : notes)
    std::printf("%s\n", note.c_str());
  return 0;
}

} // namespace

void addDevicesCommand(CLI::App &app, int &exitStatus) {
  auto *command = app.add_subcommand("devices", "List the GPUs and the emulator targets of this machine");
  auto options = std::make_shared<Options>();
  command->add_flag("--report", options->report, "Limits and capabilities of each");
  command->add_flag("--json", options->json, "One JSON object, with everything");
  command->footer("Examples:\n"
                  "  kiln devices            the table, and why there is no GPU\n"
                  "  kiln devices --report   shared memory, registers, threads and capabilities of each");
  command->callback([options, &exitStatus] { exitStatus = devices(*options); });
}

} // namespace kiln::tools
