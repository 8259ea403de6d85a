//===- Plot.h - A picture of points and lines, as SVG --------------------------===//
//
// For reports that are one file: no script and nothing that is loaded.  Colours are classes of the page's style.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_PLOT_H
#define KILN_RUNTIME_TUNE_PLOT_H

#include <string>
#include <string_view>
#include <vector>

namespace kiln::tune {

/// Text for HTML: nothing in it is markup.
std::string escaped(std::string_view text);

struct Point {
  double x = 0, y = 0;
  std::string title = {}; ///< that a pointer over it shows
};

class Plot {
public:
  /// Numbers of a logarithmic axis are positive.
  struct Axis {
    std::string name;
    bool isLog = false;
  };
  Plot(Axis x, Axis y) : x(std::move(x)), y(std::move(y)) {}

  void dots(std::vector<Point> points, std::string style) { add({std::move(points), std::move(style), Kind::Dots}); }
  /// Stays at a point's height until the next one's place.
  void steps(std::vector<Point> points, std::string style) { add({std::move(points), std::move(style), Kind::Steps}); }
  void line(Point from, Point to, std::string style) { add({{from, to}, std::move(style), Kind::Line}); }

  /// Empty if there is no point.
  std::string svg() const;

private:
  enum class Kind { Dots, Steps, Line };
  struct Series {
    std::vector<Point> points;
    std::string style;
    Kind kind;
  };
  void add(Series series) { all.push_back(std::move(series)); }

  Axis x, y;
  std::vector<Series> all;
};

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_PLOT_H
