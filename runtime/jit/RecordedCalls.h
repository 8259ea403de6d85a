//===- RecordedCalls.h - The calls of a program as a list (KILN_RECORD_CALLS) -----===//
//
// A line a call, in the words after `kiln bench`.  Threads and processes may share a file: a line is added under the
// file's lock, unless it is there.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_RECORDEDCALLS_H
#define KILN_RUNTIME_JIT_RECORDEDCALLS_H

#include "support/Status.h"

#include <string>

namespace kiln {

Status recordCall(const std::string &file, const std::string &call);

} // namespace kiln

#endif // KILN_RUNTIME_JIT_RECORDEDCALLS_H
