#include "runtime/tools/Sass.h"

#include "compiler/codegen/Process.h"
#include "support/Text.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>
#include <vector>

namespace kiln::tools {
namespace {

/// A file of its own name that goes with the call.
class TemporaryCubin {
public:
  explicit TemporaryCubin(std::span<const std::byte> cubin) {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::temp_directory_path(error); // TMPDIR, else /tmp
    where = (error ? std::filesystem::path("/tmp") : folder) / "kiln-sass-XXXXXX";
    const int file = ::mkstemp(where.data());
    if (file < 0)
      return;
    made = true;
    ::close(file);
    std::ofstream out(where, std::ios::binary);
    out.write(reinterpret_cast<const char *>(cubin.data()), static_cast<std::streamsize>(cubin.size()));
    written = static_cast<bool>(out.flush());
  }
  ~TemporaryCubin() {
    if (made)
      ::unlink(where.c_str());
  }
  TemporaryCubin(const TemporaryCubin &) = delete;
  bool ok() const { return written; }
  const std::string &path() const { return where; }

private:
  std::string where;
  bool made = false, written = false;
};

struct Disassembler {
  const char *program;
  std::vector<std::string> arguments;
};

} // namespace

Result<std::string> disassemble(std::span<const std::byte> cubin) {
  const TemporaryCubin file(cubin);
  if (!file.ok())
    return Status(StatusCode::IoError, "'" + file.path() + "' cannot be written: " + std::strerror(errno));
  const Disassembler known[] = {{"nvdisasm", {}},
                                {"/usr/local/cuda/bin/nvdisasm", {}},
                                {"cuobjdump", {"-sass"}},
                                {"/usr/local/cuda/bin/cuobjdump", {"-sass"}}};
  std::vector<std::string> tried;
  for (const Disassembler &d : known) {
    ProcessSpec spec;
    spec.program = d.program;
    spec.arguments = d.arguments;
    spec.arguments.push_back(file.path());
    spec.maxOutputBytes = std::size_t(256) << 20;
    const Result<ProcessEnd> end = runProcess(spec);
    if (end && end->exitStatus == 0)
      return end->output;
    tried.push_back(std::string(d.program) + (end ? ": " + std::string(split(end->output, '\n')[0]) : " is not there"));
  }
  return Status(StatusCode::NotFound, "no disassembler for GPU code: " + join(tried),
                "install CUDA's nvdisasm or cuobjdump (packages cuda-nvdisasm, cuda-cuobjdump; nvidia-cuda-toolkit of "
                "Debian and Ubuntu) and put it on the PATH, or take --emit cubin to a machine that has one");
}

} // namespace kiln::tools
