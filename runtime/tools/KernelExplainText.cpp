// What `kiln explain KERNEL` prints, from the compiler's JSON.
#include "runtime/tools/BenchPrediction.h"
#include "runtime/tools/KernelExplain.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::tools {
namespace {

std::string baseName(const std::string &path) {
  return path.substr(path.rfind('/') + 1);
}

/// "Softmax.cpp:60"; "?" where the compiler knows no line.
std::string place(const Json &item) {
  const std::string file = item.value("file", "");
  return file.empty() ? "?" : baseName(file) + ":" + std::to_string(item.value("line", 0));
}

std::string plural(std::uint64_t n, const std::string &word, const std::string &end = "s") {
  return std::to_string(n) + " " + word + (n == 1 ? "" : end);
}

std::string indented(const std::string &text, const std::string &by) {
  std::string out;
  for (std::string_view line : split(text, '\n'))
    if (!line.empty())
      out += by + std::string(line) + "\n";
  return out;
}

/// Rows as columns, two spaces apart, after two spaces.
std::string columns(const std::vector<std::vector<std::string>> &rows) {
  std::vector<std::size_t> widths;
  for (const auto &row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto &row : rows) {
    out += "  ";
    for (std::size_t i = 0; i < row.size(); ++i)
      out += row[i] + (i + 1 < row.size() ? std::string(widths[i] + 2 - row[i].size(), ' ') : "\n");
  }
  return out;
}

/// Where a reduction's text goes on with the conversion of its partial results, which is listed by itself.
constexpr const char *exchange = ", after this conversion:";

/// A part that the compiler could not answer about.
bool hasNote(const Json &item, std::string &out) {
  for (const char *key : {"error", "note"})
    if (item.contains(key)) {
      out = item.value(key, "");
      return true;
    }
  return false;
}

class Writer {
public:
  Writer(const Json &report, bool whole)
      : report(report), explanation(report.at("explain")), whole(whole), legend(explanation) {}

  std::string write() {
    head();
    tiles();
    memory();
    conversions();
    reductions();
    roles();
    shared();
    barriers();
    resources();
    predicted();
    if (report.contains("svg"))
      out += "picture: " + report.value("svg", "") + "\n";
    return out;
  }

private:
  void head() {
    out += "kernel " + report.value("kernel", "") + " for " + report.value("target", "") + ": " +
           plural(report.value("num_warps", 0u), "warp") + clusterAndMaps() + ", PTX " + report.value("ptx_isa", "") +
           (report.value("reproducible", true) ? "" : ", results are not reproducible (atomics on floats)") + "\n";
    if (const std::string configuration = report.value("configuration", ""); !configuration.empty())
      out += "configuration: " + configuration + "\n";
    std::vector<std::string> facts;
    for (const Json &g : report.value("guards", Json::array())) {
      const Json &argument = report.at("arguments").at(g.value("argument", std::size_t(0)));
      facts.push_back(argument.value("name", "?") +
                      (g.contains("equals")
                           ? " = " + std::to_string(g.value("equals", std::int64_t(0)))
                           : " divisible by " + std::to_string(g.value("divisibility", std::int64_t(0)))));
    }
    out += "compiled for: " + (facts.empty() ? "arguments of which nothing is known" : join(facts)) + "\n";
  }

  std::string clusterAndMaps() const {
    std::string text, extents;
    for (const Json &n : report.value("cluster", Json::array()))
      extents += (extents.empty() ? "" : " x ") + n.dump();
    if (!extents.empty())
      text += ", clusters of " + extents + " blocks";
    if (const std::size_t maps = report.value("hidden", Json::array()).size())
      text += ", " + plural(static_cast<unsigned>(maps), "tensor map");
    return text;
  }

  void tiles() {
    out += "\nlayouts\n";
    std::vector<std::vector<std::string>> rows;
    for (const LayoutLegend::Row &r : legend.rows)
      rows.push_back({r.letter, r.layout});
    out += rows.empty() ? "  none: the kernel has no tiles\n" : columns(rows);

    out += "\ntiles: where, type, layout, registers a thread, operations\n";
    rows.clear();
    for (const Json &op : explanation.at("operations")) {
      std::vector<std::string> row{place(op), op.value("type", ""), legend.letterOf(op.value("layout", "")),
                                   std::to_string(op.value("registers", 0)), op.value("op", "")};
      const bool same = !rows.empty() && std::equal(row.begin(), row.end() - 1, rows.back().begin());
      if (same)
        rows.back().back() += ", " + row.back();
      else
        rows.push_back(std::move(row));
    }
    out += columns(rows);
  }

