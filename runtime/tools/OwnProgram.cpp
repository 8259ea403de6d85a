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

/// A command may say other things on standard error.
static Json reportIn(const std::string &output) {
  const std::size_t begin = output.starts_with('{') ? 0 : output.find("\n{");
  const std::size_t end = output.rfind("\n}");
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    return Json();
  Json out = Json::parse(output.substr(begin, end + 2 - begin), nullptr, /*allow_exceptions=*/false);
  return out.is_discarded() ? Json() : out;
}

std::string lastLine(std::string text) {
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text.substr(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
}

std::string OwnRun::message() const {
  if (const auto error = report.find("error"); error != report.end())
    return error->is_string() ? error->get<std::string>() : error->value("message", error->dump());
  return lastLine(end.output);
}

Status OwnRun::failure(StatusCode code) const {
  const auto error = report.find("error");
  return Status(code, message(), error != report.end() && error->is_object() ? error->value("remedy", "") : "");
}

Result<OwnRun> runOwnProgram(std::vector<std::string> arguments, double seconds, int niceness) {
  KILN_ASSIGN(ProcessSpec spec, ownProgram(std::move(arguments)));
  spec.deadlineSeconds = seconds;
  spec.niceness = niceness;
  OwnRun out;
  KILN_ASSIGN(out.end, runProcess(spec));
  out.report = reportIn(out.end.output);
  return out;
}

} // namespace kiln::tools
