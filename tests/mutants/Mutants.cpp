#include "tests/mutants/Mutants.h"
#include "tests/mutants/Lines.h"

#include "support/ParseNumber.h"
#include "support/Text.h"

#include <map>

namespace kiln::test {

namespace {

unsigned elementBytes(std::string_view opcode) {
  const std::string_view type = opcode.substr(opcode.rfind('.') + 1);
  return type.ends_with("128")  ? 16
         : type.ends_with("64") ? 8
         : type.ends_with("32") ? 4
         : type.ends_with("16") ? 2
                                : 1;
}
unsigned elementCount(std::string_view opcode) {
  return opcode.find(".v4") != std::string_view::npos ? 4 : opcode.find(".v2") != std::string_view::npos ? 2 : 1;
}

/// The text of an instruction, put together again.
std::string joined(const Instruction &in, std::string_view opcode, const std::vector<std::string> &operands) {
  std::string text = in.guard.empty() ? std::string() : std::string(in.guard) + " ";
  text += opcode;
  for (std::size_t i = 0; i < operands.size(); ++i)
    text += (i ? ", " : " ") + operands[i];
  return text + ";";
}
std::vector<std::string> strings(const std::vector<std::string_view> &views) {
  return {views.begin(), views.end()};
}

/// `operand` with `by` added (or, for parities, with its low bit flipped): a constant, or a register of 32 bits, for
/// which `before` gets the instructions that make the new value in the register %kilnMutant.
std::string changed(std::string_view operand, std::int64_t by, bool flip, std::string &before) {
  if (const auto value = parseNumber<std::int64_t>(operand))
    return std::to_string(flip ? *value ^ 1 : *value + by);
  before = ".reg .b32 %kilnMutant; " +
           (flip ? "xor.b32 %kilnMutant, " + std::string(operand) + ", 1; "
                 : "add.s32 %kilnMutant, " + std::string(operand) + ", " + std::to_string(by) + "; ");
  return "%kilnMutant";
}

/// [a], [a+8] with the displacement changed.
std::string displaced(std::string_view address, std::int64_t by) {
  const std::string inside(address.substr(1, address.size() - 2));
  const auto plus = inside.rfind('+');
  if (plus != std::string::npos)
    if (const auto old = parseNumber<std::int64_t>(std::string_view(inside).substr(plus + 1)))
      return "[" + inside.substr(0, plus + 1) + std::to_string(*old + by) + "]";
  return "[" + inside + "+" + std::to_string(by) + "]";
}

/// "st.global.b32 [a], r;" -> "st.global.v2.b32 [a], {r, r};"; empty if there is no wider form.
std::string widened(const Instruction &in) {
  const unsigned count = elementCount(in.opcode);
  if (count * elementBytes(in.opcode) >= 16)
    return {};
  std::vector<std::string> operands = strings(in.operands);
  std::string opcode(in.opcode), &value = operands.back();
  if (count == 2) {
    const std::string inside = value.substr(1, value.size() - 2);
    value = "{" + inside + ", " + inside + "}";
    opcode.replace(opcode.find(".v2"), 3, ".v4");
  } else {
    value = "{" + value + ", " + value + "}";
    opcode.insert(opcode.rfind('.'), ".v2");
  }
  return joined(in, opcode, operands);
}

class Maker {
public:
  explicit Maker(std::string_view ptx) : lines(ptx) {}

  std::vector<Mutant> all() {
    for (line = 0; line < lines.size(); ++line) {
      if (const auto found = lines.instruction(line)) {
        in = &*found;
        synchronisation();
        mbarriers();
        stores();
        stages();
        guards();
      }
    }
    return std::move(mutants);
  }

private:
  bool is(std::string_view prefix) const { return in->opcode.starts_with(prefix); }
  bool has(std::string_view part) const { return in->opcode.find(part) != std::string_view::npos; }

  void add(const char *kind, std::vector<Edit> change, std::string trap = {}) {
    const std::string entry(lines.entry(line));
    if (trap.empty())
      trap = in->guard.empty() ? "trap;" : std::string(in->guard) + " trap;";
    mutants.push_back({kind,
                       entry,
                       ++counts[entry + kind],
                       std::string(lines.trimmed(line)),
                       std::string(lines.location(line)),
                       static_cast<unsigned>(line + 1),
                       std::move(change),
                       {{line, std::move(trap)}}});
  }
  void replace(const char *kind, std::string text, std::string trap = {}) {
    add(kind, {{line, std::move(text)}}, std::move(trap));
  }
  /// With operand `index` changed.
  void adjust(const char *kind, std::size_t index, std::int64_t by, bool flip = false) {
    std::vector<std::string> operands = strings(in->operands);
    std::string before;
    operands[index] = changed(operands[index], by, flip, before);
    const std::string text = joined(*in, in->opcode, operands);
    replace(kind, before.empty() ? text : "{ " + before + text + " }");
  }

