//===- Reproducer.h - A failed compile as a file ------------------------------===//
//
// Everything that is needed to see a crash of the compiler again: the program, and above it the command that compiles
// it again and what happened. The file goes to the request's dump directory, else to the system's folder for temporary
// files.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_REPRODUCER_H
#define KILN_PIPELINE_REPRODUCER_H

#include "compiler/pipeline/Compile.h"

namespace kiln {

struct Reproducer {
  std::string path, command; ///< of the file; what compiles it again
};
Result<Reproducer> writeReproducer(const CompileJob &job, const std::string &reason);

/// The knobs of a request as a helper process gets them: isolation = thread.
std::string forHelper(const KilnText &options);

} // namespace kiln

#endif // KILN_PIPELINE_REPRODUCER_H
