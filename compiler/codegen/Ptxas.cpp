// ptxas as a program, its files in a private folder that goes with the call.
#include "compiler/codegen/AssemblerKinds.h"
#include "compiler/codegen/AssemblerLog.h"
#include "compiler/codegen/Process.h"
#include "support/Text.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace kiln {
namespace {

constexpr const char *programNames[] = {"ptxas", "/usr/local/cuda/bin/ptxas"};
constexpr double deadlineSeconds = 600; // the largest known kernels take under a minute

/// A private folder for one call's two files.
class WorkFolder {
public:
  explicit WorkFolder(const std::string &parent) : where(parent + "/kiln-ptxas-XXXXXX") {
    if (!::mkdtemp(where.data())) {
      why = std::strerror(errno);
      where.clear();
    }
  }
  ~WorkFolder() {
    if (where.empty())
      return;
    ::unlink(ptx().c_str());
    ::unlink(cubin().c_str());
    ::rmdir(where.c_str());
  }
  WorkFolder(const WorkFolder &) = delete;
  bool ok() const { return !where.empty(); }
  const std::string &error() const { return why; }
  std::string ptx() const { return where + "/kernel.ptx"; }
  std::string cubin() const { return where + "/kernel.cubin"; }

private:
  std::string where, why;
};

class Ptxas : public Assembler {
public:
  Ptxas(std::string program, AssemblerVersion number, std::string build, std::string temporary)
      : program(std::move(program)), number(number), id("ptxas " + std::move(build)), temporary(std::move(temporary)) {}

  std::string_view name() const override { return "ptxas"; }
  AssemblerVersion version() const override { return number; }
  const std::string &identity() const override { return id; }
  const std::string &path() const override { return program; }
  Result<AssembledModule> assemble(std::string_view ptx, std::string_view arch, const AssembleOptions &options,
                                   std::string_view fileName) const override;

private:
  std::string program;
  AssemblerVersion number;
  std::string id, temporary;
};

Result<AssembledModule> Ptxas::assemble(std::string_view ptx, std::string_view arch, const AssembleOptions &options,
                                        std::string_view fileName) const {
  const auto start = std::chrono::steady_clock::now();
  KILN_TRY(checkAssemblyArch(arch));
  WorkFolder folder(temporary);
  if (!folder.ok())
    return Status(StatusCode::IoError, "no folder for ptxas in '" + temporary + "': " + folder.error());
  {
    std::ofstream out(folder.ptx(), std::ios::binary);
    out.write(ptx.data(), static_cast<std::streamsize>(ptx.size()));
    if (!out.flush())
      return Status(StatusCode::IoError, "'" + folder.ptx() + "' cannot be written: " + std::strerror(errno));
  }
  ProcessSpec spec;
  spec.program = program;
  spec.arguments = {"-arch=" + std::string(arch),
                    format("-O%u", options.optimisation > 3 ? 3 : options.optimisation),
                    "-v",
                    folder.ptx(),
                    "-o",
                    folder.cubin()};
  if (options.lineInfo)
    spec.arguments.push_back("-lineinfo");
  spec.deadlineSeconds = deadlineSeconds;
  spec.maxOutputBytes = std::size_t(4) << 20;
  KILN_ASSIGN(ProcessEnd end, runProcess(spec));
  if (end.timedOut)
    return Status(StatusCode::CompileError, format("ptxas took longer than %g s and was stopped", deadlineSeconds));
  if (end.signal)
    return Status(StatusCode::CompileError, "ptxas crashed: " + signalName(end.signal));
  if (end.exitStatus > 0) {
    if (isOfLaterVersion(end.output))
      return olderThan(id, arch);
    return Status(StatusCode::CompileError, errorsFromLog(end.output, fileName));
  }
  AssembledModule module;
  std::ifstream in(folder.cubin(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (bytes.empty())
    return Status(StatusCode::CompileError, "ptxas wrote no cubin: " + end.output);
  module.cubin.resize(bytes.size());
  std::memcpy(module.cubin.data(), bytes.data(), bytes.size());
  module.resources = makeReport(end.output, module.cubin);
  module.warnings = warningsFromLog(end.output, fileName);
  module.assembler = name();
  module.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return module;
}

/// The file that a program's name means, as the shell finds it: its contents are what an identity is of.
std::string fileOf(const std::string &program) {
  if (program.find('/') != std::string::npos)
    return program;
  const char *path = std::getenv("PATH"); // no setting of ours: where programs are
  for (const std::string_view folder : split(path ? path : "", ':')) {
    std::string file = std::string(folder.empty() ? "." : folder) + "/" + program;
    if (::access(file.c_str(), X_OK) == 0)
      return file;
  }
  return program;
}

/// "Cuda compilation tools, release 13.0, V13.0.88" and "Build cuda_13.0...", as `ptxas --version` ends.
Result<std::shared_ptr<const Assembler>> tryProgram(const std::string &program, const std::string &temporary) {
  ProcessSpec spec;
  spec.program = program;
  spec.arguments = {"--version"};
  spec.deadlineSeconds = 30;
  KILN_ASSIGN(ProcessEnd end, runProcess(spec));
  AssemblerVersion version;
  const std::size_t release = end.output.find("release ");
  if (release == std::string::npos ||
      std::sscanf(end.output.c_str() + release, "release %u.%u", &version.major, &version.minor) != 2)
    return Status(StatusCode::NotFound, "'" + program + "' does not say its version as ptxas does");
  std::vector<std::string> build;
  for (std::string_view line : split(std::string_view(end.output).substr(release), '\n'))
    if (!line.empty())
      build.emplace_back(line);
  return std::shared_ptr<const Assembler>(std::make_shared<Ptxas>(program, version, join(build), temporary));
}

} // namespace

Result<std::shared_ptr<const Assembler>> findPtxas(const AssemblerSearch &search) {
  if (search.ptxas == "none")
    return Status(StatusCode::NotFound, "ptxas: switched off");
  std::vector<std::string> candidates(std::begin(programNames), std::end(programNames));
  if (!search.ptxas.empty())
    candidates = {search.ptxas};
  std::vector<std::string> why;
  for (const std::string &candidate : candidates) {
    Result<std::shared_ptr<const Assembler>> found = tryProgram(fileOf(candidate), search.temporaryDirectory);
    if (found.ok())
      return found;
    why.push_back(found.status().message());
  }
  return Status(StatusCode::NotFound, "ptxas: " + join(why));
}

} // namespace kiln
