#include "tests/barriers/TouchedBytes.h"

#include <regex>
#include <sstream>

namespace kiln::test {
namespace {

/// Words of a record: site, thread, byte, and one that is not used.
constexpr std::size_t recordWords = 4;

/// Bytes that one lane moves: of "ld.shared.v4.b32" 16.
unsigned bytesOf(const std::string &opcode) {
  static const std::regex vector(R"(\.v([24])(\.|$))"), type(R"(\.[busf](8|16|32|64|128)$)"), packed(R"(\.[bf]16x2$)");
  std::smatch m;
  const unsigned count = std::regex_search(opcode, m, vector) ? static_cast<unsigned>(std::stoul(m[1])) : 1;
  if (std::regex_search(opcode, packed))
    return 4 * count;
  return std::regex_search(opcode, m, type) ? static_cast<unsigned>(std::stoul(m[1])) / 8 * count : 0;
}

} // namespace

TouchedBytes::TouchedBytes(const std::string &ptx) {
  static const std::regex location(R"(^\s*\.loc\s+\d+\s+(\d+)\s)");
  std::istringstream in(ptx);
  unsigned line = 0;
  bool parameters = false;
  for (std::string at; std::getline(in, at);) {
    std::smatch m;
    if (std::regex_search(at, m, location))
      line = static_cast<unsigned>(std::stoul(m[1]));
    if (at.find(".entry ") != std::string::npos)
      parameters = true;
    if (parameters && at == ")") {
      text += "\t, .param .u64 kiln_touched\n";
      parameters = false;
    }
    wgmma += at.find("wgmma.mma_async") != std::string::npos;
    (void)instrument(at, line);
    text += at + "\n";
  }
}

bool TouchedBytes::instrument(const std::string &instruction, unsigned line) {
  static const std::regex access(R"(^\s*(@!?%?\w+)?\s*((?:ld|st|atom|red|ldmatrix|stmatrix|cp)\.\S*)\s(.*))");
  static const std::regex address(R"(\[\s*(%?[\w$]+)\s*(?:\+\s*(-?\d+))?\s*\])"),
      copied(R"(\]\s*,\s*\[[^\]]*\]\s*,\s*(\d+))");
  std::smatch m, a, n;
  if (!std::regex_search(instruction, m, access))
    return false;
  const std::string guard = m[1], opcode = m[2], operands = m[3];
  const bool matrix = opcode.find("matrix.") != std::string::npos, copy = opcode.starts_with("cp.async.c");
  if (opcode.find(".shared") == std::string::npos || (opcode.starts_with("cp.") && !copy) ||
      !std::regex_search(operands, a, address))
    return false;
  Site site;
  site.line = line;
  site.write = !opcode.starts_with("ld");
  if (matrix) {
    site.bytes = 16;
    site.lanes = opcode.find(".x4") != std::string::npos ? 32 : opcode.find(".x2") != std::string::npos ? 16 : 8;
  } else if (copy) {
    site.bytes = std::regex_search(operands, n, copied) ? static_cast<unsigned>(std::stoul(n[1])) : 0;
  } else {
    site.bytes = bytesOf(opcode);
  }
  const std::string base = a[1], offset = a[2].matched ? std::string(a[2]) : "0";
  std::ostringstream out;
  out << "{\n.reg .b32 %kt<6>;\n.reg .b64 %kl<4>;\n"
      << (base.starts_with("%rd") ? "cvt.u32.u64 %kt1, " : "mov.u32 %kt1, ") << base << ";\n"
      << "add.s32 %kt1, %kt1, " << offset << ";\nmov.u32 %kt2, kiln_shared;\nsub.s32 %kt1, %kt1, %kt2;\n"
      << "mov.u32 %kt0, %tid.x;\nmov.u32 %kt4, " << all.size() << ";\nld.param.u64 %kl0, [kiln_touched];\n"
      << guard << " atom.global.add.u32 %kt3, [%kl0], 1;\n"
      << guard << " mad.wide.u32 %kl1, %kt3, " << 4 * recordWords << ", %kl0;\n"
      << guard << " st.global.v4.u32 [%kl1+" << 4 * recordWords << "], {%kt4, %kt0, %kt1, %kt2};\n}\n";
  text += out.str();
  all.push_back(site);
  return true;
}

std::vector<TouchedBytes::Touched> TouchedBytes::read(const std::vector<std::uint32_t> &log,
                                                      std::string &failed) const {
  std::vector<Touched> out;
  for (const Site &site : all) {
    out.push_back({site.line, site.write, {}});
    if (!site.bytes || !site.line)
      failed = "an access of " + std::to_string(site.bytes) + " bytes at line " + std::to_string(site.line);
  }
  const std::size_t records = log.empty() ? 0 : log.front();
  if ((records + 1) * recordWords > log.size()) {
    failed =
        "a log of " + std::to_string(log.size()) + " words is too short for " + std::to_string(records) + " records";
    return out;
  }
  for (std::size_t i = 1; i <= records; ++i) {
    const std::uint32_t *const record = &log[i * recordWords];
    const Site &site = all.at(record[0]);
    const unsigned lane = record[1] % 32, warp = record[1] / 32;
    if (lane >= site.lanes)
      continue;
    for (unsigned b = 0; b < site.bytes; ++b) {
      Threads &threads = out[record[0]].bytes[record[2] + b];
      threads.warps |= 1u << warp;
      threads.lanes |= 1u << lane;
    }
  }
  return out;
}

} // namespace kiln::test
