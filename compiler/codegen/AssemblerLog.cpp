#include "compiler/codegen/AssemblerLog.h"

#include "support/Text.h"

#include <algorithm>
#include <charconv>

namespace kiln {
namespace {

/// The text between the first `before` and the `after` that follows; empty if either is missing.
std::string_view between(std::string_view line, std::string_view before, std::string_view after) {
  const std::size_t start = line.find(before);
  if (start == std::string_view::npos)
    return {};
  line.remove_prefix(start + before.size());
  const std::size_t end = line.find(after);
  return end == std::string_view::npos ? std::string_view() : line.substr(0, end);
}

/// The number that stands right before `unit`: 12 in "Used 12 registers" for " registers".
std::optional<std::uint32_t> numberBefore(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == std::string_view::npos)
    return std::nullopt;
  std::size_t start = end;
  while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9')
    --start;
  std::uint32_t value = 0;
  if (std::from_chars(line.data() + start, line.data() + end, value).ec != std::errc())
    return std::nullopt;
  return value;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == ':'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

/// "ptxas application ptx input, line 6; error   : Unknown symbol" -> "file.ptx:6: Unknown symbol".
std::string message(std::string_view line, std::string_view severity, std::string_view fileName) {
  const std::string_view number = between(line, ", line ", ";");
  std::string out(fileName);
  if (!number.empty())
    out += ":" + std::string(number);
  return out + ": " + std::string(trim(line.substr(line.find(severity) + severity.size())));
}

} // namespace

std::vector<KernelResources> resourcesFromLog(std::string_view log) {
  std::vector<KernelResources> kernels;
  std::string_view properties; // whose "Function properties" the current lines are
  for (std::string_view line : split(log, '\n')) {
    // nvJitLink may repeat the figures of the linked module in lines of its own, without "ptxas".
    if (!line.starts_with("ptxas") && !line.starts_with(" "))
      continue;
    if (const std::string_view entry = between(line, "Compiling entry function '", "'"); !entry.empty()) {
      kernels.emplace_back().name = entry;
      properties = entry;
      continue;
    }
    if (const std::size_t at = line.find("Function properties for "); at != std::string_view::npos) {
      properties = trim(line.substr(at + std::string_view("Function properties for ").size()));
      continue;
    }
    if (kernels.empty() || properties != kernels.back().name)
      continue;
    KernelResources &kernel = kernels.back();
    if (const auto stack = numberBefore(line, " bytes stack frame")) {
      kernel.stackBytes = *stack;
      kernel.spillStoreBytes = numberBefore(line, " bytes spill stores");
      kernel.spillLoadBytes = numberBefore(line, " bytes spill loads");
    }
    if (const auto registers = numberBefore(line, " registers")) {
      kernel.registers = *registers;
      kernel.barriers = numberBefore(line, " barriers").value_or(0);
      kernel.sharedBytes = numberBefore(line, " bytes smem").value_or(0);
    }
  }
  return kernels;
}

bool isOfLaterVersion(std::string_view log) {
  return log.find("Unsupported .version") != std::string_view::npos || log.find("gpu-name") != std::string_view::npos;
}

std::string errorsFromLog(std::string_view log, std::string_view fileName) {
  std::vector<std::string> errors;
  std::string fatal;
  for (std::string_view line : split(log, '\n')) {
    if (!line.starts_with("ptxas"))
      continue;
    if (line.find("; error") != std::string_view::npos)
      errors.push_back(message(line, "; error", fileName));
    else if (line.find("fatal ") != std::string_view::npos)
      fatal = message(line, "fatal ", fileName);
    else if (line.find(" error ") != std::string_view::npos)
      errors.push_back(message(line, " error ", fileName));
  }
  if (errors.empty() && !fatal.empty())
    errors.push_back(fatal);
  if (errors.empty())
    return std::string(fileName) + ": " + std::string(trim(log));
  return join(errors, "\n");
}

std::vector<std::string> warningsFromLog(std::string_view log, std::string_view fileName) {
  std::vector<std::string> out;
  for (std::string_view line : split(log, '\n')) {
    if (!line.starts_with("ptxas"))
      continue;
    for (std::string_view severity : {"warning ", "info "}) {
      const std::size_t at = line.find(severity);
      if (at == std::string_view::npos)
        continue;
      // Of the notes only the numbered ones matter: "(C7514) Potential Performance Loss: wgmma ... serialized".
      if (severity == "warning " || line.find(": (C", at) != std::string_view::npos)
        out.push_back(message(line, severity, fileName));
      break;
    }
  }
  return out;
}

} // namespace kiln