  void memory() {
    out += "\nglobal memory\n";
    std::vector<std::vector<std::string>> rows;
    for (const Json &a : explanation.at("memory")) {
      std::string what;
      if (!hasNote(a, what)) {
        if (!a.contains("elements"))
          what = "one thread moves a scalar";
        else
          what = plural(a.value("elements", 0u), "element") + " (" + plural(a.value("bytes", 0u), "byte") +
                 ") an access along dimension " + std::to_string(a.value("dimension", 0)) + ", " +
                 plural(a.value("accesses", 0u), "access", "es") + " a thread" +
                 (a.contains("whole_elements")
                      ? "; in tiles wholly inside " + plural(a.value("whole_elements", 0u), "element") + " an access"
                      : "");
      }
      rows.push_back({place(a), a.value("op", ""), a.value("type", ""), legend.letterOf(a.value("layout", "")), what});
    }
    out += rows.empty() ? "  none\n" : columns(rows);
  }

  void conversions() {
    constexpr const char *partial = "partial results";
    for (const auto &[heading, exchanged] : {std::pair("layout conversions left: ", false),
                                             std::pair("exchanges of partial results between warps: ", true)}) {
      std::string text;
      unsigned count = 0;
      for (const Json &c : explanation.at("conversions"))
        if ((c.value("of", "") == partial) == exchanged) {
          text += conversion(c);
          ++count;
        }
      if (count || !exchanged)
        out += "\n" + (heading + std::to_string(count)) + "\n" + text;
    }
  }

  std::string conversion(const Json &c) const {
    std::string text = "  " + place(c) + "  " + c.value("type", "") + " from " + legend.letterOf(c.value("from", "")) +
                       " to " + legend.letterOf(c.value("to", "")) + "\n";
    std::string plan;
    if (!hasNote(c, plan))
      plan = c.value("text", "");
    for (std::string_view line : split(plan, '\n'))
      if (!line.empty() && (whole || !line.starts_with("  not ")))
        text += "    " + std::string(line) + "\n";
    return text;
  }

  void reductions() {
    const Json &all = explanation.at("reductions");
    if (all.empty())
      return;
    out += "\nreductions: the order in which elements are combined\n";
    for (const Json &r : all) {
      std::string text;
      if (!hasNote(r, text))
        text = r.value("text", "");
      out += "  " + place(r) + "  " + r.value("op", "") + " of " + r.value("type", "") + " along dimension " +
             std::to_string(r.value("axis", 0)) + "\n" + indented(text.substr(0, text.find(exchange)), "    ");
      if (text.find(exchange) != std::string::npos)
        out += "      (that conversion is above)\n";
    }
  }

  /// Of calls, whose tiles follow from their sizes: not those of --set.
  void predicted() {
    if (!report.contains("predicted"))
      return;
    out +=
        "\ncalls, with the configurations that their sizes choose: " + predictionHead(report.value("predictedFor", ""));
    for (const Json &row : report.at("predicted"))
      out += predictionText(row);
  }

  void roles() {
    const Json &roles = explanation.at("roles");
    out += roles.size() == 1 ? "\nroles: one, " : "\nroles: ";
    for (const Json &role : roles) {
      std::vector<std::string> work;
      for (const Json &w : role.at("work"))
        work.push_back(w.get<std::string>());
      const bool last = &role == &roles.back();
      if (last)
        work.emplace_back(work.empty() ? "everything" : "everything else");
      const unsigned registers = role.value("registers", 0u);
      out += (role.contains("name") ? role.value("name", "") + ", " : "of ") + plural(role.value("warps", 0u), "warp") +
             (registers ? " of " + std::to_string(registers) + " registers a thread" : "") + ": " + join(work) +
             (last ? "\n" : "; ");
    }
    const Json &all = explanation.at("pipelines");
    if (all.empty())
      return;
    out += "pipelines: buffers that are filled while others are read\n";
    std::vector<std::vector<std::string>> rows;
    for (const Json &p : all) {
      const unsigned slots = p.value("slots", 0u);
      rows.push_back({place(p), p.value("name", ""),
                      std::to_string(slots) + " slots of " + plural(p.value("bytes", 0u), "byte") + ", copied " +
                          plural(slots - 1, "round") + " ahead"});
    }
    out += columns(rows);
  }

