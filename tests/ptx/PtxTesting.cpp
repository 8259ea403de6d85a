#include "PtxTesting.h"

#include "runtime/ptx/Parser.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace kiln::ptx::test {

std::unique_ptr<Module> accepted(std::string text) {
  auto r = parse(std::move(text), "t.ptx");
  EXPECT_TRUE(r.ok()) << r.status().toString();
  return r.ok() ? std::move(*r) : nullptr;
}

std::string refused(std::string text) {
  auto r = parse(std::move(text), "t.ptx");
  EXPECT_FALSE(r.ok());
  return r.ok() ? "accepted" : r.status().toString();
}

namespace {

/// Collects the first difference on the way down; `path` says where.
class Comparer {
public:
  std::string found;

  template <typename T> void same(const std::string &path, const T &a, const T &b) {
    if (found.empty() && !(a == b))
      found = path;
  }

  template <typename T, typename F> void list(const std::string &path, const T &a, const T &b, F each) {
    same(path + ".size", a.size(), b.size());
    for (std::size_t i = 0; found.empty() && i < a.size(); ++i)
      each(path + "[" + std::to_string(i) + "]", a[i], b[i]);
  }

  void operand(const std::string &path, const Operand &a, const Operand &b) {
    same(path + ".kind", a.kind, b.kind);
    same(path + ".negated", a.negated, b.negated);
    same(path + ".floatBits", a.floatBits, b.floatBits);
    same(path + ".text", a.text, b.text);
    same(path + ".bits", a.bits, b.bits);
    list(path + ".elements", a.elements, b.elements, [this](auto &&...x) { operand(x...); });
    same(path + ".second", a.second == nullptr, b.second == nullptr);
    if (found.empty() && a.second)
      operand(path + ".second", *a.second, *b.second);
  }

  void variable(const std::string &path, const Variable &a, const Variable &b) {
    same(path + ".space", a.space, b.space);
    same(path + ".type", a.type, b.type);
    same(path + ".vector", a.vector, b.vector);
    same(path + ".name", a.name, b.name);
    same(path + ".rangeCount", a.rangeCount, b.rangeCount);
    same(path + ".align", a.align, b.align);
    same(path + ".isArray", a.isArray, b.isArray);
    same(path + ".extents", a.extents, b.extents);
    same(path + ".external", a.external, b.external);
    same(path + ".visible", a.visible, b.visible);
    same(path + ".weak", a.weak, b.weak);
    same(path + ".common", a.common, b.common);
    same(path + ".managed", a.managed, b.managed);
    same(path + ".isPointer", a.isPointer, b.isPointer);
    same(path + ".pointerSpace", a.pointerSpace, b.pointerSpace);
    same(path + ".pointerAlign", a.pointerAlign, b.pointerAlign);
    list(path + ".init", a.init, b.init, [this](const std::string &p, const auto &x, const auto &y) {
      same(p + ".kind", x.kind, y.kind);
      same(p + ".bits", x.bits, y.bits);
      same(p + ".floatBits", x.floatBits, y.floatBits);
      same(p + ".symbol", x.symbol, y.symbol);
      same(p + ".generic", x.generic, y.generic);
      same(p + ".byteMask", x.byteMask, y.byteMask);
    });
  }

  void variables(const std::string &path, const std::vector<Variable> &a, const std::vector<Variable> &b) {
    list(path, a, b, [this](auto &&...x) { variable(x...); });
  }

  void statement(const std::string &path, const Statement &a, const Statement &b) {
    same(path + ".alternative", a.node.index(), b.node.index());
    if (!found.empty())
      return;
    if (const auto *i = std::get_if<Instruction>(&a.node)) {
      const auto &j = std::get<Instruction>(b.node);
      same(path + ".guard", i->guard, j.guard);
      same(path + ".guardNegated", i->guardNegated, j.guardNegated);
      same(path + ".opcode", i->opcode, j.opcode);
      same(path + ".location", i->location, j.location);
      same(path + ".usedBytesMask", i->usedBytesMask, j.usedBytesMask);
      list(path + ".operands", i->operands, j.operands, [this](auto &&...x) { operand(x...); });
    } else if (const auto *l = std::get_if<Label>(&a.node)) {
      same(path + ".name", l->name, std::get<Label>(b.node).name);
    } else if (const auto *v = std::get_if<Variable>(&a.node)) {
      variable(path, *v, std::get<Variable>(b.node));
    } else if (const auto *s = std::get_if<std::unique_ptr<Scope>>(&a.node)) {
      scope(path, **s, *std::get<std::unique_ptr<Scope>>(b.node));
    } else {
      const auto &t = std::get<TargetList>(a.node), &u = std::get<TargetList>(b.node);
      same(path + ".kind", t.kind, u.kind);
      same(path + ".label", t.label, u.label);
      same(path + ".names", t.names, u.names);
      variables(path + ".returns", t.returns, u.returns);
      variables(path + ".parameters", t.parameters, u.parameters);
    }
  }

