//===- Process.h - One program run to its end, within a deadline ----------===//
//
// Starts a program, exchanges one request and response over a socket (the program's file descriptor 3) if asked to,
// keeps the end of what it prints, and kills it at the deadline.  The program inherits no other descriptor, and default
// signal handling.  Thread safe; waits only for its own process.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_PROCESS_H
#define KILN_CODEGEN_PROCESS_H

#include "support/Status.h"

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct ProcessSpec {
  std::string program; ///< a path, or a name that PATH is searched for
  std::vector<std::string> arguments;
  double deadlineSeconds = 300;
  bool channel = false;     ///< open the socket, send `request`, read until the program closes it
  std::string_view request; ///< must outlive the run
  std::size_t maxResponseBytes = 0;
  const std::atomic<bool> *cancelled = nullptr; ///< the program ends soon after it becomes true, by `cancelSignal`
  int cancelSignal = 9;
  int niceness = 0;                      ///< 19: processors that nobody else wants
  std::size_t maxOutputBytes = 64 << 10; ///< of standard output and error together, the last ones are kept
};

struct ProcessEnd {
  int exitStatus = -1;   ///< -1: ended by a signal, or unknown
  int signal = 0;        ///< the signal that ended it
  bool timedOut = false; ///< it was killed at the deadline, or cancelled
  bool overflow = false; ///< it was killed for sending more than maxResponseBytes
  std::string output;
  std::string response;
};

/// A failure means that the program could not be started.
Result<ProcessEnd> runProcess(const ProcessSpec &spec);

/// "SIGSEGV (invalid memory access)".
std::string signalName(int signal);

/// The remedy where the system refuses a process, a thread or memory.
std::string limitsRemedy();

} // namespace kiln

#endif // KILN_CODEGEN_PROCESS_H
