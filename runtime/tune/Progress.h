//===- Progress.h - What a sweep shows while it runs -------------------------===//
#ifndef KILN_RUNTIME_TUNE_PROGRESS_H
#define KILN_RUNTIME_TUNE_PROGRESS_H

#include "runtime/tune/Sweep.h"

#include <cstdio>

namespace kiln::tune {

/// "[=====>    ] 12/40, 1:05 left, best 0.113 ms (block_m=64), 2 wrong", cut to `columns`.
std::string barText(const SweepState &state, std::size_t columns);
/// "12/40  0.121 ms  block_m=32, ..", or why the last one failed.
std::string lineText(const SweepState &state);

/// A bar that is drawn again and again on a terminal; a line a configuration elsewhere.
class Progress {
public:
  explicit Progress(std::FILE *to);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;
  void show(const SweepState &state);

private:
  std::FILE *to;
  bool isTerminal;
  bool isDrawn = false;
};

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_PROGRESS_H
