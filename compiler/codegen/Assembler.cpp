#include "compiler/codegen/Assembler.h"

#include "compiler/codegen/AssemblerKinds.h"
#include "compiler/codegen/AssemblerLog.h"
#include "compiler/codegen/CubinReader.h"
#include "support/Text.h"

#include <algorithm>
#include <optional>

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

/// One row a miscompile that follows from the version: nvJitLink and ptxas of one hold the same assembler.
struct DefectRow {
  AssemblerDefect defect;
  AssemblerVersion firstGood;
};
constexpr DefectRow defectRows[] = {
    {AssemblerDefect::RegisterSourcedWgmma, {13, 3}},
};

/// PTX of as many bytes takes a fifth of a second or more: starting a program is little of it.
constexpr std::size_t largePtx = 64 * 1024;

/// Several, preferred first.
class AssemblerChain : public Assembler {
public:
  explicit AssemblerChain(std::vector<std::shared_ptr<const Assembler>> links) : links(std::move(links)) {
    std::vector<std::string> all;
    for (const auto &link : this->links)
      all.push_back(link->identity());
    id = join(all, "; ");
  }

  std::string_view name() const override { return links.front()->name(); }
  AssemblerVersion version() const override { return links.front()->version(); }
  const std::string &identity() const override { return id; }
  const std::string &path() const override { return links.front()->path(); }
  std::vector<std::string> files() const override {
    std::vector<std::string> out;
    for (const auto &link : links)
      out.push_back(link->path());
    return out;
  }
  bool serves(std::string_view ptx) const override {
    return std::ranges::any_of(links, [&](const auto &link) { return link->serves(ptx); });
  }
  Result<AssembledModule> assemble(std::string_view ptx, std::string_view arch, const AssembleOptions &options,
                                   std::string_view fileName) const override {
    std::vector<const Assembler *> order;
    for (const auto &link : links)
      if (link->serves(ptx))
        order.push_back(link.get());
    if (order.empty()) // to be looked at
      return links.front()->assemble(ptx, arch, options, fileName);
    if (ptx.size() >= largePtx)
      std::ranges::stable_partition(order, [](const Assembler *link) { return !link->makesParts(); });
    std::optional<Result<AssembledModule>> untrusted, failed;
    for (const Assembler *link : order) {
      Result<AssembledModule> made = link->assemble(ptx, arch, options, fileName);
      if (made && made->isTrusted())
        return made;
      std::optional<Result<AssembledModule>> &first = made ? untrusted : failed;
      if (!first)
        first.emplace(std::move(made));
    }
    if (untrusted && failed)
      (*untrusted)->doubt += "; " + failed->status().toString();
    return std::move(untrusted ? *untrusted : *failed);
  }
  void warmUp(std::string_view arch) const override { links.front()->warmUp(arch); }

private:
  std::vector<std::shared_ptr<const Assembler>> links;
  std::string id;
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

Result<AssembledModule> assembleToRun(const Assembler &assembler, std::string_view ptx, std::string_view arch,
                                      const AssembleOptions &options, std::string_view fileName) {
  AssembledModule none;
  none.assembler = assembler.name();
  if (!assembler.serves(ptx)) {
    none.doubt = std::string(assembler.name()) + " does not make what it says";
    return none;
  }
  Result<AssembledModule> made = assembler.assemble(ptx, arch, options, fileName);
  if (made || made.status().code() != StatusCode::Unsupported)
    return made;
  none.doubt = made.status().message();
  return none;
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
  std::vector<std::shared_ptr<const Assembler>> found = listAssemblers(search, notes);
  if (found.size() == 1)
    return found.front();
  if (!found.empty())
    return std::shared_ptr<const Assembler>(std::make_shared<AssemblerChain>(std::move(found)));
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

Status olderThan(const std::string &id, std::string_view arch) {
  return {StatusCode::Unsupported, id + " does not know the arch " + std::string(arch) + ", or PTX as new as this",
          "use a CUDA version that does, or let the driver assemble the PTX"};
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
