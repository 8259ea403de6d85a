#include "runtime/tune/Plot.h"

#include "support/Markup.h"
#include "support/Text.h"

#include <algorithm>
#include <cmath>

namespace kiln::tune {
namespace {

constexpr double width = 640, height = 280, left = 80, right = 16, top = 12, bottom = 40;

/// From numbers to places, with marks at round numbers.
class Scale {
public:
  Scale(bool isLog, double from, double to) : isLog(isLog), from(from), to(to) {}
  void meet(double v) {
    v = of(v);
    least = std::min(least, v), most = std::max(most, v);
  }
  /// Room around the outermost points; numbers that differ by rounding alone have no extent of their own.
  void widen() {
    const double size = std::max(std::abs(least), std::abs(most));
    const double room = most - least > 1e-9 * size ? (most - least) * 0.05 : std::max(size * 0.1, 0.1);
    least -= room, most += room;
  }
  bool isEmpty() const { return least > most; }
  double place(double v) const { return from + (of(v) - least) / (most - least) * (to - from); }
  std::vector<double> marks() const {
    if (isLog && most - least > 1)
      return decades();
    const double low = isLog ? std::pow(10, least) : least, high = isLog ? std::pow(10, most) : most;
    const double rough = (high - low) / 5, unit = std::pow(10, std::floor(std::log10(rough)));
    const double step = unit * (rough / unit < 1.5 ? 1 : rough / unit < 3.5 ? 2 : rough / unit < 7.5 ? 5 : 10);
    std::vector<double> out;
    for (double i = std::ceil(low / step); i * step <= high; ++i)
      if (!isLog || i > 0)
        out.push_back(i * step + 0.0); // not -0
    return out;
  }

private:
  /// 1, 2, 5, 10, 20, ..; of more than four decades the powers alone, and not all of very many.
  std::vector<double> decades() const {
    std::vector<double> out;
    const double step = std::ceil((most - least) / 12);
    for (double power = std::ceil(least) - step; power <= most; power += step)
      for (const double digit : {1, 2, 5})
        if (const double at = power + std::log10(digit); at >= least && at <= most && (digit == 1 || most - least < 4))
          out.push_back(digit * std::pow(10, power));
    return out;
  }
  double of(double v) const { return isLog ? std::log10(v) : v; }
  bool isLog;
  double from, to, least = HUGE_VAL, most = -HUGE_VAL;
};

} // namespace

std::string escaped(std::string_view text) {
  // Controls are in no page.
  return escapedMarkup(text,
                       [](char c) { return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' ? ' ' : c; });
}

std::string Plot::svg() const {
  Scale across(x.isLog, left, width - right), up(y.isLog, height - bottom, top);
  for (const Series &s : all)
    for (const Point &p : s.points)
      across.meet(p.x), up.meet(p.y);
  if (across.isEmpty())
    return {};
  across.widen(), up.widen();
  std::string out = format("<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s by %s\">\n", width, height,
                           escaped(y.name).c_str(), escaped(x.name).c_str());
  for (const double mark : across.marks())
    out += format("<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%g\" y2=\"%g\"/>"
                  "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%g</text>\n",
                  across.place(mark), across.place(mark), top, height - bottom, across.place(mark),
                  height - bottom + 16, mark);
  for (const double mark : up.marks())
    out += format("<line class=\"grid\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>"
                  "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n",
                  left, width - right, up.place(mark), up.place(mark), left - 6, up.place(mark) + 4, mark);
  out += format("<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text>\n", (left + width - right) / 2, height - 6,
                escaped(x.name).c_str());
  out += format("<text transform=\"translate(16 %g) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
                (top + height - bottom) / 2, escaped(y.name).c_str());
  for (const Series &s : all) {
    if (s.kind == Kind::Dots) {
      for (const Point &p : s.points)
        out += format("<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"><title>%s</title></circle>\n",
                      s.style.c_str(), across.place(p.x), up.place(p.y), escaped(p.title).c_str());
      continue;
    }
    std::string path;
    for (const Point &p : s.points) {
      const double h = across.place(p.x), v = up.place(p.y);
      path += path.empty()            ? format("M%.1f %.1f", h, v)
              : s.kind == Kind::Steps ? format("H%.1fV%.1f", h, v)
                                      : format("L%.1f %.1f", h, v);
    }
    out += format("<path class=\"%s\" d=\"%s\"/>\n", s.style.c_str(), path.c_str());
  }
  return out + "</svg>\n";
}

} // namespace kiln::tune
