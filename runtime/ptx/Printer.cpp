#include "runtime/ptx/Printer.h"

#include "support/Text.h"

#include <algorithm>

namespace kiln::ptx {

namespace {

std::string integer(std::uint64_t bits) {
  // Small negative numbers read better signed; either way 64 bits come back.
  const auto value = static_cast<std::int64_t>(bits);
  return value < 0 && value > -(std::int64_t{1} << 32) ? std::to_string(value) : std::to_string(bits);
}

std::string floating(std::uint64_t bits, unsigned floatBits) {
  if (floatBits == 32)
    return format("0f%08llX", static_cast<unsigned long long>(bits));
  return format("0d%016llX", static_cast<unsigned long long>(bits));
}

class Printer {
public:
  std::string out;

  void module(const Module &m) {
    out += ".version " + std::to_string(m.versionMajor) + "." + std::to_string(m.versionMinor) + "\n.target ";
    names(m.targets);
    out += "\n.address_size " + std::to_string(m.addressSize) + "\n";
    for (const auto &[number, path] : m.files)
      out += ".file " + std::to_string(number) + " \"" + path + "\"\n";
    // Assemblers want a function declared before an initial value names it, so the leading declarations come first.
    std::size_t declared = 0;
    for (; declared < m.functions.size() && !m.functions[declared].hasBody; ++declared)
      function(m.functions[declared]);
    for (const Variable &v : m.variables)
      variable(v, 0);
    for (; declared < m.functions.size(); ++declared)
      function(m.functions[declared]);
    for (const auto &[name, aliasee] : m.aliases)
      append({".alias ", name, ", ", aliasee, ";\n"});
  }

  void operand(const Operand &o) {
    switch (o.kind) {
    case Operand::Kind::Register:
      append({o.negated ? "!" : "", o.text});
      if (o.bits)
        out += "+" + integer(o.bits);
      break;
    case Operand::Kind::Integer:
      out += integer(o.bits);
      break;
    case Operand::Kind::Float:
      out += floating(o.bits, o.floatBits);
      break;
    case Operand::Kind::Address:
      append({"[", o.text});
      if (o.text.empty())
        out += integer(o.bits);
      else if (o.bits)
        out += "+" + integer(o.bits);
      for (const Operand &e : o.elements) {
        out += ", ";
        operand(e);
      }
      out += "]";
      break;
    case Operand::Kind::Vector:
      elements(o.elements, "{", "}");
      break;
    case Operand::Kind::List:
      elements(o.elements, "(", ")");
      break;
    case Operand::Kind::Sink:
      out += "_";
      break;
    }
    if (o.second) {
      out += "|";
      operand(*o.second);
    }
  }

  void instruction(const Instruction &i) {
    if (!i.guard.empty())
      append({i.guardNegated ? "@!" : "@", i.guard, " "});
    out += i.opcode;
    if (!i.operands.empty())
      elements(i.operands, " ", "");
  }

private:
  void append(std::initializer_list<std::string_view> parts) {
    for (std::string_view p : parts)
      out += p;
  }

  void names(const std::vector<std::string_view> &list) {
    for (std::size_t i = 0; i < list.size(); ++i)
      append({i ? ", " : "", list[i]});
  }

  void elements(const std::vector<Operand> &list, const char *open, const char *close) {
    out += open;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i)
        out += ", ";
      operand(list[i]);
    }
    out += close;
  }

  void indent(unsigned depth) { out.append(depth, '\t'); }

  void linkage(bool external, bool visible, bool weak, bool common) {
    out += external ? ".extern " : visible ? ".visible " : weak ? ".weak " : common ? ".common " : "";
  }

  /// ".param .align 8 .b8 name[16]": a declaration without its initialiser.
  void declaration(const Variable &v) {
    append({".", spaceName(v.space), " "});
    if (v.managed)
      out += ".attribute(.managed) ";
    if (v.align)
      out += ".align " + std::to_string(v.align) + " ";
    if (v.vector > 1)
      out += ".v" + std::to_string(v.vector) + " ";
    append({".", typeName(v.type), " "});
    if (v.isPointer) {
      out += ".ptr ";
      if (v.pointerSpace != Space::Generic)
        append({".", spaceName(v.pointerSpace), " "});
      if (v.pointerAlign)
        out += ".align " + std::to_string(v.pointerAlign) + " ";
    }
    out += v.name;
    if (v.rangeCount)
      out += "<" + std::to_string(v.rangeCount) + ">";
    for (std::uint64_t e : v.extents)
      out += e ? "[" + std::to_string(e) + "]" : "[]";
  }

  void initial(const Variable::Init &i) {
    switch (i.kind) {
    case Variable::Init::Kind::Integer:
      out += integer(i.bits);
      return;
    case Variable::Init::Kind::Float:
      out += floating(i.bits, i.floatBits);
      return;
    case Variable::Init::Kind::Symbol:
      if (i.byteMask)
        out += format("0x%llX(", static_cast<unsigned long long>(i.byteMask));
      append({i.generic ? "generic(" : "", i.symbol, i.generic ? ")" : ""});
      if (i.bits)
        out += "+" + std::to_string(i.bits);
      if (i.byteMask)
        out += ")";
      return;
    }
  }

