//===- Reproducer.h - A failed compile as a file ------------------------------===//
//
// Everything that is needed to see a crash of the compiler again: the program, and the request as a comment above it.
// The file goes to the request's dump directory, else to the system's folder for temporary files.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_REPRODUCER_H
#define KILN_PIPELINE_REPRODUCER_H

#include "compiler/pipeline/Compile.h"

namespace kiln {

/// The path of the file written.
Result<std::string> writeReproducer(const CompileJob &job, const std::string &reason);

/// The knobs of a request as a helper process gets them: isolation = thread.
std::string forHelper(const KilnText &options);

} // namespace kiln

#endif // KILN_PIPELINE_REPRODUCER_H
