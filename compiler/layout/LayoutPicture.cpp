#include "compiler/layout/LayoutPicture.h"

#include "compiler/layout/Checks.h"
#include "support/Markup.h"
#include "support/Text.h"

#include <algorithm>
#include <functional>

namespace kiln::layout {

namespace {

//===----------------------------------------------------------------------===//
// The tensor as a grid
//===----------------------------------------------------------------------===//

/// Rows and columns of a picture, of which some are shown.
struct Grid {
  TileShape tile;
  PictureLimits limits;
  std::uint64_t rows = 1, cols = 1;
  bool wrapped = false; ///< a vector, cut into rows

  Grid(const TileShape &tile, PictureLimits limits)
      : tile(tile), limits{std::max(1u, limits.rows), std::max(1u, limits.columns)} {
    const std::uint32_t vectorRow = std::min(32u, this->limits.columns);
    unsigned dims = tile.dims();
    if (dims == 0)
      return;
    cols = tile.extent(dims - 1);
    for (unsigned d = 0; d + 1 < dims; ++d)
      rows *= tile.extent(d);
    if (dims == 1 && cols > vectorRow) {
      wrapped = true;
      rows = (cols + vectorRow - 1) / vectorRow;
      cols = vectorRow;
    }
  }
  std::uint32_t shownRows() const { return static_cast<std::uint32_t>(std::min<std::uint64_t>(rows, limits.rows)); }
  std::uint32_t shownCols() const { return static_cast<std::uint32_t>(std::min<std::uint64_t>(cols, limits.columns)); }

  /// The coordinate in a cell; nothing in the last row of a wrapped vector.
  std::optional<Coords> at(std::uint64_t row, std::uint64_t col) const {
    Coords out(tile.dims(), 0);
    if (wrapped) {
      std::uint64_t i = row * cols + col;
      if (i >= tile.extent(0))
        return std::nullopt;
      out[0] = static_cast<std::uint32_t>(i);
      return out;
    }
    if (tile.dims() == 0)
      return out;
    out.back() = static_cast<std::uint32_t>(col);
    for (unsigned d = tile.dims() - 1; d-- > 0;) {
      out[d] = static_cast<std::uint32_t>(row % tile.extent(d));
      row /= tile.extent(d);
    }
    return out;
  }
  std::string rowLabel(std::uint64_t row) const {
    if (wrapped)
      return std::to_string(row * cols);
    if (tile.dims() < 2)
      return "";
    Coords x = *at(row, 0);
    std::string out;
    for (unsigned d = 0; d + 1 < tile.dims(); ++d)
      out += (d ? "," : "") + std::to_string(x[d]);
    return out;
  }
  /// "" if everything is shown.
  std::string leftOut() const {
    if (shownRows() == rows && shownCols() == cols)
      return "";
    return format("shown: %u of %llu rows, %u of %llu columns", shownRows(), static_cast<unsigned long long>(rows),
                  shownCols(), static_cast<unsigned long long>(cols));
  }
};

std::string coordsText(const Coords &x) {
  std::string out = "(";
  for (unsigned d = 0; d < x.size(); ++d)
    out += (d ? ", " : "") + std::to_string(x[d]);
  return out + ")";
}

std::string counted(std::uint64_t n, const char *what) {
  return format("%llu %s%s", static_cast<unsigned long long>(n), what, n == 1 ? "" : "s");
}

/// Where the owner of an element lives.
struct Place {
  unsigned reg = 0, lane = 0, warp = 0, block = 0;
};

class Owned {
public:
  explicit Owned(const TileLayout &layout) : layout(layout), span(layout.core().allColumns()) {}

