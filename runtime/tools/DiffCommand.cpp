// `kiln diff`: the PTX of two kernels, compared without the numbers of registers and labels, and what each uses.
#include "kiln/Knobs.h"
#include "runtime/io/File.h"
#include "runtime/jit/CompileRequest.h"
#include "runtime/jit/CompilerLibrary.h"
#include "runtime/tools/CacheEntry.h"
#include "runtime/tools/Commands.h"
#include "runtime/tools/KernelProgram.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>

namespace kiln::tools {
namespace {

struct Options {
  std::string a, b, target = "sm_80";
  bool json = false;
};

/// The PTX of a .ptx file, of a text kernel or of an entry of the cache.
Result<std::string> ptxOf(const std::string &word, const Options &o, const Knobs &knobs) {
  if (word.ends_with(".ptx"))
    return readTextFile(word);
  if (!namesTextFile(word)) {
    KILN_ASSIGN(const std::string folder, cacheDirectory(knobs));
    cache::CacheOptions how;
    how.directory = folder;
    how.create = false;
    KILN_ASSIGN(const std::unique_ptr<cache::KernelCache> kernels, cache::KernelCache::open(std::move(how)));
    KILN_ASSIGN(CacheEntry found, findCacheEntry(*kernels, word));
    if (found.entry.kind == cache::EntryKind::Tuned)
      return Status::invalid("the entry '" + word + "' has tuned values and no program",
                             "kiln cache list says which entries are kernels");
    if (found.entry.kind != cache::EntryKind::Ptx)
      return Status::invalid("the entry '" + word + "' holds a cubin, no PTX",
                             "kiln cache extract gives its program, with the command that makes the PTX");
    return std::move(found.entry.payload);
  }
  KILN_ASSIGN(const std::string program, readTextFile(word));
  KILN_ASSIGN(const std::shared_ptr<CompilerLibrary> compiler, CompilerLibrary::find(knobs.compiler));
  KILN_ASSIGN(const CompileOptions asked, compileOptions(knobs, {.fromFile = true, .codeTarget = o.target}));
  KILN_ASSIGN(const CompileOutput out,
              compiler->compile({program, word, {}, o.target, {}, asked.json}, FileHashes(nullptr)));
  KILN_TRY(compileStatus(out, word));
  return out.output;
}

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

/// "%rd12" becomes "%rd", "$L__BB0_3" becomes "$L": what numbering alone changes.  Comments, .loc and the counts of
/// registers are left out.
std::vector<std::string> plainLines(std::string_view ptx) {
  std::vector<std::string> out;
  for (std::string_view line : split(ptx, '\n')) {
    line = line.substr(0, line.find("//"));
    const std::size_t begin = line.find_first_not_of(" \t"), end = line.find_last_not_of(" \t");
    if (begin == std::string_view::npos)
      continue;
    line = line.substr(begin, end - begin + 1);
    if (line.starts_with(".loc") || line.starts_with(".file") || line.starts_with(".reg"))
      continue;
    std::string plain;
    for (std::size_t i = 0; i < line.size(); ++i) {
      plain += line[i];
      if (line.substr(i, 2) == "$L") {
        plain += 'L';
        for (++i; i + 1 < line.size() && (std::isalnum(static_cast<unsigned char>(line[i + 1])) || line[i + 1] == '_');)
          ++i;
      } else if (line[i] == '%') {
        while (i + 1 < line.size() && std::isalpha(static_cast<unsigned char>(line[i + 1])))
          plain += line[++i];
        while (i + 1 < line.size() && isDigit(line[i + 1]))
          ++i;
      }
    }
    out.push_back(std::move(plain));
  }
  return out;
}

/// The name of an instruction without its predicate: "ld.global.v4.b32".
std::string instructionOf(std::string_view line) {
  if (line.starts_with("@"))
    line = line.substr(std::min(line.find(' '), line.size() - 1) + 1);
  return std::string(line.substr(0, line.find_first_of(" \t;")));
}

/// How often each kind of instruction occurs that a compiler's choice shows in.
std::map<std::string, long> countsOf(const std::vector<std::string> &lines) {
  std::map<std::string, long> out{{"lines", static_cast<long>(lines.size())}};
  for (const std::string &line : lines) {
    const std::string name = instructionOf(line);
    const auto is = [&](std::string_view prefix) { return name.starts_with(prefix); };
    if (is("bar.") || is("barrier."))
      ++out["barriers"];
    else if (is("shfl."))
      ++out["shuffles"];
    else if (is("ld.global") || is("st.global") || is("ld.shared") || is("st.shared") || is("cp.async") ||
             is("ldmatrix") || is("stmatrix") || is("mma.") || is("wgmma.") || is("cvt.") || is("ld.local") ||
             is("st.local"))
      ++out[is("mma.") || is("wgmma.") ? name.substr(0, name.find('.')) : name];
  }
  return out;
}

/// Lines of A alone with "-", of B alone with "+", in order; nothing where there is too much to compare.
std::vector<std::string> differences(const std::vector<std::string> &a, const std::vector<std::string> &b,
                                     bool &tooLong) {
  std::size_t front = 0, back = 0;
  while (front < std::min(a.size(), b.size()) && a[front] == b[front])
    ++front;
  while (back < std::min(a.size(), b.size()) - front && a[a.size() - 1 - back] == b[b.size() - 1 - back])
    ++back;
  const std::size_t n = a.size() - front - back, m = b.size() - front - back;
  constexpr std::size_t maxCells = std::size_t(1) << 26;
  tooLong = n * m > maxCells;
  if (tooLong)
    return {};
  // Longest common subsequences of the rests.
  std::vector<std::uint32_t> common((n + 1) * (m + 1));
  const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t & { return common[i * (m + 1) + j]; };
  for (std::size_t i = n; i-- > 0;)
    for (std::size_t j = m; j-- > 0;)
      at(i, j) = a[front + i] == b[front + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
  std::vector<std::string> out;
  for (std::size_t i = 0, j = 0; i < n || j < m;) {
    if (i < n && j < m && a[front + i] == b[front + j]) {
      ++i;
      ++j;
    } else if (j == m || (i < n && at(i + 1, j) >= at(i, j + 1)))
      out.push_back("- " + a[front + i++]);
    else
      out.push_back("+ " + b[front + j++]);
  }
  return out;
}

Result<Json> compare(const Options &o) {
  KILN_ASSIGN(const Knobs knobs, Knobs::fromEnvironment());
  KILN_ASSIGN(const std::string ptxA, ptxOf(o.a, o, knobs));
  KILN_ASSIGN(const std::string ptxB, ptxOf(o.b, o, knobs));
  const std::vector<std::string> a = plainLines(ptxA), b = plainLines(ptxB);
  std::map<std::string, std::pair<long, long>> rows;
  for (const auto &[name, count] : countsOf(a))
    rows[name].first = count;
  for (const auto &[name, count] : countsOf(b))
    rows[name].second = count;
  bool tooLong = false;
  const std::vector<std::string> lines = differences(a, b, tooLong);
  Json report{{"same", a == b}, {"lines", lines}, {"tooLong", tooLong}};
  std::vector<std::vector<std::string>> table{{"", "A", "B", "B - A"}};
  for (const auto &[name, count] : rows) {
    report["counts"][name] = {count.first, count.second};
    table.push_back({name, std::to_string(count.first), std::to_string(count.second),
                     count.first == count.second ? "" : format("%+ld", count.second - count.first)});
  }
  if (o.json)
    return report;
  printTable(table);
  std::printf("\n%s\n", a == b    ? "The PTX is the same, but for numbers of registers and labels."
                        : tooLong ? "The PTX differs in too many lines to compare them one by one."
                                  : "Lines of A (-) and B (+):");
  for (const std::string &line : lines)
    std::printf("%s\n", line.c_str());
  return report;
}

} // namespace

void addDiffCommand(CLI::App &app, int &exitStatus) {
  auto o = std::make_shared<Options>();
  CLI::App *c = app.add_subcommand("diff", "Compare the PTX of two kernels, and what each uses");
  const char *what = "A .ptx file, a text kernel FILE.mlir, or an entry of the cache as kiln cache list names it";
  c->add_option("a", o->a, what)->required()->type_name("A");
  c->add_option("b", o->b, what)->required()->type_name("B");
  c->add_option("--target", o->target, "What text kernels are compiled for")->capture_default_str();
  c->add_flag("--json", o->json, "One JSON object on standard output");
  c->footer("Examples:\n"
            "  kiln diff docs/examples/vector.ptx docs/examples/vector.ptx\n"
            "Exit status: 0 the same, 1 they differ, 2 input, 3 compile.");
  c->callback([o, &exitStatus] {
    Result<Json> report = compare(*o);
    if (!report) {
      exitStatus = fail("diff", report.status(), o->json);
      return;
    }
    exitStatus = (*report)["same"] ? 0 : 1;
    (*report)["status"] = exitStatus;
    if (o->json)
      printJson(*report);
  });
}

} // namespace kiln::tools
