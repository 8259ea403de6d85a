#include "runtime/tools/TimelineDrawing.h"

#include "support/Markup.h"
#include "support/Text.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace kiln::tools {

namespace {

struct Paint {
  const char *fill, *text; ///< of a label on it
};

constexpr Paint classPaints[instructionClasses] = {
    {"#9fc5e8", "#1b2a3a"}, // integer
    {"#4a7fb5", "#ffffff"}, // float
    {"#234b78", "#ffffff"}, // special
    {"#78bfb6", "#12302d"}, // convert
    {"#bcdcc4", "#1d3323"}, // compare
    {"#d9dee6", "#2b3240"}, // move
    {"#98a3b5", "#1b2230"}, // control
    {"#b57aa8", "#ffffff"}, // warp
    {"#ecdcb4", "#3a3013"}, // constant
    {"#f4a63f", "#3a2504"}, // load
    {"#dc6a2e", "#ffffff"}, // store
    {"#b93a2b", "#ffffff"}, // atomic
    {"#a9cf86", "#20330f"}, // matrix move
    {"#4f9e49", "#ffffff"}, // matrix
    {"#2a9d8f", "#ffffff"}, // asynchronous
    {"#7d70b3", "#ffffff"}, // mbarrier
    {"#3b3f52", "#ffffff"}, // barrier
    {"#9a7760", "#ffffff"}, // fence
    {"#c9c9c9", "#222222"}, // other
};

struct WaitPaint {
  const char *name, *line, *ground;
};
constexpr WaitPaint waitPaints[] = {
    {"barrier", "#8b8fa3", "#eff0f4"},           {"barrier of the cluster", "#5f6379", "#e6e7ee"},
    {"mbarrier", "#9d92cc", "#f2f0f9"},          {"group of asynchronous work", "#6cbab0", "#eaf6f4"},
    {"lanes of the warp", "#c99bbf", "#f8eff6"},
};

struct WorkPaint {
  std::string_view prefix, name;
  const char *fill, *pale;
};
constexpr WorkPaint workPaints[] = {
    {"cp.async.bulk", "bulk copy", "#8a5fbf", "#d9c9ee"},  {"cp.reduce", "bulk copy", "#8a5fbf", "#d9c9ee"},
    {"cp.async", "cp.async", "#1f8a7d", "#b4e0da"},        {"wgmma", "wgmma", "#3f8f3a", "#c4e6c1"},
    {"", "other asynchronous work", "#7a7a7a", "#dddddd"},
};
const WorkPaint &paintOf(const TimelineWork &work) {
  return *std::find_if(std::begin(workPaints), std::end(workPaints),
                       [&](const WorkPaint &p) { return work.opcode.starts_with(p.prefix); });
}

/// Text of a PTX file, which may hold any bytes.
std::string escaped(std::string_view text) {
  return escapedMarkup(text, [](char c) { return c < ' ' || c > '~' ? '?' : c; });
}

std::string number(double v) {
  std::string text = format("%.2f", v);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.'))
    text.pop_back();
  return text;
}

std::string plural(std::uint64_t n, const char *word) {
  return std::to_string(n) + " " + word + (n == 1 ? "" : "s");
}

/// The largest of 1, 2, 5 times a power of ten that gives at least 6 marks.
std::uint64_t stepFor(std::uint64_t ticks) {
  std::uint64_t step = 1;
  for (std::uint64_t power = 1; power <= ticks; power *= 10)
    for (const std::uint64_t m : {1, 2, 5})
      if (ticks / (power * m) >= 6)
        step = power * m;
  return step;
}

/// Cells that look the same, as one.
struct Stretch {
  std::uint64_t begin = 0, end = 0; ///< ticks
  TimelineCell sum;
  std::array<std::uint64_t, instructionClasses + 1> share{}; ///< of a cell, in eighths; the last: waiting
};

std::vector<Stretch> stretchesOf(const Timeline &t, unsigned warp) {
  std::vector<Stretch> out;
  const auto &cells = t.warps[warp];
  // Shares of a cell that differ by less than can be seen do not count as different.
  const auto steps = [&](std::uint64_t ticks) { return (ticks * 8 + t.ticksPerCell / 2) / t.ticksPerCell; };
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const TimelineCell &c = cells[i];
    Stretch s;
    s.begin = i * t.ticksPerCell;
    s.end = std::min((i + 1) * t.ticksPerCell, t.ticks);
    s.sum = c;
    bool empty = true;
    for (unsigned k = 0; k < instructionClasses; ++k) {
      s.share[k] = steps(c.instructions[k]);
      empty = empty && !c.instructions[k];
    }
    s.share[instructionClasses] = steps(c.waiting);
    if (empty && !c.waiting)
      continue;
    Stretch *last = out.empty() ? nullptr : &out.back();
    const bool same =
        last && last->end == s.begin && last->share == s.share && (!c.waiting || last->sum.wait == c.wait);
    if (!same) {
      out.push_back(s);
      continue;
    }
    last->end = s.end;
    for (unsigned k = 0; k < instructionClasses; ++k)
      last->sum.instructions[k] += c.instructions[k];
    last->sum.waiting += c.waiting;
    if (last->sum.firstPlace == TimelineCell::none)
      last->sum.firstPlace = c.firstPlace;
    if (c.lastPlace != TimelineCell::none)
      last->sum.lastPlace = c.lastPlace;
  }
  return out;
}