  /// Behind the next access; before the last one if no register of it could be missing there.
  void move(const char *kind, bool wholeBlock) {
    const unsigned depth = wholeBlock ? lines.depth(line) - 1 : lines.depth(line);
    const Lines::Unit unit = wholeBlock ? lines.unitOf(line, depth) : Lines::Unit{line, line};
    std::string text;
    std::vector<Edit> gone;
    bool registers = false;
    for (std::size_t i = unit.first; i <= unit.last; ++i) {
      text += std::string(lines[i]) + "\n";
      registers |= lines.trimmed(i).find('%') != std::string_view::npos;
      gone.push_back({i, ""});
    }
    if (const auto next = lines.accessFrom(unit, 1)) {
      std::vector<Edit> edits = gone;
      edits.push_back({next->last, std::string(lines[next->last]) + "\n" + text});
      add(kind, std::move(edits));
    }
    if (const auto last = lines.accessFrom(unit, -1); last && !registers) {
      std::vector<Edit> edits = gone;
      edits.push_back({last->first, text + std::string(lines[last->first])});
      add(kind, std::move(edits));
    }
  }

  void synchronisation() {
    if (is("bar.") || is("barrier.")) {
      replace("drop-barrier", "");
      move("move-barrier", false);
    } else if (has(".commit_group")) {
      replace("drop-commit", "");
      move("move-commit", false);
    } else if (has(".wait_group") || has(".wait_all")) {
      replace("drop-wait", "");
      move("move-wait", false);
      if (has(".wait_group")) {
        adjust("weaken-wait", 0, 1);
        if (is("cp.async.bulk") && !has(".read"))
          replace("weaken-wait", joined(*in, std::string(in->opcode) + ".read", strings(in->operands)));
      }
    } else if (is("fence.") || is("membar.") || is("wgmma.fence")) {
      replace("drop-fence", "");
      move("move-fence", false);
    }
  }

  void mbarriers() {
    if (is("cp.async.mbarrier.arrive") || is("mbarrier.arrive")) {
      replace("drop-arrive", "");
      if (has("expect_tx")) {
        adjust("change-expect", in->operands.size() - 1, 16);
        adjust("change-expect", in->operands.size() - 1, -16);
      }
    } else if (is("mbarrier.expect_tx")) {
      replace("drop-arrive", "");
      adjust("change-expect", 1, 16);
      adjust("change-expect", 1, -16);
    } else if (is("mbarrier.test_wait") || is("mbarrier.try_wait")) {
      replace("drop-wait", "setp.eq.u32 " + std::string(in->operands[0]) + ", 0, 0;");
      if (lines.depth(line) > 1)
        move("move-wait", true);
      if (has(".parity"))
        adjust("flip-parity", 2, 0, true);
    }
    if (is("mbarrier.") && !is("mbarrier.init") && !is("mbarrier.inval")) {
      // The neighbour in an array of barriers.
      for (std::size_t i = 0; i < in->operands.size(); ++i)
        if (in->operands[i].starts_with("[")) {
          std::vector<std::string> operands = strings(in->operands);
          operands[i] = displaced(operands[i], 8);
          replace("shift-stage", joined(*in, in->opcode, operands));
        }
    }
  }

  void stores() {
    if (is("st.async") || has(".param") || has(".local"))
      return;
    if (is("st.")) {
      const int step = static_cast<int>(elementBytes(in->opcode) * elementCount(in->opcode));
      for (int by : {step, -step}) {
        std::vector<std::string> operands = strings(in->operands);
        operands[0] = displaced(operands[0], by);
        replace("shift-store", joined(*in, in->opcode, operands));
      }
      if (std::string wide = widened(*in); !wide.empty())
        replace("widen-store", std::move(wide));
    } else if ((is("cp.async.bulk.") || is("cp.reduce.")) && has(".global.shared")) {
      if (has(".tensor")) {
        std::vector<std::string> operands = strings(in->operands);
        const auto brace = operands[0].find('{'), end = operands[0].find_first_of(",}", brace);
        std::string before;
        const std::string x = changed(operands[0].substr(brace + 1, end - brace - 1), 1, false, before);
        operands[0] = operands[0].substr(0, brace + 1) + x + operands[0].substr(end);
        replace("shift-store", "{ " + before + joined(*in, in->opcode, operands) + " }");
      } else
        adjust("widen-store", 2, 16);
    }
  }

