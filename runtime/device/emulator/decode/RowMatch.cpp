#include "runtime/device/emulator/decode/RowMatch.h"

#include "support/Text.h"

#include <algorithm>

namespace kiln::emulator {

using ptx::Type;

Type doubleWidth(Type type) {
  switch (type) {
  case Type::U16:
    return Type::U32;
  case Type::S16:
    return Type::S32;
  case Type::B16:
    return Type::B32;
  case Type::U32:
    return Type::U64;
  case Type::S32:
    return Type::S64;
  case Type::B32:
    return Type::B64;
  case Type::F32:
    return Type::F64;
  case Type::B64:
    return Type::B128;
  default:
    return Type::None;
  }
}

static std::vector<std::string_view> words(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (std::string_view piece : split(text, separator))
    if (!piece.empty())
      out.push_back(piece);
  return out;
}

static OperandSpec parseOperand(std::string_view text) {
  OperandSpec spec;
  if (text.ends_with('?')) {
    spec.optional = true;
    text.remove_suffix(1);
  }
  if (text.starts_with('=')) {
    spec.destination = true;
    text.remove_prefix(1);
    if (text.ends_with("|p") && text.size() > 2) {
      spec.pairPredicate = true;
      text.remove_suffix(2);
    }
  }
  if (text == "p") {
    spec.kind = OperandSpec::Kind::Predicate;
    spec.type = Type::Pred;
  } else if (text == "i") {
    spec.kind = OperandSpec::Kind::Immediate;
  } else if (text == "m") {
    spec.kind = OperandSpec::Kind::MemberMask;
    spec.type = Type::B32;
  } else {
    if (text.size() == 2 && text[0] == 'w') {
      spec.wide = true;
      text.remove_prefix(1);
    }
    if (text.size() == 1 && text[0] >= '0' && text[0] <= '3')
      spec.typeIndex = static_cast<std::int8_t>(text[0] - '0');
    else
      spec.type = ptx::typeFromName(text);
  }
  return spec;
}

static PreparedRow prepare(const Row &row) {
  PreparedRow out;
  out.row = &row;
  out.words = static_cast<unsigned>(words(row.mnemonic, '.').size());
  for (std::string_view group : words(row.modifiers, ' ')) {
    if (group == "*") {
      out.anyModifier = true;
      continue;
    }
    PreparedRow::Group g;
    if (group.ends_with('?')) {
      g.optional = true;
      group.remove_suffix(1);
    }
    g.names = words(group, '|');
    out.groups.push_back(std::move(g));
  }
  for (std::string_view alternative : split(row.types, '|')) {
    std::vector<Type> list;
    for (std::string_view name : words(alternative, '.'))
      list.push_back(ptx::typeFromName(name));
    out.types.push_back(std::move(list));
  }
  out.custom = std::string_view(row.operands) == "custom";
  if (!out.custom)
    for (std::string_view operand : words(row.operands, ' '))
      out.operands.push_back(parseOperand(operand));
  return out;
}

RowIndex::RowIndex(const InstructionTable &table) {
  for (std::span<const Row> family : table.families)
    for (const Row &row : family) {
      const std::string_view mnemonic = row.mnemonic;
      byWord[mnemonic.substr(0, mnemonic.find('.'))].push_back(prepare(row));
    }
  for (auto &entry : byWord)
    std::stable_sort(entry.second.begin(), entry.second.end(),
                     [](const PreparedRow &a, const PreparedRow &b) { return a.words > b.words; });
}

const Row *RowIndex::internal(std::string_view mnemonic) const {
  const auto found = byWord.find(mnemonic);
  return found == byWord.end() ? nullptr : found->second.front().row;
}

/// Words of an opcode after the mnemonic, as modifiers and types in order.
struct OpcodeWords {
  std::vector<std::string_view> modifiers;
  std::vector<Type> types;
};

static OpcodeWords classify(std::span<const std::string_view> list) {
  OpcodeWords out;
  for (std::string_view word : list) {
    const Type type = ptx::typeFromName(word);
    if (type == Type::None)
      out.modifiers.push_back(word);
    else
      out.types.push_back(type);
  }
  return out;
}

static bool modifiersMatch(const PreparedRow &row, std::span<const std::string_view> modifiers) {
  std::vector<char> used(row.groups.size(), 0);
  for (std::string_view m : modifiers) {
    bool found = false;
    for (std::size_t g = 0; g < row.groups.size() && !found; ++g)
      if (!used[g] && std::find(row.groups[g].names.begin(), row.groups[g].names.end(), m) != row.groups[g].names.end())
        used[g] = found = true;
    if (!found && !row.anyModifier)
      return false;
  }
  for (std::size_t g = 0; g < row.groups.size(); ++g)
    if (!used[g] && !row.groups[g].optional)
      return false;
  return true;
}

/// Instruction families that no version of the emulator runs, or that come with a later part of it.
static const char *unsupportedReason(std::string_view word) {
  for (std::string_view w : {"tex", "tld4", "txq", "suld", "sust", "sured", "suq"})
    if (w == word)
      return "textures and surfaces are not emulated";
  for (std::string_view w : {"tcgen05", "multimem"})
    if (w == word)
      return "not emulated";
  for (std::string_view w :
       {"vadd",   "vsub",      "vabsdiff", "vmin",  "vmax",  "vshl",  "vshr",  "vmad",   "vset",  "vadd2", "vsub2",
        "vavrg2", "vabsdiff2", "vmin2",    "vmax2", "vset2", "vadd4", "vsub4", "vavrg4", "vmin4", "vmax4", "vset4"})
    if (w == word)
      return "video instructions other than vabsdiff4 are not emulated";
  if (word == "clusterlaunchcontrol")
    return "clusters that take over the blocks of others are not emulated in this version";
  return nullptr;
}

static std::string formText(const PreparedRow &row) {
  std::string out = row.row->mnemonic;
  auto alternatives = [](const std::vector<std::string_view> &names) {
    std::string s;
    for (std::string_view n : names)
      s += (s.empty() ? "." : "|.") + std::string(n);
    return names.size() > 1 ? "{" + s + "}" : s;
  };
  for (const PreparedRow::Group &g : row.groups)
    out += g.optional ? "[" + alternatives(g.names) + "]" : alternatives(g.names);
  std::vector<std::string> types;
  for (const auto &list : row.types) {
    std::string s;
    for (Type t : list)
      s += "." + std::string(ptx::typeName(t));
    if (!s.empty())
      types.push_back(s);
  }
  if (types.size() > 24) {
    types.resize(24);
    types.push_back("...");
  }
  if (!types.empty())
    out += types.size() > 1 ? "{" + join(types, "|") + "}" : types[0];
  return out;
}

Status RowIndex::explain(std::string_view opcode, const std::vector<PreparedRow> &rows) const {
  if (opcode.starts_with("wgmma.mma_async.sp"))
    return {StatusCode::Unsupported, "unsupported: " + std::string(opcode) + ": not emulated in this version"};
  const std::vector<std::string_view> all = words(opcode, '.');
  auto named = [&](std::string_view w) { return std::find(all.begin(), all.end(), w) != all.end(); };
  if (all[0] == "mma") {
    const char *what = named("sp") || named("sp::ordered_metadata")    ? "sparse matrices are"
                       : named("block_scale") || named("kind::f8f6f4") ? "block scaling and the kind f8f6f4 are"
                       : named("m8n8k4") && named("f16")               ? "four products of m8n8k4 in one warp are"
                                                                       : nullptr;
    if (what)
      return {StatusCode::Unsupported,
              "unsupported: " + std::string(opcode) + ": " + what + " not emulated in this version"};
  }
  // Prefer the rows whose modifiers fit: then only the types are wrong.
  std::vector<std::string> forms;
  for (bool needModifiers : {true, false}) {
    for (const PreparedRow &row : rows) {
      if (row.words > all.size())
        continue;
      const OpcodeWords w = classify(std::span(all).subspan(row.words));
      if (!needModifiers || modifiersMatch(row, w.modifiers))
        if (std::string text = formText(row); std::find(forms.begin(), forms.end(), text) == forms.end())
          forms.push_back(std::move(text));
    }
    if (!forms.empty())
      break;
  }
  if (forms.size() > 8) {
    forms.resize(8);
    forms.push_back("...");
  }
  return {StatusCode::CompileError, std::string(opcode) + ": no such form", "forms that exist: " + join(forms)};
}

Result<RowMatch> RowIndex::match(std::string_view opcode, const Target &target) const {
  const std::vector<std::string_view> all = words(opcode, '.');
  if (all.empty() || all[0].starts_with('%'))
    return Status(StatusCode::CompileError, "'" + std::string(opcode) + "' is not an instruction");
  const auto found = byWord.find(all[0]);
  if (found == byWord.end()) {
    if (const char *reason = unsupportedReason(all[0]))
      return Status(StatusCode::Unsupported, "unsupported: " + std::string(opcode) + ": " + reason);
    std::vector<std::string> known;
    for (const auto &entry : byWord)
      if (!entry.first.starts_with('%'))
        known.emplace_back(entry.first);
    std::sort(known.begin(), known.end());
    const std::vector<std::string> close = nearest(all[0], known);
    return Status(StatusCode::CompileError, "unknown instruction '" + std::string(opcode) + "'",
                  close.empty() ? "" : "did you mean " + join(close) + "?");
  }
  const Row *tooNew = nullptr;
  for (const PreparedRow &row : found->second) {
    if (row.words > all.size())
      continue;
    std::string_view prefix = opcode.substr(0, std::string_view(row.row->mnemonic).size());
    if (prefix != row.row->mnemonic)
      continue;
    const OpcodeWords w = classify(std::span(all).subspan(row.words));
    if (w.modifiers.size() > Form::maxModifiers || w.types.size() > Form::maxTypes)
      continue;
    if (!modifiersMatch(row, w.modifiers) || std::find(row.types.begin(), row.types.end(), w.types) == row.types.end())
      continue;
    if (target.sm < row.row->minSm || (row.row->archSpecific && !target.archSpecific)) {
      if (!tooNew || row.row->minSm < tooNew->minSm)
        tooNew = row.row;
      continue;
    }
    RowMatch out;
    out.row = &row;
    out.form.mnemonic = row.row->mnemonic;
    for (std::string_view m : w.modifiers)
      out.form.modifiers[out.form.numModifiers++] = m;
    for (Type t : w.types)
      out.form.types[out.form.numTypes++] = t;
    out.form.target = &target;
    return out;
  }
  if (tooNew) {
    std::string needs = "sm_" + std::to_string(tooNew->minSm) + (tooNew->archSpecific ? "a" : "");
    for (const Target &t : allTargets())
      if (t.sm >= tooNew->minSm && (!tooNew->archSpecific || t.archSpecific)) {
        needs = t.name;
        break;
      }
    return Status(StatusCode::CompileError, std::string(opcode) + ": " + std::string(target.name) + " does not have it",
                  needs + " is the first target that does");
  }
  return explain(opcode, found->second);
}

} // namespace kiln::emulator