struct Placed {
  const TimelineWork *work;
  unsigned lane;
};
constexpr unsigned mostLanes = 6;

/// The works of a warp in lanes, each in the first that is free; the last lane takes what is left.
std::vector<Placed> placeWorks(const Timeline &t, unsigned warp, unsigned &lanes) {
  std::vector<const TimelineWork *> works;
  for (const TimelineWork &w : t.works)
    if (w.warp == warp)
      works.push_back(&w);
  std::stable_sort(works.begin(), works.end(), [](auto *a, auto *b) { return a->issued < b->issued; });
  std::vector<Placed> out;
  std::vector<std::uint64_t> freeAt;
  for (const TimelineWork *w : works) {
    unsigned lane = 0;
    while (lane < freeAt.size() && freeAt[lane] > w->issued)
      ++lane;
    lane = std::min(lane, mostLanes - 1);
    if (lane == freeAt.size())
      freeAt.push_back(0);
    const std::uint64_t end = w->observed != TimelineWork::never    ? w->observed
                              : w->delivered != TimelineWork::never ? w->delivered
                                                                    : t.ticks;
    freeAt[lane] = std::max(freeAt[lane], end + t.ticksPerCell);
    out.push_back({w, lane});
  }
  lanes = static_cast<unsigned>(freeAt.size());
  return out;
}

class Drawing {
public:
  explicit Drawing(const Timeline &t) : t(t) {
    rowHeight = t.warps.size() <= 8 ? 26 : t.warps.size() <= 16 ? 20 : 15;
    ticks = static_cast<double>(std::max<std::uint64_t>(t.ticks, 1));
  }

  std::string operator()() {
    double y = top;
    for (unsigned w = 0; w < t.warps.size(); ++w)
      y = drawWarp(w, y);
    const double bottom = y;
    drawAxis(bottom);
    const double height = drawLegend(bottom + 44);
    return head(height) + grid + body + "</svg>\n";
  }

private:
  double at(double tick) const { return left + tick / ticks * plot; }

