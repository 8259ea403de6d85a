#include "runtime/tools/OwnProgram.h"

#include <filesystem>

namespace kiln::tools {

Result<ProcessSpec> ownProgram(std::vector<std::string> arguments) {
  constexpr std::size_t most = 16u << 20;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    return Status(StatusCode::IoError, "this program's own file cannot be found: " + error.message());
  ProcessSpec spec;
  spec.program = program.string();
  spec.arguments = std::move(arguments);
  spec.maxOutputBytes = spec.maxResponseBytes = most;
  return spec;
}

Json reportIn(const std::string &output) {
  const std::size_t begin = output.starts_with('{') ? 0 : output.find("\n{");
  const std::size_t end = output.rfind("\n}");
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    return Json();
  Json out = Json::parse(output.substr(begin, end + 2 - begin), nullptr, /*allow_exceptions=*/false);
  return out.is_discarded() ? Json() : out;
}

} // namespace kiln::tools
