//===- FirstCalls.h - What the first calls of a command cost ----------------===//
//
// Collects the reports of a Jit's first calls: where each kernel came from, why, and what every stage cost.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_FIRSTCALLS_H
#define KILN_RUNTIME_TOOLS_FIRSTCALLS_H

#include "kiln/Jit.h"
#include "runtime/tools/Report.h"

#include <mutex>

namespace kiln::tools {

class FirstCalls {
public:
  /// Has `options` report here.  This object must outlive the Jit.
  void collect(JitOptions &options);

  /// What it cost to know a text kernel's arguments, before any call.
  void textRead(double milliseconds, bool remembered) { text = Text{milliseconds, remembered}; }
  /// Null, or "milliseconds" and "remembered".
  Json textJson() const;

  /// One object a first call: "kernel", "variant", "source", "reason", "explanation", "milliseconds", "stages".
  Json toJson() const;
  /// Of all first calls together.
  double milliseconds() const;
  /// Two lines a first call; with `whole` also the texts that kept the key from the nearest entry's.
  std::string toString(bool whole) const;

private:
  struct Call {
    std::string kernel, variant;
    FirstCallReport report;
  };
  struct Text {
    double milliseconds = 0;
    bool remembered = false;
  };
  std::optional<Text> text;
  std::mutex mutex;
  std::vector<Call> calls;
};

/// "key 1.20, compile 35.10 (parse 0.80, tile 2.10), load 3.00 ms".
std::string stagesText(const FirstCallReport &report);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_FIRSTCALLS_H
