#include "runtime/device/emulator/decode/Program.h"

namespace kiln::emulator {

std::string Program::location(const Op &op) const {
  const SourceLine &l = lines[op.line];
  if (!l.line)
    return {};
  return std::string(module->filePath(l.file)) + ":" + std::to_string(l.line);
}

std::string Program::point(std::uint32_t pc) const {
  if (pc >= ops.size())
    return "the end of the kernel";
  const Op &op = ops[pc];
  const std::string where = location(op), line = "ptx line " + std::to_string(lines[op.line].ptxLine);
  return where.empty() ? line : where + " (" + line + ")";
}

} // namespace kiln::emulator
