#include "tests/kernels/Mutants.h"

#include "support/Text.h"

#include <map>
#include <set>

namespace kiln::test {

namespace {

std::string_view trimmed(std::string_view s) {
  const auto first = s.find_first_not_of(" \t"), last = s.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view() : s.substr(first, last - first + 1);
}

/// "@%p1 bra x;" -> "bra x;", with the guard in `guard`.
std::string_view withoutGuard(std::string_view instruction, std::string_view &guard) {
  guard = {};
  if (!instruction.starts_with("@"))
    return instruction;
  const auto end = instruction.find_first_of(" \t");
  guard = instruction.substr(0, end);
  return trimmed(instruction.substr(end));
}

std::string_view firstWord(std::string_view s) {
  return s.substr(0, s.find_first_of(" \t;"));
}

unsigned elementBytes(std::string_view opcode) {
  const std::string_view type = opcode.substr(opcode.rfind('.') + 1);
  return type.ends_with("64") ? 8 : type.ends_with("32") ? 4 : type.ends_with("16") ? 2 : 1;
}

/// [a], [a+8], [a+-8] with the displacement changed by `by`.
std::string shifted(std::string_view instruction, int by) {
  const auto close = instruction.find(']');
  return std::string(instruction.substr(0, close)) + "+" + std::to_string(by) + std::string(instruction.substr(close));
}
/// The assembler's grammar has one displacement: adds up.
std::string shiftedStore(std::string_view instruction, int by) {
  const auto open = instruction.find('['), close = instruction.find(']');
  const auto plus = instruction.find('+', open);
  if (plus == std::string_view::npos || plus > close)
    return shifted(instruction, by);
  const int old = std::stoi(std::string(instruction.substr(plus + 1, close - plus - 1)));
  return std::string(instruction.substr(0, plus + 1)) + std::to_string(old + by) +
         std::string(instruction.substr(close));
}

/// "st.global.b32 [a], r;" -> "st.global.v2.b32 [a], {r, r};"; empty if there is no wider form.
std::string widenedStore(std::string_view instruction) {
  const std::string_view opcode = firstWord(instruction);
  if (opcode.find(".v4") != std::string_view::npos)
    return {};
  const auto comma = instruction.find("],");
  const std::string value(trimmed(instruction.substr(comma + 2, instruction.size() - comma - 3)));
  const std::string address(instruction.substr(opcode.size(), comma + 2 - opcode.size()));
  std::string wide(opcode);
  if (const auto v2 = wide.find(".v2"); v2 != std::string::npos) {
    if (elementBytes(opcode) == 8)
      return {};
    const std::string inside(trimmed(std::string_view(value).substr(1, value.size() - 2)));
    return wide.replace(v2, 3, ".v4") + address + " {" + inside + ", " + inside + "};";
  }
  return wide.insert(wide.rfind('.'), ".v2") + address + " {" + value + ", " + value + "};";
}

} // namespace

std::vector<Mutant> mutantsOf(std::string_view ptx) {
  const std::vector<std::string_view> lines = split(ptx, '\n');
  std::map<std::string, std::string> files;
  std::set<std::string> labelsSeen;
  for (std::string_view line : lines)
    if (trimmed(line).starts_with(".file")) {
      const std::string_view t = trimmed(line);
      const auto open = t.find('"'), close = t.rfind('"');
      const std::string_view path = t.substr(open + 1, close - open - 1);
      files[std::string(trimmed(t.substr(5, open - 5)))] = path.substr(path.rfind('/') + 1);
    }
  std::vector<Mutant> out;
  std::string location;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view t = trimmed(lines[i]);
    if (t.starts_with(".loc")) {
      const auto numbers = split(trimmed(t.substr(4)), ' ');
      location = numbers.size() > 1 ? files[std::string(numbers[0])] + ":" + std::string(numbers[1]) : "";
      continue;
    }
    if (t.ends_with(":"))
      labelsSeen.insert(std::string(t.substr(0, t.size() - 1)));
    if (t.empty() || !t.ends_with(";") || t.starts_with("."))
      continue;
    std::string_view guard;
    const std::string_view bare = withoutGuard(t, guard);
    const std::string_view opcode = firstWord(bare);
    auto with = [&](std::string_view replacement) {
      std::string text;
      for (std::size_t j = 0; j < lines.size(); ++j)
        text.append(j == i ? replacement : lines[j]).push_back('\n');
      return text;
    };
    auto add = [&](const char *kind, const std::string &replacement, const std::string &trap = "trap;") {
      out.push_back({kind, std::string(t), location, static_cast<unsigned>(i + 1), with(replacement), with(trap)});
    };
    if (opcode.starts_with("bar.") || opcode.starts_with("barrier."))
      add("drop-barrier", "");
    const bool memory = opcode.starts_with("ld.") || opcode.starts_with("st.") || opcode.starts_with("atom.") ||
                        opcode.starts_with("red.");
    if (!guard.empty() && memory)
      add("drop-guard", std::string(bare),
          (guard[1] == '!' ? "@" + std::string(guard.substr(2)) : "@!" + std::string(guard.substr(1))) + " trap;");
    if (!guard.empty() && opcode.starts_with("bra")) {
      const std::string target(trimmed(bare.substr(opcode.size(), bare.size() - opcode.size() - 1)));
      if (!labelsSeen.count(target)) // forward: it leads around something
        add("drop-guard", "", std::string(guard) + " trap;");
    }
    if (opcode.starts_with("st.")) {
      const int bytes = static_cast<int>(elementBytes(opcode));
      const std::string prefix = guard.empty() ? "" : std::string(guard) + " ";
      const int step = opcode.find(".v4") != std::string_view::npos   ? 4 * bytes
                       : opcode.find(".v2") != std::string_view::npos ? 2 * bytes
                                                                      : bytes;
      add("shift-store", prefix + shiftedStore(bare, step));
      add("shift-store", prefix + shiftedStore(bare, -step));
      if (const std::string wide = widenedStore(bare); !wide.empty())
        add("widen-store", prefix + wide);
    }
  }
  return out;
}

} // namespace kiln::test
