//===- PassWatch.h - What is seen of every pass of a stage --------------------===//
//
// For each pass of a stage's own list (not those that run inside of one): where the compile is, if it crashes; how long
// the pass took; the text after it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_PASSWATCH_H
#define KILN_PIPELINE_PASSWATCH_H

#include "compiler/pipeline/Dumps.h"
#include "compiler/pipeline/Metadata.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace kiln {

struct PassWatchers {
  CompileProgress &progress;
  Dumps &dumps;
  std::vector<Metadata::PassTime> *times; ///< null: nobody asks
};

/// Watches the passes of `pm`, which is filled.  `print` gives the module's text; all must outlive the run.
void watchPasses(mlir::PassManager &pm, Stage stage, const PassWatchers &watchers, std::function<std::string()> print);

} // namespace kiln

#endif // KILN_PIPELINE_PASSWATCH_H
