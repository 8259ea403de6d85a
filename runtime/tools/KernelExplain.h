//===- KernelExplain.h - `kiln explain KERNEL` --------------------------------===//
//
// Compiles a kernel, asks the compiler what it made of it (compiler/pipeline/KernelReport.h), asks an assembler for
// registers and spills where there is one, and prints it all.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_KERNELEXPLAIN_H
#define KILN_RUNTIME_TOOLS_KERNELEXPLAIN_H

#include "runtime/tools/Report.h"

namespace kiln::tools {

struct KernelExplainOptions {
  std::string kernel, entry, target, dtype, svg, draw = "A";
  std::vector<std::string> settings, divisible, equals, with;
  bool noTensorMaps = false, json = false, plans = false, predict = false;
};

int explainKernel(const KernelExplainOptions &options);

/// Letters for the layouts of a report's operations, in the order in which they occur: "A", .. "Z", "AA", ..
struct LayoutLegend {
  struct Row {
    std::string letter, layout, type; ///< type of the first operation that has it: "64x64xf32"
  };
  std::vector<Row> rows;
  explicit LayoutLegend(const Json &explanation);
  /// The letter, or the layout itself if no operation has it.
  std::string letterOf(const std::string &layout) const;
};

/// The report as text.  `whole`: with every rejected strategy of each conversion's plan.
std::string kernelText(const Json &report, bool whole);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_KERNELEXPLAIN_H
