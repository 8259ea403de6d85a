#include "runtime/tune/HtmlReport.h"

#include "runtime/tune/Plot.h"
#include "support/Text.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace kiln::tune {
namespace {

constexpr const char *head = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width"/>
<title>%s</title><style>
:root { color-scheme: light dark; --dot: #2a78c8; --best: #d4541c; --bad: #a33; --quiet: #8888; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72em; margin: 1em auto; padding: 0 1em; }
h2 { margin-top: 1.6em; } svg { max-width: 44em; width: 100%%; } svg text { font-size: 12px; fill: currentColor; }
table { border-collapse: collapse; margin: .5em 0; } td, th { padding: .2em .7em; text-align: left; vertical-align: top;
border-bottom: 1px solid var(--quiet); } td.n { text-align: right; font-variant-numeric: tabular-nums; }
.grid { stroke: var(--quiet); stroke-width: .5; } .dot { fill: var(--dot); fill-opacity: .7; } .other { fill: var(--bad);
fill-opacity: .7; } .best { stroke: var(--best); stroke-width: 2; fill: none; } .diagonal { stroke: var(--quiet);
stroke-dasharray: 4; fill: none; } .roof { stroke: var(--best); fill: none; } .bar { background: var(--dot);
height: .8em; min-width: 1px; } .bars td:last-child { width: 20em; }
pre { white-space: pre-wrap; margin: 0; } .tie { color: var(--best); }
</style></head><body>
)";

std::string cellOf(const std::string &text) {
  return "<td>" + escaped(text) + "</td>";
}
std::string cellOf(double v, const char *fmt = "%.4g") {
  return std::isfinite(v) ? "<td class=\"n\">" + format(fmt, v) + "</td>" : "<td></td>";
}
std::string row(std::initializer_list<std::string> cells) {
  std::string out = "<tr>";
  for (const std::string &cell : cells)
    out += cell;
  return out + "</tr>\n";
}
std::string table(std::initializer_list<const char *> names, const std::string &rows, const char *style = "") {
  std::string out = format("<table class=\"%s\"><thead><tr>", style);
  for (const char *name : names)
    out += "<th>" + escaped(name) + "</th>";
  return out + "</tr></thead><tbody>\n" + rows + "</tbody></table>\n";
}
std::string section(const char *title, const std::string &body) {
  return body.empty() ? "" : format("<h2>%s</h2>\n", title) + body;
}

/// Logarithms are taken of times.
bool isTimed(const Entry &e) {
  return e.good() && e.milliseconds > 0 && std::isfinite(e.milliseconds);
}
std::vector<const Entry *> timed(const std::vector<Entry> &entries) {
  std::vector<const Entry *> out;
  for (const Entry &e : entries)
    if (isTimed(e))
      out.push_back(&e);
  std::stable_sort(out.begin(), out.end(), [](const Entry *a, const Entry *b) { return isBetter(*a, *b); });
  return out;
}

std::string whatOf(const JournalHeader &h) {
  std::string rows;
  for (const auto &[name, value] :
       {std::pair("kernel", &h.kernel), std::pair("call", &h.call), std::pair("type", &h.dtype),
        std::pair("target", &h.target), std::pair("device", &h.device), std::pair("objective", &h.objective),
        std::pair("compiler", &h.compiler), std::pair("timing", &h.timing)})
    if (!value->empty())
      rows += row({cellOf(name), cellOf(*value)});
  return "<table><tbody>\n" + rows + "</tbody></table>\n";
}

std::string convergence(const std::vector<Entry> &entries) {
  std::vector<Point> all, best;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry &e = entries[i];
    if (!isTimed(e))
      continue;
    const auto x = static_cast<double>(i + 1);
    all.push_back({x, e.milliseconds, e.key() + format(": %.4g ms", e.milliseconds)});
    if (best.empty() || e.milliseconds < best.back().y)
      best.push_back({x, e.milliseconds});
  }
  if (best.empty())
    return {};
  best.push_back({static_cast<double>(entries.size()), best.back().y});
  Plot plot({"configurations, in the order in which they were measured"}, {"ms", true});
  plot.dots(std::move(all), "dot");
  plot.steps(std::move(best), "best");
  return plot.svg();
}

std::string fastest(const std::vector<const Entry *> &good) {
  constexpr std::size_t most = 12;
  std::string rows;
  for (std::size_t i = 0; i < std::min(most, good.size()); ++i) {
    const Entry &e = *good[i];
    // Its fastest sample is not slower than the best one's slowest.
    const bool isTie = i && e.least > 0 && e.least <= good[0]->greatest;
    rows += row({cellOf(e.key()) + cellOf(e.milliseconds) + cellOf(e.least) + cellOf(e.greatest),
                 cellOf(e.milliseconds / good[0]->milliseconds, "%.3f"),
                 isTie ? "<td class=\"tie\">its samples and the best one's overlap</td>" : "<td></td>",
                 cellOf(join(e.conditions.notes, "; "))});
  }
  return rows.empty() ? ""
                      : table({"configuration", "median, ms", "least", "greatest", "times the best", "", ""}, rows);
}