  /// Nothing if the layout does not hold the element.
  std::optional<Place> operator()(const Coords &coords) const {
    TileElement e = layout.locate(coords);
    auto h = span.solve(e.coreFlat); // uses independent bits only: all free bits are 0
    if (!h)
      return std::nullopt;
    const LinearLayout &core = layout.core();
    auto part = [&](InDim d) { return static_cast<unsigned>(*h >> core.hardwareStart(d) & lowMask(core.bits(d))); };
    return Place{e.rep * core.size(InDim::Register) + part(InDim::Register), part(InDim::Lane), part(InDim::Warp),
                 part(InDim::Block)};
  }
  /// Copies of every element.
  std::uint64_t copies() const { return std::uint64_t(1) << (layout.core().hardwareBits() - span.dim()); }

private:
  const TileLayout &layout;
  Span span;
};

std::string threadsText(const TileLayout &layout) {
  const LinearLayout &core = layout.core();
  std::string out;
  if (core.bits(InDim::Block))
    out += counted(core.size(InDim::Block), "block") + " of ";
  return out + counted(core.size(InDim::Warp), "warp") + ", " + counted(core.size(InDim::Lane), "lane") + ", " +
         counted(layout.registers(), "register") + " a thread";
}

//===----------------------------------------------------------------------===//
// Colours
//===----------------------------------------------------------------------===//

/// "#rrggbb" of hue (degrees), saturation and lightness (0 .. 1).
std::string colour(double hue, double saturation, double lightness) {
  auto channel = [&](double n) {
    double k = n + hue / 30;
    k -= 12 * static_cast<int>(k / 12);
    double a = saturation * std::min(lightness, 1 - lightness);
    double v = lightness - a * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    return static_cast<int>(v * 255 + 0.5);
  };
  return format("#%02x%02x%02x", channel(0), channel(8), channel(4));
}

/// Neighbouring warps get hues far apart (golden angle); the lane darkens.
std::string warpColour(unsigned warp, unsigned lane) {
  double hue = 205 + 137.508 * warp;
  hue -= 360 * static_cast<int>(hue / 360);
  return colour(hue, 0.62, 0.90 - 0.24 * (lane % warpSize) / (warpSize - 1));
}

std::string bankColour(unsigned bank) {
  return colour(bank * 360.0 / 32, 0.62, bank % 2 ? 0.72 : 0.80);
}

//===----------------------------------------------------------------------===//
// SVG
//===----------------------------------------------------------------------===//

std::string escaped(std::string_view text) {
  // XML has no other control characters; bytes above 127 pass only as ASCII stand-ins.
  return escapedMarkup(text, [](char c) { return c >= ' ' && c <= '~' ? c : c == '\n' || c == '\t' ? ' ' : '?'; });
}

struct Cell {
  std::string fill, label, hover;
  bool framed = false;
};
struct Swatch {
  std::string fill, text;
};

/// One picture: headline, notes, grid with rulers, legend.
struct Picture {
  Grid grid;
  std::string title;
  std::vector<std::string> notes;
  std::function<std::optional<Cell>(const Coords &)> cell;
  std::vector<Swatch> legend;
  std::vector<std::string> legendNotes;