  void shared() {
    const Json &s = explanation.at("shared");
    out += "\nshared memory: " + std::to_string(s.value("bytes", 0)) + " of " + std::to_string(s.value("limit", 0)) +
           " bytes\n";
    std::vector<std::vector<std::string>> rows{{"offset", "bytes", "alive", "buffer"}};
    for (const Json &b : s.at("buffers")) {
      const std::string from = place(b.at("from")), to = place(b.at("to"));
      const std::string loop = b.at("to").value("op", "").starts_with("scf.") ? " (through the loop)" : "";
      rows.push_back({std::to_string(b.value("offset", 0)), std::to_string(b.value("bytes", 0)),
                      (from == to ? from : from + " to " + to) + loop, b.value("type", "") + " of " + place(b)});
    }
    if (rows.size() > 1)
      out += columns(rows);
    const Json &accesses = explanation.at("shared_accesses");
    if (accesses.empty())
      return;
    std::uint64_t conflicts = 0;
    rows.clear();
    for (const Json &a : accesses) {
      std::string what;
      if (!hasNote(a, what)) {
        const unsigned wavefronts = a.value("wavefronts", 0u), ideal = a.value("ideal", 0u);
        conflicts += a.value("conflicts", std::uint64_t(0));
        what = a.value("form", "") + ", " + plural(a.value("bytes", 0u), "byte") + " a lane, " +
               plural(a.value("instructions", 0u), "instruction") + " a warp, " + plural(wavefronts, "wavefront") +
               " each" + (wavefronts == ideal ? "" : ", " + std::to_string(ideal) + " without bank conflicts");
      }
      rows.push_back({place(a), a.value("op", ""), what});
    }
    out += "accesses to it, predicted bank conflicts of a warp: " + std::to_string(conflicts) + "\n" + columns(rows);
  }

  void barriers() {
    const Json &all = explanation.at("barriers");
    out += "\nbarriers: " + std::to_string(all.size()) + "\n";
    std::vector<std::vector<std::string>> rows;
    for (const Json &b : all) {
      std::string between;
      for (const char *side : {"after", "before"})
        if (b.contains(side))
          between += (between.empty() ? "" : ", ") + std::string(side) + " " + b[side].value("op", "") + " of " +
                     place(b[side]);
      rows.push_back({place(b), b.value("op", ""), between});
    }
    out += columns(rows);
  }

  void resources() {
    const Json &r = report.at("resources");
    if (r.contains("unknown")) {
      out += "\nregisters and spills: unknown; " + r.value("unknown", "") + "\n";
      return;
    }
    out += "\nresources (" + r.value("assembler", "") + ", " + r.value("arch", "") +
           "): " + plural(r.value("registers", 0u), "register") + " a thread, " +
           (r.contains("spillStoreBytes") ? plural(r.value("spillStoreBytes", 0u), "byte") + " spilled"
                                          : std::string("spills unknown")) +
           ", " + plural(r.value("stackBytes", 0u), "byte") + " of stack\n";
  }

  const Json &report, &explanation;
  const bool whole;
  const LayoutLegend legend;
  std::string out;
};

} // namespace

LayoutLegend::LayoutLegend(const Json &explanation) {
  for (const Json &op : explanation.at("operations")) {
    const std::string layout = op.value("layout", "");
    if (std::any_of(rows.begin(), rows.end(), [&](const Row &r) { return r.layout == layout; }))
      continue;
    std::string letter;
    for (std::size_t n = rows.size() + 1; n; n = (n - 1) / 26)
      letter.insert(letter.begin(), static_cast<char>('A' + (n - 1) % 26));
    rows.push_back({letter, layout, op.value("type", "")});
  }
}

std::string LayoutLegend::letterOf(const std::string &layout) const {
  for (const Row &r : rows)
    if (r.layout == layout)
      return r.letter;
  return layout;
}

std::string kernelText(const Json &report, bool whole) {
  return Writer(report, whole).write();
}

} // namespace kiln::tools
