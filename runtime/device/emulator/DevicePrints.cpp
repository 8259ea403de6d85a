#include "runtime/device/emulator/DevicePrints.h"

#include "runtime/io/Npy.h"
#include "support/ParseNumber.h"
#include "support/Text.h"
#include "support/TileDump.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>

namespace kiln::emulator {

namespace {

constexpr std::string_view lead = "program ";

/// A line of a dumped tile: "program 1,0,0 [2,3] kiln.tile scores f32 64x32 1065353216".
struct DumpLine {
  std::string_view program, name, type, extents;
  std::uint64_t bits = 0;
};

std::optional<DumpLine> dumpLine(std::string_view text) {
  if (!text.ends_with('\n'))
    return std::nullopt;
  text.remove_suffix(1);
  const std::vector<std::string_view> words = split(text, ' ');
  // A mark is one word and a space.
  if (words.size() != 8 || words[3] != tileDumpMark.substr(0, tileDumpMark.size() - 1))
    return std::nullopt;
  DumpLine out{words[1], words[4], words[5], words[6]};
  const std::optional<std::int64_t> value = parseNumber<std::int64_t>(words[7]);
  if (!value)
    return std::nullopt;
  out.bits = static_cast<std::uint64_t>(*value);
  return out;
}

} // namespace

std::vector<std::uint64_t> DevicePrints::coordinates(std::string_view text) {
  std::vector<std::uint64_t> out;
  const std::size_t open = text.find(' ', lead.size());
  if (open == std::string_view::npos || !text.substr(open + 1).starts_with('['))
    return out;
  const char *at = text.data() + open + 2, *const end = text.data() + text.size();
  while (at != end) {
    std::uint64_t value = 0;
    const auto [next, problem] = std::from_chars(at, end, value);
    if (problem != std::errc())
      break;
    out.push_back(value);
    if (next == end || *next != ',')
      break;
    at = next + 1;
  }
  return out;
}

void DevicePrints::add(std::string_view format, std::uint32_t file, std::uint32_t line, std::string text) {
  Line one{coordinates(text), std::move(text)};
  Series &of = series[{std::string(format), file, line}];
  const std::size_t time = of.times[one.at]++;
  if (time == of.prints.size()) {
    of.prints.push_back(prints.size());
    prints.emplace_back();
  }
  prints[of.prints[time]].lines.push_back(std::move(one));
}

void DevicePrints::flush() {
  for (Print &print : prints) {
    std::sort(print.lines.begin(), print.lines.end(), [](const Line &a, const Line &b) { return a.at < b.at; });
    const bool isTile = !worker.launch.tileDirectory.empty() && dumpLine(print.lines[0].text);
    if (isTile) {
      const DumpLine first = *dumpLine(print.lines[0].text);
      const unsigned round = rounds[std::string(first.name) + " " + std::string(first.program)]++;
      if (Status s = writeTile(print, round); !s.ok() && worker.printProblem.ok())
        worker.printProblem = std::move(s);
      continue;
    }
    std::string text;
    for (const Line &l : print.lines)
      text += l.text;
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  prints.clear();
  series.clear();
  rounds.clear();
}

Status DevicePrints::writeTile(const Print &print, unsigned round) {
  const DumpLine about = *dumpLine(print.lines[0].text);
  std::string file =
      worker.launch.program->info.name + "." + std::string(about.name) + "." + std::string(about.program);
  std::replace(file.begin(), file.end(), ',', '_');
  file = worker.launch.tileDirectory + "/" + file + (round ? "." + std::to_string(round + 1) : "") + ".npy";
  Array array;
  KILN_ASSIGN(array.type, parseDType(about.type));
  KILN_ASSIGN(array.shape, parseShape(about.extents));
  const unsigned bytes = dtypeBytes(array.type);
  KILN_ASSIGN(const std::uint64_t size, shapeBytes(array.shape, bytes));
  if (print.lines.size() != size / bytes)
    return Status(StatusCode::DeviceError, file + ": " + std::to_string(print.lines.size()) + " of " +
                                               std::to_string(size / bytes) + " elements were dumped");
  array.data.resize(size);
  for (std::size_t i = 0; i < print.lines.size(); ++i) {
    const std::optional<DumpLine> line = dumpLine(print.lines[i].text);
    if (!line)
      return Status(StatusCode::Internal, file + ": a line that is none of a tile: " + print.lines[i].text);
    std::memcpy(&array.data[i * bytes], &line->bits, bytes); // the lowest bytes
  }
  return writeNpy(file, array);
}

} // namespace kiln::emulator
