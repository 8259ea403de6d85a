#include "runtime/tune/Progress.h"

#include "support/Text.h"

#include <cmath>
#include <sys/ioctl.h>
#include <unistd.h>

namespace kiln::tune {

static std::string duration(double seconds) {
  const auto s = static_cast<unsigned long>(std::lround(seconds));
  return s < 3600 ? format("%lu:%02lu", s / 60, s % 60) : format("%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
}

std::string barText(const SweepState &s, std::size_t columns) {
  constexpr std::size_t width = 20;
  const std::size_t filled = s.total ? width * s.done / s.total : width;
  std::string out = "[" + std::string(filled, '=') + std::string(width - filled, ' ') + "] " + std::to_string(s.done) +
                    "/" + std::to_string(s.total);
  if (s.done && s.done < s.total)
    out += ", " + duration(s.seconds / static_cast<double>(s.done) * static_cast<double>(s.total - s.done)) + " left";
  if (s.best)
    out += format(", best %.4f ms (", s.best->milliseconds) + s.best->key() + ")";
  for (unsigned i = 0; i < outcomes; ++i)
    if (s.failures[i])
      out += ", " + std::to_string(s.failures[i]) + " " + std::string(outcomeName(static_cast<Outcome>(i)));
  if (out.size() > columns)
    out.resize(columns);
  return out;
}

std::string lineText(const SweepState &s) {
  std::string out = std::to_string(s.done) + "/" + std::to_string(s.total);
  if (!s.last)
    return out;
  const Entry &e = *s.last;
  out += e.good() ? format("  %.4f ms", e.milliseconds) : "  " + std::string(outcomeName(e.outcome));
  out += "  " + e.key();
  if (!e.good() && !e.message.empty())
    out += ": " + e.message;
  return out;
}

Progress::Progress(std::FILE *to) : to(to), isTerminal(::isatty(::fileno(to))) {}

Progress::~Progress() {
  if (isDrawn)
    std::fputs("\r\033[K", to);
}

void Progress::show(const SweepState &state) {
  if (!isTerminal) {
    std::fprintf(to, "%s\n", lineText(state).c_str());
    return;
  }
  winsize size{};
  const bool known = ::ioctl(::fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  std::fprintf(to, "\r\033[K%s", barText(state, known ? size.ws_col - 1u : 79u).c_str());
  std::fflush(to);
  isDrawn = true;
}

} // namespace kiln::tune