/// Where the call lies under the device's roofs: all configurations do the same work.
std::string roofline(const std::optional<Roofline> &of, const std::vector<const Entry *> &good) {
  if (!of || good.empty())
    return {};
  const double x = of->intensity(), ridge = of->flopRate / of->byteRate, tera = 1e-12;
  std::vector<Point> points;
  for (const Entry *e : good) {
    const double rate = of->flops / (e->milliseconds * 1e-3);
    points.push_back({x, rate * tera,
                      e->key() + format(": %.4g TFLOP/s, %.0f %% of the roof", rate * tera, 100 * rate / of->roof())});
  }
  const double best = points[0].y;
  const double from = std::min(x, ridge) / 4, to = std::max(x, ridge) * 4;
  Plot plot({"FLOP a byte", true}, {"TFLOP/s", true});
  plot.line({from, of->byteRate * from * tera}, {ridge, of->flopRate * tera}, "roof");
  plot.line({ridge, of->flopRate * tera}, {to, of->flopRate * tera}, "roof");
  plot.dots(std::move(points), "dot");
  return format("<p>The call has %.4g FLOP and moves at least %.4g bytes: %.4g FLOP a byte. By the rates of %s it is "
                "limited by %s, at %.4g TFLOP/s; the best configuration reaches %.4g TFLOP/s, %.0f %% of that.</p>\n",
                of->flops, of->bytes, x, escaped(of->gpu).c_str(), x < ridge ? "memory" : "products", of->roof() * tera,
                best, 100 * best / (of->roof() * tera)) +
         plot.svg();
}

/// Times that are doubtful, and the clocks of all.
std::string conditions(const std::vector<Entry> &entries) {
  std::string rows, out;
  for (const NoteCount &n : countNotes(entries))
    rows += row({cellOf(n.note), cellOf(static_cast<double>(n.count), "%.0f"), cellOf(n.first->key())});
  if (!rows.empty())
    out = "<p>These were measured twice, and it was so both times.</p>\n" +
          table({"what happened to the GPU", "configurations", "the first"}, rows);
  for (const auto &[name, of] :
       {std::pair("multiprocessors", &Conditions::smMegahertz), std::pair("memory", &Conditions::memoryMegahertz)}) {
    std::vector<unsigned> clocks;
    for (const Entry &e : entries)
      if (e.good() && e.conditions.*of)
        clocks.push_back(*(e.conditions.*of));
    if (clocks.empty())
      continue;
    std::sort(clocks.begin(), clocks.end());
    out +=
        format("<p>The clock of %s, at its lowest while a configuration was measured: %u to %u MHz, median %u.</p>\n",
               name, clocks.front(), clocks.back(), clocks[clocks.size() / 2]);
  }
  return out;
}

std::string parameters(const std::vector<Entry> &entries) {
  std::string bars, values;
  for (const Importance &of : importances(entries)) {
    bars += row({cellOf(of.parameter), cellOf(100 * of.share, "%.0f %%"),
                 format("<td><div class=\"bar\" style=\"width: %.1f%%\"></div></td>", 100 * of.share)});
    std::map<std::string, std::vector<double>> times;
    std::vector<std::string> order;
    for (const Entry &e : entries)
      for (const auto &[name, value] : e.configuration)
        if (isTimed(e) && name == of.parameter) {
          if (!times.count(value))
            order.push_back(value);
          times[value].push_back(e.milliseconds);
        }
    std::sort(order.begin(), order.end(), [](const std::string &a, const std::string &b) {
      return std::pair(a.size(), a) < std::pair(b.size(), b); // numbers by their size
    });
    for (const std::string &value : order) {
      std::vector<double> &t = times[value];
      std::sort(t.begin(), t.end());
      values += row({cellOf(of.parameter + " = " + value), cellOf(static_cast<double>(t.size()), "%.0f"),
                     cellOf(t.front()), cellOf(t[t.size() / 2])});
    }
  }
  if (bars.empty())
    return {};
  return "<p>The share of the variance of the times' logarithms that the means by a parameter's values have. Of a "
         "sweep that did not measure the whole space it says what was measured, not what the space is like.</p>\n" +
         table({"parameter", "of the variance", ""}, bars, "bars") +
         table({"value", "configurations", "best, ms", "median, ms"}, values);
}

std::string estimates(const std::vector<const Entry *> &good) {
  std::vector<Point> points;
  double least = HUGE_VAL, most = 0;
  for (const Entry *e : good)
    if (e->estimate && *e->estimate > 0 && std::isfinite(*e->estimate)) {
      points.push_back({*e->estimate, e->milliseconds, e->key()});
      least = std::min({least, *e->estimate, e->milliseconds}), most = std::max({most, *e->estimate, e->milliseconds});
    }
  if (points.empty())
    return {};
  Plot plot({"estimate before the compile, ms", true}, {"ms", true});
  plot.line({least, least}, {most, most}, "diagonal");
  plot.dots(std::move(points), "dot");
  return plot.svg();
}

