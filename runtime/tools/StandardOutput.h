//===- StandardOutput.h - Results that do not arrive are a failure ---------===//
#ifndef KILN_RUNTIME_TOOLS_STANDARDOUTPUT_H
#define KILN_RUNTIME_TOOLS_STANDARDOUTPUT_H

namespace kiln::tools {

/// Gives standard streams that the caller closed a descriptor, so that no file of ours gets their numbers.  What is
/// written to a standard output that was closed still fails.
void fillClosedStandardStreams();

/// Flushes and closes standard output.  False, with a line on standard error, if anything that was written to it since
/// the start was lost.
bool closeStandardOutput();

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_STANDARDOUTPUT_H
