#include "runtime/tools/CountersReport.h"

#include "support/Text.h"

#include <cstdio>
#include <functional>

namespace kiln::tools {

namespace {

struct Group {
  const LaunchCounters *first;
  std::uint64_t launches;
};

std::vector<Group> grouped(std::span<const LaunchCounters> launches) {
  std::vector<Group> out;
  for (const LaunchCounters &l : launches) {
    bool known = false;
    for (Group &g : out)
      if (*g.first == l) {
        ++g.launches;
        known = true;
        break;
      }
    if (!known)
      out.push_back({&l, 1});
  }
  return out;
}

Json countsJson(const Counts &c) {
  Json out = {{"instructions", c.instructions}, {"threads", c.threads}};
  for (unsigned k = 0; k < accessKinds; ++k) {
    const std::string name(accessKindName(static_cast<AccessKind>(k)));
    const GlobalCounts &g = c.global[k];
    const SharedCounts &s = c.shared[k];
    out["global"][name] = {{"requests", g.requests}, {"sectors", g.sectors}, {"bytes", g.bytes}};
    out["shared"][name] = {
        {"requests", s.requests}, {"wavefronts", s.wavefronts}, {"conflicts", s.conflicts}, {"bytes", s.bytes}};
  }
  out["local"] = {{"requests", c.localRequests}, {"bytes", c.localBytes}};
  out["barriers"] = c.barriers;
  out["matrixFlops"] = c.matrixFlops;
  out["asyncBytes"] = c.asyncBytes;
  return out;
}

/// 1234567 -> "1,234,567".
std::string grouped(std::uint64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3; at -= 3)
    text.insert(at - 3, ",");
  return text;
}

void printTotals(const LaunchCounters &l) {
  const Counts &c = l.total;
  std::string classes;
  for (unsigned k = 0; k < instructionClasses; ++k)
    if (l.byClass[k])
      classes += (classes.empty() ? "" : ", ") + std::string(instructionClassName(static_cast<InstructionClass>(k))) +
                 " " + grouped(l.byClass[k]);
  std::printf("  %s warp instructions, %.2f lanes each: %s\n", grouped(c.instructions).c_str(),
              c.instructions ? static_cast<double>(c.threads) / static_cast<double>(c.instructions) : 0,
              classes.c_str());
  for (unsigned k = 0; k < accessKinds; ++k)
    if (const GlobalCounts &g = c.global[k]; g.requests)
      std::printf("  global %s: %s requests, %s sectors (%.2f a request), %s bytes asked for\n",
                  std::string(accessKindName(static_cast<AccessKind>(k))).c_str(), grouped(g.requests).c_str(),
                  grouped(g.sectors).c_str(), static_cast<double>(g.sectors) / static_cast<double>(g.requests),
                  grouped(g.bytes).c_str());
  for (unsigned k = 0; k < accessKinds; ++k)
    if (const SharedCounts &s = c.shared[k]; s.requests)
      std::printf("  shared %s: %s requests, %s wavefronts, %s of them bank conflicts, %s bytes\n",
                  std::string(accessKindName(static_cast<AccessKind>(k))).c_str(), grouped(s.requests).c_str(),
                  grouped(s.wavefronts).c_str(), s.conflicts ? grouped(s.conflicts).c_str() : "none",
                  grouped(s.bytes).c_str());
  if (c.localRequests)
    std::printf("  local memory: %s requests, %s bytes\n", grouped(c.localRequests).c_str(),
                grouped(c.localBytes).c_str());
  std::string rest;
  for (const auto &[value, text] :
       {std::pair(c.barriers, "arrivals of warps at barriers"), std::pair(c.matrixFlops, "matrix FLOPs"),
        std::pair(c.asyncBytes, "bytes moved asynchronously")})
    if (value)
      rest += (rest.empty() ? "  " : ", ") + grouped(value) + " " + text;
  if (!rest.empty())
    std::printf("%s\n", rest.c_str());
}

/// Columns that are zero everywhere are left out.
void printLines(const LaunchCounters &l) {
  struct Column {
    const char *name;
    std::function<std::uint64_t(const Counts &)> value;
  };
  const Column columns[] = {
      {"instructions", [](const Counts &c) { return c.instructions; }},
      {"threads", [](const Counts &c) { return c.threads; }},
      {"global requests", [](const Counts &c) { return c.globalTotal().requests; }},
      {"sectors", [](const Counts &c) { return c.globalTotal().sectors; }},
      {"shared requests", [](const Counts &c) { return c.sharedTotal().requests; }},
      {"wavefronts", [](const Counts &c) { return c.sharedTotal().wavefronts; }},
      {"conflicts", [](const Counts &c) { return c.sharedTotal().conflicts; }},
      {"local requests", [](const Counts &c) { return c.localRequests; }},
      {"barriers", [](const Counts &c) { return c.barriers; }},
      {"matrix FLOPs", [](const Counts &c) { return c.matrixFlops; }},
      {"async bytes", [](const Counts &c) { return c.asyncBytes; }},
  };
  std::vector<std::vector<std::string>> rows(1);
  rows[0].push_back("  line");
  for (const LineCounts &line : l.lines)
    rows.push_back({"  " + line.file + ":" + std::to_string(line.line)});
  for (const Column &column : columns) {
    if (column.value(l.total) == 0)
      continue;
    rows[0].push_back(column.name);
    for (std::size_t i = 0; i < l.lines.size(); ++i)
      rows[i + 1].push_back(grouped(column.value(l.lines[i].counts)));
  }
  printTable(rows);
}

} // namespace

Json toJson(std::span<const LaunchCounters> launches) {
  Json out = Json::array();
  for (const Group &g : grouped(launches)) {
    const LaunchCounters &l = *g.first;
    Json entry = {{"kernel", l.kernel}, {"grid", l.grid}, {"block", l.block}, {"launches", g.launches}};
    entry.update(countsJson(l.total));
    for (unsigned k = 0; k < instructionClasses; ++k)
      entry["classes"][std::string(instructionClassName(static_cast<InstructionClass>(k)))] = l.byClass[k];
    entry["lines"] = Json::array();
    for (const LineCounts &line : l.lines) {
      Json row = {{"file", line.file}, {"line", line.line}};
      row.update(countsJson(line.counts));
      entry["lines"].push_back(std::move(row));
    }
    out.push_back(std::move(entry));
  }
  return out;
}

void printCounters(std::span<const LaunchCounters> launches) {
  for (const Group &g : grouped(launches)) {
    const LaunchCounters &l = *g.first;
    std::printf("counters: kernel '%s', grid %u,%u,%u, block %u,%u,%u", l.kernel.c_str(), l.grid[0], l.grid[1],
                l.grid[2], l.block[0], l.block[1], l.block[2]);
    if (g.launches > 1)
      std::printf(", each of %llu launches", static_cast<unsigned long long>(g.launches));
    std::printf("\n");
    printTotals(l);
    printLines(l);
  }
}

} // namespace kiln::tools