std::string failures(const std::vector<Entry> &entries) {
  std::string rows;
  for (unsigned o = 0; o < outcomes; ++o) {
    const auto outcome = static_cast<Outcome>(o);
    std::size_t count = 0;
    const Entry *first = nullptr;
    for (const Entry &e : entries)
      if (e.outcome == outcome && !e.good() && !count++)
        first = &e;
    if (first)
      rows += row({cellOf(std::string(outcomeName(outcome))), cellOf(static_cast<double>(count), "%.0f"),
                   cellOf(first->key()), "<td><pre>" + escaped(first->message) + "</pre></td>"});
  }
  return rows.empty() ? "" : table({"what became of it", "configurations", "the first", "its message"}, rows);
}

std::string comparison(const JournalContents &a, const JournalContents &b) {
  const std::vector<const Entry *> goodOfA = timed(a.entries), goodOfB = timed(b.entries);
  std::map<std::string, double> timesOfB;
  for (const Entry *e : goodOfB)
    timesOfB[e->key()] = e->milliseconds;
  std::vector<Point> points;
  double logs = 0, least = HUGE_VAL, most = 0;
  for (const Entry *e : goodOfA)
    if (const auto found = timesOfB.find(e->key()); found != timesOfB.end()) {
      points.push_back({e->milliseconds, found->second, e->key()});
      logs += std::log(found->second / e->milliseconds);
      least = std::min({least, e->milliseconds, found->second}),
      most = std::max({most, e->milliseconds, found->second});
    }
  std::string out = whatOf(b.header);
  std::string rows;
  if (!goodOfA.empty())
    rows += row({cellOf("this sweep"), cellOf(goodOfA[0]->key()), cellOf(goodOfA[0]->milliseconds)});
  if (!goodOfB.empty())
    rows += row({cellOf("the other"), cellOf(goodOfB[0]->key()), cellOf(goodOfB[0]->milliseconds)});
  if (!rows.empty())
    out += table({"", "its best configuration", "ms"}, rows);
  if (points.empty())
    return out + "<p>No configuration was measured in both.</p>\n";
  out += format(
      "<p>%zu configurations were measured in both; the other sweep's times are %.3f times this one's (geometric "
      "mean).</p>\n",
      points.size(), std::exp(logs / static_cast<double>(points.size())));
  Plot plot({"this sweep, ms", true}, {"the other, ms", true});
  plot.line({least, least}, {most, most}, "diagonal");
  plot.dots(std::move(points), "other");
  return out + plot.svg();
}

} // namespace

std::vector<Importance> importances(const std::vector<Entry> &entries) {
  struct Group {
    double sum = 0;
    std::size_t count = 0;
  };
  std::map<std::string, std::map<std::string, Group>> groups;
  const std::vector<const Entry *> good = timed(entries);
  const auto n = static_cast<double>(good.size());
  double mean = 0, variance = 0;
  for (const Entry *e : good)
    mean += std::log(e->milliseconds) / n;
  for (const Entry *e : good) {
    const double t = std::log(e->milliseconds) - mean;
    variance += t * t / n;
    for (const auto &[name, value] : e->configuration) {
      Group &group = groups[name][value];
      group.sum += t, ++group.count;
    }
  }
  std::vector<Importance> out;
  for (const auto &[name, values] : groups) {
    if (values.size() < 2)
      continue;
    double between = 0;
    for (const auto &[value, group] : values) {
      const auto c = static_cast<double>(group.count);
      between += group.sum * group.sum / c / n;
    }
    out.push_back({name, variance > 1e-18 ? std::clamp(between / variance, 0.0, 1.0) : 0});
  }
  std::stable_sort(out.begin(), out.end(), [](const Importance &a, const Importance &b) { return a.share > b.share; });
  return out;
}

std::string htmlReport(const JournalContents &sweep, const JournalContents *other) {
  const std::string title = escaped("Sweep of " + sweep.header.kernel + " on " + sweep.header.target);
  const std::vector<const Entry *> good = timed(sweep.entries);
  std::string out = format(head, title.c_str()) + "<h1>" + title + "</h1>\n" + whatOf(sweep.header);
  out += format("<p>%zu configurations, of which %zu are good", sweep.entries.size(), good.size());
  if (!good.empty())
    out += "; the best is <b>" + escaped(good[0]->key()) + format("</b>, %.4g ms", good[0]->milliseconds);
  out += ".</p>\n";
  out += section("How it went", convergence(sweep.entries));
  out += section("The fastest", fastest(good));
  out += section("Under the roofs", roofline(sweep.header.roofline, good));
  out += section("Under which conditions", conditions(sweep.entries));
  out += section("Which parameters matter", parameters(sweep.entries));
  out += section("The model's order", estimates(good));
  out += section("What failed", failures(sweep.entries));
  if (other)
    out += section("Another sweep", comparison(sweep, *other));
  return out + "</body></html>\n";
}

} // namespace kiln::tune
