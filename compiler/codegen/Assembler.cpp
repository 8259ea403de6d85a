#include "compiler/codegen/Assembler.h"

#include "compiler/codegen/AssemblerKinds.h"
#include "compiler/codegen/AssemblerLog.h"
#include "compiler/codegen/CubinReader.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln {
namespace {

/// One row an assembler, preferred first.
struct AssemblerRow {
  std::string_view name;
  Result<std::shared_ptr<const Assembler>> (*find)(const AssemblerSearch &);
};
constexpr AssemblerRow assemblerRows[] = {
    {"nvJitLink", findNvJitLink}, // in process: half the time of a program
    {"ptxas", findPtxas},
};

/// One row a miscompile.  nvJitLink and ptxas of one CUDA version hold the same assembler, so rows name versions only.
struct DefectRow {
  AssemblerDefect defect;
  AssemblerVersion firstGood;
};
constexpr DefectRow defectRows[] = {
    {AssemblerDefect::RegisterSourcedWgmma, {13, 3}},
};

} // namespace

const KernelResources *ResourceReport::find(std::string_view name) const {
  for (const KernelResources &kernel : kernels)
    if (kernel.name == name)
      return &kernel;
  return nullptr;
}

bool versionHasDefect(AssemblerVersion version, AssemblerDefect defect) {
  return std::ranges::any_of(defectRows,
                             [&](const DefectRow &row) { return row.defect == defect && version < row.firstGood; });
}

bool Assembler::hasDefect(AssemblerDefect defect) const {
  return versionHasDefect(version(), defect);
}

std::vector<std::shared_ptr<const Assembler>> listAssemblers(const AssemblerSearch &search,
                                                             std::vector<std::string> &notes) {
  std::vector<std::shared_ptr<const Assembler>> found;
  for (const AssemblerRow &row : assemblerRows) {
    Result<std::shared_ptr<const Assembler>> assembler = row.find(search);
    if (assembler.ok())
      found.push_back(std::move(*assembler));
    else
      notes.push_back(assembler.status().message());
  }
  return found;
}

Result<std::shared_ptr<const Assembler>> findAssembler(const AssemblerSearch &search) {
  std::vector<std::string> notes;
  for (const AssemblerRow &row : assemblerRows) {
    Result<std::shared_ptr<const Assembler>> assembler = row.find(search);
    if (assembler.ok())
      return assembler;
    notes.push_back(assembler.status().message());
  }
  return Status(StatusCode::NotFound, "no assembler for GPU code: " + join(notes, "; "),
                "install CUDA's nvJitLink library or ptxas, or stay with PTX: the driver assembles it too");
}

Status checkAssemblyArch(std::string_view arch) {
  std::string_view rest = arch;
  const bool prefixed = rest.starts_with("sm_");
  if (prefixed)
    rest.remove_prefix(3);
  if (!rest.empty() && rest.back() >= 'a' && rest.back() <= 'z')
    rest.remove_suffix(1);
  const bool digits =
      !rest.empty() && rest.size() <= 4 && std::ranges::all_of(rest, [](char c) { return c >= '0' && c <= '9'; });
  if (prefixed && digits)
    return {};
  return Status::invalid("'" + std::string(arch) + "' is not an assembly arch", "write it as sm_80 or sm_90a");
}

ResourceReport makeReport(std::string_view log, std::span<const std::byte> cubin) {
  ResourceReport report{resourcesFromLog(log)};
  if (Result<std::vector<KernelResources>> stated = resourcesFromCubin(cubin); stated.ok())
    for (KernelResources &kernel : *stated)
      if (!report.find(kernel.name))
        report.kernels.push_back(std::move(kernel));
  std::ranges::sort(report.kernels, {}, &KernelResources::name);
  return report;
}

} // namespace kiln