  void scope(const std::string &path, const Scope &a, const Scope &b) {
    list(path + ".statements", a.statements, b.statements, [this](auto &&...x) { statement(x...); });
  }

  void function(const std::string &path, const Function &a, const Function &b) {
    same(path + ".isEntry", a.isEntry, b.isEntry);
    same(path + ".external", a.external, b.external);
    same(path + ".visible", a.visible, b.visible);
    same(path + ".weak", a.weak, b.weak);
    same(path + ".noreturn", a.noreturn, b.noreturn);
    same(path + ".hasBody", a.hasBody, b.hasBody);
    same(path + ".name", a.name, b.name);
    variables(path + ".returns", a.returns, b.returns);
    variables(path + ".parameters", a.parameters, b.parameters);
    same(path + ".reqntid", std::to_array(a.reqntid), std::to_array(b.reqntid));
    same(path + ".maxntid", std::to_array(a.maxntid), std::to_array(b.maxntid));
    same(path + ".reqnctapercluster", std::to_array(a.reqnctapercluster), std::to_array(b.reqnctapercluster));
    same(path + ".minnctapersm", a.minnctapersm, b.minnctapersm);
    same(path + ".maxnreg", a.maxnreg, b.maxnreg);
    same(path + ".maxclusterrank", a.maxclusterrank, b.maxclusterrank);
    same(path + ".explicitCluster", a.explicitCluster, b.explicitCluster);
    same(path + ".blocksAreClusters", a.blocksAreClusters, b.blocksAreClusters);
    list(path + ".locations", a.locations, b.locations, [this](const std::string &p, const auto &x, const auto &y) {
      same(p + ".file", x.file, y.file);
      same(p + ".line", x.line, y.line);
      same(p + ".column", x.column, y.column);
    });
    scope(path, a.body, b.body);
  }

  void module(const Module &a, const Module &b) {
    same("versionMajor", a.versionMajor, b.versionMajor);
    same("versionMinor", a.versionMinor, b.versionMinor);
    same("targets", a.targets, b.targets);
    same("addressSize", a.addressSize, b.addressSize);
    same("files", a.files, b.files);
    same("aliases", a.aliases, b.aliases);
    variables("variables", a.variables, b.variables);
    list("functions", a.functions, b.functions, [this](auto &&...x) { function(x...); });
  }
};

void collect(const Scope &s, std::vector<const Instruction *> &out) {
  for (const Statement &statement : s.statements) {
    if (const auto *i = std::get_if<Instruction>(&statement.node))
      out.push_back(i);
    else if (const auto *nested = std::get_if<std::unique_ptr<Scope>>(&statement.node))
      collect(**nested, out);
  }
}

} // namespace

std::string difference(const Module &a, const Module &b) {
  Comparer c;
  c.module(a, b);
  return c.found;
}

std::vector<const Instruction *> instructions(const Function &f) {
  std::vector<const Instruction *> out;
  collect(f.body, out);
  return out;
}

const std::vector<Sample> &samples() {
  static const std::vector<Sample> all = [] {
    std::vector<Sample> out;
    for (const auto &entry : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/tests/ptx/data"))
      if (entry.path().extension() == ".ptx") {
        std::ifstream in(entry.path(), std::ios::binary);
        out.push_back({entry.path().filename().string(), std::string(std::istreambuf_iterator<char>(in), {})});
      }
    std::ranges::sort(out, {}, &Sample::name);
    return out;
  }();
  return all;
}

} // namespace kiln::ptx::test
