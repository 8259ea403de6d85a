//===- Diagnostics.h - MLIR's diagnostics, kept ------------------------------===//
//
// Catches what passes and parsers report on one MLIRContext and turns it into the JSON of CompilerTable.h.  A note that
// follows an error is its remedy.  Locations are cut to the first file and line.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_DIAGNOSTICS_H
#define KILN_PIPELINE_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <string>
#include <vector>

namespace kiln {

struct Message {
  std::string severity; ///< "error", "warning", "remark"
  std::string file;
  unsigned line = 0, column = 0;
  std::string text, remedy;
};

std::string toJson(const std::vector<Message> &messages);

/// While it lives, diagnostics of the context go to `messages`.
class DiagnosticCollector {
public:
  DiagnosticCollector(mlir::MLIRContext &context, std::vector<Message> &messages);

private:
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace kiln

#endif // KILN_PIPELINE_DIAGNOSTICS_H