  std::string head(double height) const {
    std::string out = format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
                             "height=\"%.0f\" font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', "
                             "sans-serif\">\n",
                             width, height, width, height);
    out += "<style>.s:hover{stroke:#000;stroke-width:1.2}text{pointer-events:none}";
    for (unsigned k = 0; k < instructionClasses; ++k)
      out += format(".k%u{fill:%s}", k, classPaints[k].fill);
    for (std::size_t k = 0; k < std::size(waitPaints); ++k)
      out += format(".p%zu{fill:url(#w%zu)}", k, k);
    out += "</style>\n<defs>\n";
    for (std::size_t k = 0; k < std::size(waitPaints); ++k)
      out += format("<pattern id=\"w%zu\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
                    "patternTransform=\"rotate(45)\"><rect width=\"7\" height=\"7\" fill=\"%s\"/><rect width=\"1.6\" "
                    "height=\"7\" fill=\"%s\"/></pattern>\n",
                    k, waitPaints[k].ground, waitPaints[k].line);
    out += format("</defs>\n<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", width, height);
    out += format("<text x=\"%.0f\" y=\"28\" font-size=\"17\" font-weight=\"600\" fill=\"#1d2330\">%s</text>\n", margin,
                  escaped(t.kernel + format(": block %u,%u,%u of %u,%u,%u", t.index[0], t.index[1], t.index[2],
                                            t.grid[0], t.grid[1], t.grid[2]))
                      .c_str());
    std::string about = plural(std::uint64_t(t.block[0]) * t.block[1] * t.block[2], "thread") + ", " +
                        plural(t.warps.size(), "warp") + ". " +
                        (t.inStep ? "A tick is one instruction of every warp that can run"
                                  : "A tick is one instruction of one warp, in the order of the schedule") +
                        (t.ticksPerCell > 1 ? "; every cell sums " + std::to_string(t.ticksPerCell) + " ticks" : "") +
                        ". The clock shows who waits for whom, not how long a GPU takes.";
    out += format("<text x=\"%.0f\" y=\"47\" font-size=\"12\" fill=\"#5a6272\">%s</text>\n", margin,
                  escaped(about).c_str());
    return out;
  }

  std::string placeText(const TimelineCell &c) const {
    if (c.firstPlace >= t.places.size())
      return {};
    const std::string &first = t.places[c.firstPlace], &last = t.places[c.lastPlace];
    return "\n" + (first == last ? first : first + " to " + last);
  }

  void rect(double x, double y, double w, double h, const std::string &fill, const std::string &title) {
    body +=
        format("<rect class=\"s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"%s\"><title>%s</title></rect>\n",
               number(x).c_str(), number(y).c_str(), number(w).c_str(), number(h).c_str(), fill.c_str(),
               escapedTitle(title).c_str());
  }
  /// Escapes all but the line breaks of a title.
  static std::string escapedTitle(const std::string &title) {
    std::string out;
    for (std::string_view line : split(title, '\n'))
      out += (out.empty() ? "" : "\n") + escaped(line);
    return out;
  }
  /// Centred, if it fits.
  void label(double x, double y, double w, double size, const char *color, const std::string &text) {
    if (static_cast<double>(text.size()) * size * 0.58 + 6 > w)
      return;
    body += format("<text x=\"%s\" y=\"%s\" font-size=\"%s\" text-anchor=\"middle\" fill=\"%s\">%s</text>\n",
                   number(x + w / 2).c_str(), number(y + size * 0.35).c_str(), number(size).c_str(), color,
                   escaped(text).c_str());
  }

  void drawStretch(const Stretch &s, double y) {
    const double x = at(static_cast<double>(s.begin)), w = at(static_cast<double>(s.end)) - x;
    const double cells = static_cast<double>(s.end - s.begin);
    std::string span = s.end - s.begin == 1 ? "tick " + std::to_string(s.begin)
                                            : format("ticks %llu to %llu", static_cast<unsigned long long>(s.begin),
                                                     static_cast<unsigned long long>(s.end - 1));
    std::string text = span + ":";
    for (unsigned k = 0; k < instructionClasses; ++k)
      if (s.sum.instructions[k]) {
        text += " " + std::string(instructionClassName(static_cast<InstructionClass>(k))) + " " +
                std::to_string(s.sum.instructions[k]) + ",";
        usedClasses[k] = true;
      }
    const bool waits = s.sum.waiting && s.sum.wait < t.waits.size();
    if (waits)
      text += " waits " + plural(s.sum.waiting, "tick") + " for " + t.waits[s.sum.wait].what + ",";
    text.pop_back();
    text += placeText(s.sum);
    body += "<g class=\"s\"><title>" + escapedTitle(text) + "</title>";
    double from = y + rowHeight;
    const auto part = [&](const std::string &paint, std::uint64_t ticks) {
      const double h = rowHeight * std::min(1.0, static_cast<double>(ticks) / cells);
      from -= h;
      body += format("<rect class=\"%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"/>", paint.c_str(),
                     number(x).c_str(), number(from).c_str(), number(w).c_str(), number(h).c_str());
      return h == rowHeight;
    };
    std::string name;
    const char *ink = "";
    for (unsigned k = 0; k < instructionClasses; ++k)
      if (s.sum.instructions[k] && part("k" + std::to_string(k), s.sum.instructions[k]) && rowHeight >= 20) {
        name = instructionClassName(static_cast<InstructionClass>(k));
        ink = classPaints[k].text;
      }
    if (waits) {
      const auto kind = static_cast<std::size_t>(t.waits[s.sum.wait].kind);
      usedWaits[kind] = true;
      if (part("p" + std::to_string(kind), s.sum.waiting)) {
        name = t.waits[s.sum.wait].what.substr(0, t.waits[s.sum.wait].what.find(" at "));
        ink = "#2b3040\" stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke";
      }
    }
    body += "</g>\n";
    if (!name.empty())
      label(x, y + rowHeight / 2, w, 11, ink, name);
  }

  void drawWork(const Placed &p, double y) {
    const TimelineWork &w = *p.work;
    const WorkPaint &paint = paintOf(w);
    usedWorks[static_cast<std::size_t>(&paint - workPaints)] = true;
    const bool delivered = w.delivered != TimelineWork::never, observed = w.observed != TimelineWork::never;
    const double begin = at(static_cast<double>(w.issued));
    const double end = std::max(begin + 3, at(static_cast<double>(observed    ? w.observed
                                                                  : delivered ? w.delivered
                                                                              : t.ticks)));
    const double moved = delivered ? std::clamp(at(static_cast<double>(w.delivered)), begin + 3, end) : end;
    std::string text =
        w.opcode + (w.works > 1 ? " x " + std::to_string(w.works) : "") +
        (w.bytes ? ", " + plural(w.bytes, "byte") : "") + "\nissued at tick " + std::to_string(w.issued) + " by warp " +
        std::to_string(w.warp) + ", " + t.places[w.place] + "\n" +
        (delivered ? "data moved at tick " + std::to_string(w.delivered) : std::string("not delivered")) + "\n" +
        (observed ? "waited for until tick " + std::to_string(w.observed)
                  : std::string("no wait of this block was over for it"));
    const double top = y + p.lane * workHeight, h = workHeight - 2;
    if (end > moved)
      rect(begin, top, end - begin, h, paint.pale, text);
    rect(begin, top, moved - begin, h, paint.fill, text);
    if (!observed)
      body += format("<path d=\"M%s %sl4 %sl-4 %s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.4\"/>\n",
                     number(end + 1).c_str(), number(top).c_str(), number(h / 2).c_str(), number(h / 2).c_str(),
                     paint.fill);
    const std::string name = std::string(paint.name) + (w.works > 1 ? " x" + std::to_string(w.works) : "") +
                             (w.bytes ? ", " + bytesText(w.bytes) : "");
    const bool pale = end - moved > moved - begin; // in the longer part
    label(pale ? moved : begin, top + h / 2, pale ? end - moved : moved - begin, 9, pale ? "#1d2330" : "#ffffff", name);
  }
  static std::string bytesText(std::uint64_t n) {
    return n >= 1 << 20   ? number(static_cast<double>(n) / (1 << 20)) + " MiB"
           : n >= 1 << 10 ? number(static_cast<double>(n) / (1 << 10)) + " KiB"
                          : std::to_string(n) + " B";
  }

  double drawWarp(unsigned w, double y) {
    unsigned lanes = 0;
    const std::vector<Placed> works = placeWorks(t, w, lanes);
    const double end = at(static_cast<double>(t.ends[w]));
    grid += format("<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"#f6f7f9\"/>\n", number(left).c_str(),
                   number(y).c_str(), number(plot).c_str(), number(rowHeight).c_str());
    std::uint64_t busy = 0;
    for (const Stretch &s : stretchesOf(t, w)) {
      drawStretch(s, y);
      for (const std::uint32_t n : s.sum.instructions)
        busy += n;
    }
    body += format("<text x=\"%.0f\" y=\"%s\" font-size=\"12\" text-anchor=\"end\" fill=\"#1d2330\">warp %u</text>\n",
                   left - 10, number(y + rowHeight / 2 + 4).c_str(), w);
    body += format("<text x=\"%.0f\" y=\"%s\" font-size=\"11\" fill=\"#5a6272\">%.0f%%<title>ticks in which the warp "
                   "executes an instruction</title></text>\n",
                   left + plot + 10, number(y + rowHeight / 2 + 4).c_str(), 100.0 * static_cast<double>(busy) / ticks);
    if (t.left[w])
      body += format("<rect x=\"%s\" y=\"%s\" width=\"2\" height=\"%s\" fill=\"#1d2330\"><title>warp %u leaves at tick "
                     "%llu</title></rect>\n",
                     number(end).c_str(), number(y).c_str(), number(rowHeight).c_str(), w,
                     static_cast<unsigned long long>(t.ends[w]));
    for (const Placed &p : works)
      drawWork(p, y + rowHeight + 3);
    return y + rowHeight + (lanes ? 3 + lanes * workHeight : 0) + gap;
  }

  void drawAxis(double bottom) {
    const std::uint64_t step = stepFor(t.ticks);
    for (std::uint64_t v = 0; v <= t.ticks; v += step) {
      const std::string x = number(at(static_cast<double>(v)));
      grid += format("<path d=\"M%s %.0fV%s\" stroke=\"#e3e6eb\"/>\n", x.c_str(), top - 6, number(bottom + 2).c_str());
      body += format("<text x=\"%s\" y=\"%s\" font-size=\"11\" text-anchor=\"middle\" fill=\"#5a6272\">%llu</text>\n",
                     x.c_str(), number(bottom + 16).c_str(), static_cast<unsigned long long>(v));
    }
    body += format("<text x=\"%s\" y=\"%s\" font-size=\"11\" text-anchor=\"end\" fill=\"#5a6272\">ticks</text>\n",
                   number(left - 10).c_str(), number(bottom + 16).c_str());
    body += format("<text x=\"%s\" y=\"%.0f\" font-size=\"11\" fill=\"#5a6272\">busy</text>\n",
                   number(left + plot + 10).c_str(), top - 4);
  }

  /// Entries that occur, in lines; the height of the whole picture.
  double drawLegend(double y) {
    double x = margin;
    auto entry = [&](const std::string &shape, const std::string &text) {
      const double w = 26 + static_cast<double>(text.size()) * 6.6 + 16;
      if (x + w > width - margin) {
        x = margin;
        y += 22;
      }
      body += format("<g transform=\"translate(%s %s)\">%s<text x=\"24\" y=\"11\" font-size=\"12\" "
                     "fill=\"#1d2330\">%s</text></g>\n",
                     number(x).c_str(), number(y).c_str(), shape.c_str(), escaped(text).c_str());
      x += w;
    };
    auto box = [](const std::string &fill) {
      return "<rect width=\"18\" height=\"13\" rx=\"2\" fill=\"" + fill + "\"/>";
    };
    for (unsigned k = 0; k < instructionClasses; ++k)
      if (usedClasses[k])
        entry(box(classPaints[k].fill), std::string(instructionClassName(static_cast<InstructionClass>(k))));
    bool any = false;
    auto newLine = [&] {
      if (!any) {
        x = margin;
        y += 22;
      }
      any = true;
    };
    for (std::size_t k = 0; k < std::size(waitPaints); ++k)
      if (usedWaits[k]) {
        newLine();
        entry(box("url(#w" + std::to_string(k) + ")"), std::string("waits: ") + waitPaints[k].name);
      }
    any = false;
    for (std::size_t k = 0; k < std::size(workPaints); ++k)
      if (usedWorks[k]) {
        newLine();
        const WorkPaint &p = workPaints[k];
        entry("<rect y=\"3\" width=\"18\" height=\"7\" fill=\"" + std::string(p.pale) +
                  "\"/><rect y=\"3\" width=\"9\" height=\"7\" fill=\"" + p.fill + "\"/>",
              std::string(p.name) + ": issued until data moved (dark), until a wait for it was over (light)");
      }
    return y + 36;
  }

  static constexpr double margin = 20, left = 84, plot = 1240, width = left + plot + 64, top = 76, gap = 7,
                          workHeight = 11;
  const Timeline &t;
  double rowHeight = 26, ticks = 1;
  std::array<bool, instructionClasses> usedClasses{};
  std::array<bool, std::size(waitPaints)> usedWaits{};
  std::array<bool, std::size(workPaints)> usedWorks{};
  std::string grid, body;
};

} // namespace

std::string drawTimeline(const Timeline &timeline) {
  return Drawing(timeline)();
}

std::string timelinePage(const Timeline &timeline) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + escaped(timeline.kernel) +
         "</title><style>body{margin:0;background:#fff}svg{display:block;margin:auto;max-width:100%;height:auto}"
         "</style></head><body>\n" +
         drawTimeline(timeline) + "</body></html>\n";
}

} // namespace kiln::tools