  std::string draw() const;
};

/// Breaks at spaces so that lines stay within `width` characters where they can.
std::vector<std::string> wrap(const std::string &text, std::size_t width) {
  std::vector<std::string> out;
  std::string line;
  for (std::string_view word : split(text, ' ')) {
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      out.push_back(line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + std::string(word);
  }
  out.push_back(line);
  return out;
}

std::string Picture::draw() const {
  unsigned cols = grid.shownCols(), rows = grid.shownRows();
  unsigned w = cols <= 8 ? 56 : cols <= 16 ? 46 : cols <= 32 ? 36 : 27, h = cols <= 16 ? 28 : cols <= 32 ? 22 : 17;
  std::size_t rulerChars = 1, labelChars = 1;
  for (unsigned r = 0; r < rows; ++r)
    rulerChars = std::max(rulerChars, grid.rowLabel(r).size());
  std::vector<std::optional<Cell>> cells;
  for (unsigned r = 0; r < rows; ++r)
    for (unsigned c = 0; c < cols; ++c) {
      auto x = grid.at(r, c);
      cells.push_back(x ? cell(*x) : std::nullopt);
      if (cells.back())
        labelChars = std::max(labelChars, cells.back()->label.size());
    }
  // A digit is about 0.6 of the font size wide.
  int font =
      std::min<int>(static_cast<int>(h * 0.62), static_cast<int>((w - 3) / (0.61 * static_cast<double>(labelChars))));
  const unsigned margin = 24, left = margin + 10 + static_cast<unsigned>(rulerChars) * 7;
  unsigned width = std::max(left + cols * w + margin, 620u);
  std::size_t lineChars = (width - 2 * margin) / 7;
  std::vector<std::string> lines;
  for (const std::string &note : notes)
    for (std::string &line : wrap(note, lineChars))
      lines.push_back(std::move(line));
  unsigned top = margin + 26 + static_cast<unsigned>(lines.size()) * 17 + 28;
  std::string cut = grid.leftOut();
  const unsigned swatchWidth = 132, perLine = std::max(1u, (width - 2 * margin) / swatchWidth);
  unsigned legendTop = top + rows * h + 18;
  unsigned legendLines = (static_cast<unsigned>(legend.size()) + perLine - 1) / perLine;
  unsigned height =
      legendTop + (cut.empty() ? 0 : 24) + legendLines * 22 + static_cast<unsigned>(legendNotes.size()) * 18 + margin;

  std::string out = format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\" "
                           "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n"
                           "<style>.c{stroke:#fff;stroke-width:1}.l{font-family:'DejaVu Sans Mono',Menlo,monospace;"
                           "font-size:%dpx;text-anchor:middle;fill:#1c2430}.r{font-size:10px;fill:#667085}"
                           ".n{font-size:12px;fill:#475467}.m{font-family:'DejaVu Sans Mono',Menlo,monospace;"
                           "font-size:11px;fill:#475467}.f{fill:none;stroke:#111;stroke-width:2}"
                           ".b{stroke:#344054;stroke-width:1.5}</style>\n",
                           width, height, width, height, std::max(font, 4));
  out += format("<rect width=\"%u\" height=\"%u\" fill=\"#ffffff\"/>\n", width, height);
  out += format("<text x=\"%u\" y=\"%u\" font-size=\"17\" font-weight=\"600\" fill=\"#101828\">%s</text>\n", margin,
                margin + 10, escaped(title).c_str());
  for (std::size_t i = 0; i < lines.size(); ++i)
    out += format("<text x=\"%u\" y=\"%zu\" class=\"m\">%s</text>\n", margin, margin + 32 + i * 17,
                  escaped(lines[i]).c_str());

  // Rulers: every index where there is room, else every fourth.
  unsigned step = w >= 27 ? (cols > 32 ? 2 : 1) : 4, rowStep = h >= 17 ? 1 : 4;
  for (unsigned c = 0; c < cols; c += step)
    out += format("<text x=\"%u\" y=\"%u\" class=\"r\" text-anchor=\"middle\">%u</text>\n", left + c * w + w / 2,
                  top - 6, c);
  for (unsigned r = 0; r < rows; r += rowStep)
    out += format("<text x=\"%u\" y=\"%u\" class=\"r\" text-anchor=\"end\">%s</text>\n", left - 7,
                  top + r * h + h / 2 + 4, grid.rowLabel(r).c_str());

  std::string frames;
  for (unsigned r = 0; r < rows; ++r)
    for (unsigned c = 0; c < cols; ++c) {
      const auto &content = cells[std::size_t(r) * cols + c];
      if (!content)
        continue;
      unsigned x = left + c * w, y = top + r * h;
      out += format("<g><title>%s</title><rect class=\"c\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"%s\"/>",
                    escaped(content->hover).c_str(), x, y, w, h, content->fill.c_str());
      if (font >= 4)
        out += format("<text class=\"l\" x=\"%u\" y=\"%u\">%s</text>", x + w / 2,
                      y + h / 2 + static_cast<unsigned>(font * 0.36 + 0.5), escaped(content->label).c_str());
      out += "</g>\n";
      if (content->framed)
        frames +=
            format("<rect class=\"f\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\"/>\n", x + 1, y + 1, w - 2, h - 2);
    }
  // Borders between repetitions of the core.
  if (!grid.wrapped && grid.tile.dims() >= 1) {
    unsigned d = grid.tile.dims() - 1;
    for (std::uint32_t c = grid.tile.core[d]; grid.tile.counts[d] > 1 && c < cols; c += grid.tile.core[d])
      out += format("<line class=\"b\" x1=\"%u\" y1=\"%u\" x2=\"%u\" y2=\"%u\"/>\n", left + c * w, top - 4,
                    left + c * w, top + rows * h + 4);
    if (d >= 1)
      for (std::uint32_t r = grid.tile.core[d - 1]; grid.tile.counts[d - 1] > 1 && r < rows; r += grid.tile.core[d - 1])
        out += format("<line class=\"b\" x1=\"%u\" y1=\"%u\" x2=\"%u\" y2=\"%u\"/>\n", left - 4, top + r * h,
                      left + cols * w + 4, top + r * h);
  }
  out += frames;

  unsigned y = legendTop;
  if (!cut.empty()) {
    out += format("<text x=\"%u\" y=\"%u\" font-size=\"13\" font-weight=\"600\" fill=\"#b42318\">%s</text>\n", left,
                  y + 4, escaped(cut).c_str());
    y += 24;
  }
  for (std::size_t i = 0; i < legend.size(); ++i) {
    unsigned x = margin + static_cast<unsigned>(i % perLine) * swatchWidth;
    unsigned line = y + static_cast<unsigned>(i / perLine) * 22;
    out += format("<rect x=\"%u\" y=\"%u\" width=\"16\" height=\"14\" rx=\"3\" fill=\"%s\"/>"
                  "<text class=\"n\" x=\"%u\" y=\"%u\">%s</text>\n",
                  x, line, legend[i].fill.c_str(), x + 22, line + 11, escaped(legend[i].text).c_str());
  }
  y += legendLines * 22;
  for (const std::string &note : legendNotes) {
    out += format("<text class=\"n\" x=\"%u\" y=\"%u\">%s</text>\n", margin, y + 12, escaped(note).c_str());
    y += 18;
  }
  return out + "</svg>\n";
}

constexpr unsigned maxSwatches = 32;

} // namespace

std::string svg(const TileLayout &layout, std::string_view title, PictureLimits limits) {
  Owned owner(layout);
  const LinearLayout &core = layout.core();
  unsigned warps = core.size(InDim::Warp);
  Picture picture{Grid(layout.tile(), limits), std::string(title), {}, {}, {}, {}};
  picture.notes = {shapeText(layout.shape()) + ", " + threadsText(layout), layout.text()};
  picture.cell = [&](const Coords &x) -> std::optional<Cell> {
    auto place = owner(x);
    if (!place)
      return Cell{"#e4e7ec", "-", "element " + coordsText(x) + ": nobody holds it", false};
    std::string hover = "element " + coordsText(x) + ": ";
    if (core.bits(InDim::Block))
      hover += format("block %u, ", place->block);
    hover += format("warp %u, lane %u, register %u", place->warp, place->lane, place->reg);
    if (owner.copies() > 1)
      hover += format("; the owner of %llu copies", static_cast<unsigned long long>(owner.copies()));
    return Cell{warpColour(place->block * warps + place->warp, place->lane), format("%u:%u", place->lane, place->reg),
                std::move(hover), place->lane == 0 && place->warp == 0 && place->block == 0};
  };
  auto free = core.freeMasks();
  for (unsigned block = 0; block < core.size(InDim::Block); ++block)
    for (unsigned warp = 0; warp < warps && picture.legend.size() < maxSwatches; ++warp)
      if (!(block & free[index(InDim::Block)]) && !(warp & free[index(InDim::Warp)]))
        picture.legend.push_back({warpColour(block * warps + warp, 12), core.bits(InDim::Block)
                                                                            ? format("block %u, warp %u", block, warp)
                                                                            : format("warp %u", warp)});
  picture.legendNotes = {"label = lane:register; darker = higher lane; framed = held by lane 0 of warp 0"};
  if (owner.copies() > 1)
    picture.legendNotes.push_back(format("every element has %llu copies; its owner (smallest place) is shown",
                                         static_cast<unsigned long long>(owner.copies())));
  if (layout.repetitions() > 1 && !picture.grid.wrapped)
    picture.legendNotes.push_back(format("dark lines part the %u repetitions of the core %s", layout.repetitions(),
                                         shapeText(core.shape()).c_str()));
  return picture.draw();
}

std::string svg(const SharedTile &layout, std::string_view title, PictureLimits limits) {
  const TileShape &tile = layout.tile();
  const Sizes shape = tile.extents();
  unsigned bytes = storageBytes(layout.bits());
  Picture picture{Grid(tile, limits), std::string(title), {}, {}, {}, {}};
  picture.notes = {shapeText(shape) + format(" of %u-bit elements in shared memory, %llu bytes", layout.bits(),
                                             static_cast<unsigned long long>(layout.bytes())),
                   layout.core().text()};
  picture.cell = [&](const Coords &x) -> std::optional<Cell> {
    std::uint64_t at = layout.byteOffset(x);
    unsigned bank = static_cast<unsigned>(at / 4 % 32);
    return Cell{bankColour(bank), std::to_string(at / bytes),
                format("element %s: byte %llu, bank %u, 128-byte line %llu", coordsText(x).c_str(),
                       static_cast<unsigned long long>(at), bank, static_cast<unsigned long long>(at / 128)),
                at / 4 == 0};
  };
  for (unsigned bank = 0; bank < 32; bank += 4)
    picture.legend.push_back({bankColour(bank), format("bank %u", bank)});
  picture.legendNotes = {
      "label = offset in elements; colour = bank of 4 bytes; framed = the buffer's first bank and line"};
  if (tile.repetitions() > 1 && !picture.grid.wrapped)
    picture.legendNotes.push_back(format("dark lines part the %u repetitions of the core %s", tile.repetitions(),
                                         shapeText(tile.coreSizes()).c_str()));
  return picture.draw();
}

std::string svg(const LinearLayout &layout, std::string_view title, unsigned bits, PictureLimits limits) {
  Coords shape = layout.shape();
  if (layout.bits(InDim::Offset)) {
    SharedLinear e;
    for (BitVector c : layout.columns(InDim::Offset)) {
      Coords x = layout.coords(c);
      e.offsets.emplace_back(x.begin(), x.end());
    }
    auto tile = SharedTile::create(e, Sizes(shape.begin(), shape.end()), bits);
    if (tile.ok())
      return svg(*tile, title, limits);
    Picture failed{Grid(TileShape{}, limits), std::string(title), {tile.status().toString()}, {}, {}, {}};
    failed.cell = [](const Coords &) { return std::nullopt; };
    return failed.draw();
  }
  Coords ones(layout.dims(), 1);
  auto tile = TileLayout::create(layout, ones);
  return svg(*tile, title, limits);
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

namespace {

std::string drawTable(const Grid &grid, const std::vector<std::string> &head,
                      const std::function<std::string(const Coords &)> &entry) {
  unsigned rows = grid.shownRows(), cols = grid.shownCols();
  std::vector<std::string> cells;
  std::size_t width = std::to_string(cols).size(), ruler = 0;
  for (unsigned r = 0; r < rows; ++r) {
    ruler = std::max(ruler, grid.rowLabel(r).size());
    for (unsigned c = 0; c < cols; ++c) {
      auto x = grid.at(r, c);
      cells.push_back(x ? entry(*x) : "");
      width = std::max(width, cells.back().size());
    }
  }
  auto padded = [](const std::string &text, std::size_t to) {
    return std::string(to > text.size() ? to - text.size() : 0, ' ') + text;
  };
  auto trimmed = [](std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
  };
  std::string out;
  for (const std::string &line : head)
    out += line + "\n";
  std::string line = padded("", ruler) + " |";
  for (unsigned c = 0; c < cols; ++c)
    line += " " + padded(std::to_string(c), width);
  out += trimmed(line) + std::string(ruler + 1, '-') + "+" + std::string(cols * (width + 1), '-') + "\n";
  for (unsigned r = 0; r < rows; ++r) {
    line = padded(grid.rowLabel(r), ruler) + " |";
    for (unsigned c = 0; c < cols; ++c)
      line += " " + padded(cells[std::size_t(r) * cols + c], width);
    out += trimmed(line);
  }
  if (std::string cut = grid.leftOut(); !cut.empty())
    out += cut + "\n";
  return out;
}

} // namespace

std::string table(const TileLayout &layout, PictureLimits limits) {
  Owned owner(layout);
  bool blocks = layout.core().bits(InDim::Block) > 0;
  std::vector<std::string> head = {shapeText(layout.shape()) + ", " + threadsText(layout), layout.text()};
  std::string legend = std::string("entries: ") + (blocks ? "block:" : "") + "warp:lane:register";
  if (owner.copies() > 1)
    legend += format(" of the owner; every element has %llu copies", static_cast<unsigned long long>(owner.copies()));
  head.push_back(legend);
  return drawTable(Grid(layout.tile(), limits), head, [&](const Coords &x) -> std::string {
    auto place = owner(x);
    if (!place)
      return "-";
    return (blocks ? std::to_string(place->block) + ":" : "") +
           format("%u:%u:%u", place->warp, place->lane, place->reg);
  });
}

std::string table(const SharedTile &layout, PictureLimits limits) {
  const Sizes shape = layout.tile().extents();
  unsigned bytes = storageBytes(layout.bits());
  return drawTable(Grid(layout.tile(), limits),
                   {shapeText(shape) + format(" of %u-bit elements in shared memory, %llu bytes", layout.bits(),
                                              static_cast<unsigned long long>(layout.bytes())),
                    layout.core().text(), "entries: offset in elements"},
                   [&](const Coords &x) { return std::to_string(layout.byteOffset(x) / bytes); });
}

} // namespace kiln::layout