  /// The elements from `next` on that belong to one array of the dimensions `extents`, `rank` of them.
  void initials(const Variable &v, const std::uint64_t *extents, std::size_t rank, std::size_t &next) {
    out += "{";
    for (std::uint64_t i = 0; i < extents[0] && next < v.init.size(); ++i) {
      if (i)
        out += ", ";
      if (rank > 1)
        initials(v, extents + 1, rank - 1, next);
      else
        initial(v.init[next++]);
    }
    out += "}";
  }

  void variable(const Variable &v, unsigned depth) {
    indent(depth);
    linkage(v.external, v.visible, v.weak, v.common);
    declaration(v);
    if (!v.init.empty()) {
      out += " = ";
      std::vector<std::uint64_t> extents = v.extents;
      if (v.vector > 1)
        extents.push_back(v.vector);
      std::size_t next = 0;
      if (extents.empty())
        initial(v.init[0]);
      else
        initials(v, extents.data(), extents.size(), next);
    }
    out += ";\n";
  }

  void parameters(const std::vector<Variable> &list) {
    out += "(";
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i)
        out += ", ";
      declaration(list[i]);
    }
    out += ")";
  }

  void counts(const char *name, const std::uint32_t (&n)[3]) {
    if (n[0])
      out += format("\n%s %u, %u, %u", name, n[0], n[1], n[2]);
  }

  void function(const Function &f) {
    linkage(f.external, f.visible, f.weak, false);
    out += f.isEntry ? ".entry " : ".func ";
    if (!f.returns.empty()) {
      parameters(f.returns);
      out += " ";
    }
    out += f.name;
    parameters(f.parameters);
    counts(".reqntid", f.reqntid);
    counts(".maxntid", f.maxntid);
    if (f.explicitCluster)
      out += "\n.explicitcluster";
    counts(".reqnctapercluster", f.reqnctapercluster);
    if (f.blocksAreClusters)
      out += "\n.blocksareclusters";
    if (f.minnctapersm)
      out += "\n.minnctapersm " + std::to_string(f.minnctapersm);
    if (f.maxnreg)
      out += "\n.maxnreg " + std::to_string(f.maxnreg);
    if (f.maxclusterrank)
      out += "\n.maxclusterrank " + std::to_string(f.maxclusterrank);
    if (f.noreturn)
      out += "\n.noreturn";
    if (!f.hasBody) {
      out += ";\n";
      return;
    }
    out += "\n{\n";
    std::int32_t location = -1;
    scope(f, f.body, 1, location);
    locations(f, static_cast<std::int32_t>(f.locations.size()) - 1, 1, location);
    out += "}\n";
  }

  /// Brings the .loc in force from `current` to `wanted`, by way of those that stand between them.
  void locations(const Function &f, std::int32_t wanted, unsigned depth, std::int32_t &current) {
    const auto count = static_cast<std::int32_t>(f.locations.size());
    if (wanted < 0 || wanted >= count || wanted == current)
      return;
    for (current = wanted > current ? current + 1 : wanted;; ++current) {
      const Location &l = f.locations[static_cast<std::size_t>(current)];
      indent(depth);
      out += format(".loc %u %u %u\n", l.file, l.line, l.column);
      if (current == wanted)
        return;
    }
  }

  void targetList(const TargetList &list, unsigned depth) {
    indent(depth);
    append({list.label, ": "});
    switch (list.kind) {
    case TargetList::Kind::Branch:
    case TargetList::Kind::Call:
      out += list.kind == TargetList::Kind::Branch ? ".branchtargets " : ".calltargets ";
      names(list.names);
      break;
    case TargetList::Kind::Prototype:
      out += ".callprototype ";
      if (!list.returns.empty())
        parameters(list.returns);
      out += " _ ";
      parameters(list.parameters);
      break;
    }
    out += ";\n";
  }

  void scope(const Function &f, const Scope &s, unsigned depth, std::int32_t &location) {
    for (const Statement &statement : s.statements) {
      if (const auto *i = std::get_if<Instruction>(&statement.node)) {
        locations(f, i->location, depth, location);
        indent(depth);
        if (i->usedBytesMask) {
          out += format(".pragma \"used_bytes_mask 0x%llx\";\n", static_cast<unsigned long long>(*i->usedBytesMask));
          indent(depth);
        }
        instruction(*i);
        out += ";\n";
      } else if (const auto *l = std::get_if<Label>(&statement.node)) {
        append({l->name, ":\n"});
      } else if (const auto *v = std::get_if<Variable>(&statement.node)) {
        variable(*v, depth);
      } else if (const auto *nested = std::get_if<std::unique_ptr<Scope>>(&statement.node)) {
        indent(depth);
        out += "{\n";
        scope(f, **nested, depth + 1, location);
        indent(depth);
        out += "}\n";
      } else {
        targetList(std::get<TargetList>(statement.node), depth);
      }
    }
  }
};

} // namespace

std::string print(const Module &m) {
  Printer p;
  p.out.reserve(m.text.size() + m.text.size() / 4);
  p.module(m);
  return std::move(p.out);
}

std::string print(const Operand &o) {
  Printer p;
  p.operand(o);
  return std::move(p.out);
}

std::string print(const Instruction &i) {
  Printer p;
  p.instruction(i);
  return std::move(p.out);
}

} // namespace kiln::ptx
