#include "runtime/tools/Report.h"

#include <algorithm>
#include <cstdio>

namespace kiln::tools {

void printJson(const Json &object) {
  std::printf("%s\n", object.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

int fail(const std::string &command, const Status &failure, bool json, Json report) {
  std::fprintf(stderr, "kiln %s: %s\n", command.c_str(), failure.toString().c_str());
  if (json) {
    report["error"] = {{"message", failure.message()}, {"remedy", failure.remedy()}};
    report["status"] = failure.exitCode();
    printJson(report);
  }
  return failure.exitCode();
}

Json toJson(const Dim3 &dims) {
  return {dims.x, dims.y, dims.z};
}

Json toJson(const Finding &f) {
  Json out = {{"id", f.id},           {"kernel", f.kernel},     {"block", toJson(f.block)}, {"warp", f.warp},
              {"lanes", f.lanes},     {"location", f.location}, {"ptxLine", f.ptxLine},     {"opcode", f.opcode},
              {"message", f.message}, {"fatal", f.fatal},       {"note", f.note},           {"count", f.count},
              {"places", f.places}};
  if (f.other)
    out["other"] = {{"block", toJson(f.other->block)}, {"warp", f.other->warp},       {"lanes", f.other->lanes},
                    {"location", f.other->location},   {"ptxLine", f.other->ptxLine}, {"opcode", f.other->opcode}};
  return out;
}

void printTable(const std::vector<std::vector<std::string>> &rows) {
  std::vector<std::size_t> widths;
  for (const auto &row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths.resize(std::max(widths.size(), row.size()));
      widths[i] = std::max(widths[i], row[i].size());
    }
  for (const auto &row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size())
        line += std::string(widths[i] + 2 - row[i].size(), ' ');
    }
    std::printf("%s\n", line.c_str());
  }
}

} // namespace kiln::tools
