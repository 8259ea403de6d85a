#include "tests/mutants/Lines.h"

#include "support/Text.h"

#include <algorithm>
#include <map>

namespace kiln::test {

namespace {

std::string_view trim(std::string_view s) {
  const auto first = s.find_first_not_of(" \t"), last = s.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view() : s.substr(first, last - first + 1);
}

std::vector<std::string_view> operandsOf(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t start = 0;
  int open = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] == '{' || text[i] == '[' || text[i] == '('))
      ++open;
    else if (i < text.size() && (text[i] == '}' || text[i] == ']' || text[i] == ')'))
      --open;
    else if (i == text.size() || (text[i] == ',' && open == 0)) {
      if (const std::string_view operand = trim(text.substr(start, i - start)); !operand.empty())
        out.push_back(operand);
      start = i + 1;
    }
  }
  return out;
}

/// ".visible .entry name(" or ".func (...) name(".
std::string entryName(std::string_view line) {
  const auto at = line.find(".entry ");
  const bool isEntry = at != std::string_view::npos;
  const auto function = isEntry ? at : line.find(".func ");
  if (function == std::string_view::npos || line.starts_with("//"))
    return {};
  std::string_view rest = trim(line.substr(function + (isEntry ? 7 : 6)));
  if (rest.starts_with("("))
    rest = trim(rest.substr(std::min(rest.size(), rest.find(')') + 1)));
  return std::string(rest.substr(0, rest.find_first_of("( \t")));
}

} // namespace

Lines::Lines(std::string_view ptx) : lines(split(ptx, '\n')) {
  std::map<std::string, std::string, std::less<>> files;
  for (std::string_view line : lines)
    if (trim(line).starts_with(".file")) {
      const std::string_view t = trim(line);
      const auto open = t.find('"'), close = t.rfind('"');
      const std::string_view path = t.substr(open + 1, close - open - 1);
      files[std::string(trim(t.substr(5, open - 5)))] = path.substr(path.rfind('/') + 1);
    }
  unsigned depth = 0;
  std::string entry, location;
  for (std::string_view line : lines) {
    const std::string_view t = trim(line);
    stripped.push_back(t);
    depths.push_back(depth);
    if (depth == 0)
      if (std::string name = entryName(t); !name.empty())
        entry = std::move(name);
    if (t.starts_with(".loc")) {
      // Inlined code counts as where it was called from: that line is the kernel's own.
      const auto inlined = t.find("inlined_at");
      const auto numbers = split(trim(inlined == std::string_view::npos ? t.substr(4) : t.substr(inlined + 10)), ' ');
      if (numbers.size() > 1 && numbers[1] != "0")
        location = files[std::string(numbers[0])] + ":" + std::string(numbers[1]);
    }
    entries.push_back(entry);
    locations.push_back(location);
    if (!t.starts_with("//"))
      for (char c : t)
        depth += c == '{' ? 1 : c == '}' ? -1 : 0;
  }
}

bool Lines::isLabel(std::size_t i) const {
  return stripped[i].ends_with(":");
}

std::optional<Instruction> Lines::instruction(std::size_t i) const {
  std::string_view t = stripped[i];
  if (depths[i] == 0 || !t.ends_with(";") || t.starts_with(".") || t.starts_with("{") || t.starts_with("//"))
    return std::nullopt;
  Instruction result;
  if (t.starts_with("@")) {
    const auto end = t.find_first_of(" \t");
    result.guard = t.substr(0, end);
    t = trim(t.substr(end));
  }
  result.bare = t;
  result.opcode = t.substr(0, t.find_first_of(" \t;"));
  result.operands = operandsOf(t.substr(result.opcode.size(), t.size() - result.opcode.size() - 1));
  return result;
}

Lines::Unit Lines::unitOf(std::size_t i, unsigned depth) const {
  Unit unit{i, i};
  while (unit.first > 0 && depths[unit.first] > depth)
    --unit.first;
  if (stripped[unit.first].starts_with("{"))
    while (unit.last + 1 < size() &&
           !(depths[unit.last] > depth && stripped[unit.last].starts_with("}") && depths[unit.last] == depth + 1))
      ++unit.last;
  return unit;
}

std::optional<Lines::Unit> Lines::accessFrom(const Unit &unit, int step) const {
  const unsigned depth = depths[unit.first];
  for (std::size_t i = step > 0 ? unit.last + 1 : unit.first - 1; i > 0 && i < size();) {
    if (isLabel(i) && depths[i] == depth)
      return std::nullopt;
    if (step > 0 ? depths[i] < depth || stripped[i] == "}" : depths[i] < depth)
      return std::nullopt;
    Unit other{i, i};
    if (step > 0 && stripped[i].starts_with("{") && !stripped[i].ends_with("}"))
      other = unitOf(i, depth);
    else if (step < 0 && stripped[i] == "}")
      other = unitOf(i, depth);
    else if (step < 0 && stripped[i] == "{")
      return std::nullopt; // the start of the scope
    bool access = false;
    for (std::size_t j = other.first; j <= other.last; ++j)
      if (const auto in = instruction(j)) {
        if (other.first == other.last && (in->opcode.starts_with("bra") || in->opcode.starts_with("brx") ||
                                          in->opcode == "ret" || in->opcode == "exit" || in->opcode == "trap"))
          return std::nullopt;
        access |= isAccess(in->opcode);
      }
    if (access)
      return other;
    i = step > 0 ? other.last + 1 : other.first - 1;
  }
  return std::nullopt;
}

bool isAccess(std::string_view opcode) {
  for (std::string_view prefix : {"ld.", "st.", "atom.", "red."})
    if (opcode.starts_with(prefix))
      return opcode.find(".param") == std::string_view::npos && opcode.find(".local") == std::string_view::npos &&
             opcode.find(".const") == std::string_view::npos && opcode.find(".nc") == std::string_view::npos;
  for (std::string_view prefix : {"ldmatrix", "stmatrix", "cp.", "wgmma.", "mbarrier.", "bar.", "barrier.", "fence.",
                                  "membar.", "wmma.load", "wmma.store"})
    if (opcode.starts_with(prefix))
      return true;
  return false;
}

} // namespace kiln::test