  /// Index arithmetic of rings and rows: i % 2^n, also scaled; i - n * (i / n); index * stride; stage ^= 1.
  void stages() {
    if (!in->guard.empty() || in->operands.size() < 3)
      return;
    const std::string d(in->operands[0]), a(in->operands[1]);
    const auto b = parseNumber<std::int64_t>(in->operands[2]);
    if (!b)
      return;
    if (is("and.b32") && *b > 0) {
      const std::int64_t low = *b & -*b;
      if (const std::int64_t mask = *b / low; mask == 1 || mask == 3 || mask == 7)
        replace("shift-stage", "{ .reg .b32 %kilnMutant; add.s32 %kilnMutant, " + a + ", " + std::to_string(low) +
                                   "; and.b32 " + d + ", %kilnMutant, " + std::to_string(*b) + "; }");
    } else if (is("xor.b32") && *b == 1)
      replace("shift-stage", "mov.b32 " + d + ", " + a + ";");
    else if ((is("mad.lo.s32") || is("mad.lo.u32")) && (*b >= 16 || (*b < 0 && *b >= -16)))
      replace("shift-stage",
              std::string(in->bare) + " add.s32 " + d + ", " + d + ", " + std::to_string(*b < 0 ? 1 : *b) + ";");
    else if ((is("mul.lo.s32") || is("mul.lo.u32")) && *b > 1)
      replace("shift-stage",
              std::string(in->bare) + " add.s32 " + d + ", " + d + ", " + std::to_string(*b < 16 ? -1 : *b) + ";");
    else if ((is("rem.s32") || is("rem.u32")) && *b > 1)
      replace("shift-stage", "{ .reg .b32 %kilnMutant; add.s32 %kilnMutant, " + a + ", 1; " + std::string(in->opcode) +
                                 " " + d + ", %kilnMutant, " + std::to_string(*b) + "; }");
  }

  void guards() {
    const std::string_view guard = in->guard;
    const bool access = isAccess(in->opcode) && !is("bar");
    if (!guard.empty() && access)
      replace("drop-guard", std::string(in->bare),
              (guard[1] == '!' ? "@" + std::string(guard.substr(2)) : "@!" + std::string(guard.substr(1))) + " trap;");
    // Branches inside the braces of inline assembly are loops of waits.
    if (!guard.empty() && is("bra") && lines.depth(line) == 1 && skipsAnAccess(in->operands[0]))
      replace("drop-guard", "", std::string(guard) + " trap;");
    // The size of a copy: all or nothing.
    if (is("selp.") && in->operands.size() == 4) {
      const auto yes = parseNumber<std::int64_t>(in->operands[1]), no = parseNumber<std::int64_t>(in->operands[2]);
      if (yes && no && (*yes == 0) != (*no == 0) && *yes + *no >= 4 && *yes + *no <= 16)
        replace("drop-guard", "mov.b32 " + std::string(in->operands[0]) + ", " + std::to_string(*yes + *no) + ";",
                std::string(*yes ? "@!" : "@") + std::string(in->operands[3]) + " trap;");
    }
  }

  /// Whether the label stands further down, behind some access.
  bool skipsAnAccess(std::string_view label) const {
    bool access = false;
    for (std::size_t i = line + 1; i < lines.size() && lines.entry(i) == lines.entry(line); ++i) {
      if (lines.depth(i) == 1 && lines.isLabel(i) && lines.trimmed(i).substr(0, lines.trimmed(i).size() - 1) == label)
        return access;
      if (const auto skipped = lines.instruction(i))
        access |= isAccess(skipped->opcode) || skipped->opcode.starts_with("call");
    }
    return false;
  }

  Lines lines;
  std::size_t line = 0;
  const Instruction *in = nullptr;
  std::map<std::string, unsigned> counts;
  std::vector<Mutant> mutants;
};

} // namespace

std::vector<Mutant> mutantsOf(std::string_view ptx) {
  return Maker(ptx).all();
}

std::string edited(std::string_view ptx, const std::vector<Edit> &edits) {
  std::map<std::size_t, std::string_view> by;
  for (const Edit &e : edits)
    by[e.line] = e.text;
  std::string text;
  text.reserve(ptx.size() + 256);
  const std::vector<std::string_view> lines = split(ptx, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto edit = by.find(i);
    text.append(edit == by.end() ? lines[i] : edit->second).push_back('\n');
  }
  return text;
}

} // namespace kiln::test
