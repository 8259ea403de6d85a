//===- ProcessStart.h - A program started with pipes to it --------------------===//
//
// What runProcess and Conversation share: descriptors that close themselves, the start itself, deadlines, what the
// program prints, how it ended; and what programs that are started so share.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_PROCESSSTART_H
#define KILN_CODEGEN_PROCESSSTART_H

#include "compiler/codegen/Process.h"

#include <chrono>
#include <sys/types.h>
#include <utility>

namespace kiln {

/// The socket's number in the program.
inline constexpr int channelDescriptor = 3;

/// Owns a file descriptor.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(Descriptor &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    close();
    fd = std::exchange(other.fd, -1);
    return *this;
  }
  ~Descriptor() { close(); }
  void close();
  int get() const { return fd; }
  bool open() const { return fd >= 0; }

private:
  int fd = -1;
};

/// A program that runs: nobody but its starter waits for it.  Both descriptors do not block.
struct StartedProcess {
  pid_t process = -1;
  Descriptor channel; ///< the other end of its descriptor 3, if ProcessSpec::channel
  Descriptor printed; ///< standard output and error
};

/// As Process.h says, but for the deadline.
Result<StartedProcess> startProcess(const ProcessSpec &spec);

using Clock = std::chrono::steady_clock;
Clock::time_point deadlineAfter(double seconds);
/// As poll takes it; 0: over.
int millisecondsLeft(Clock::time_point deadline);

/// Reads a piece of what the program printed, if there is any now; the last `most` bytes are kept, at times twice as
/// many.  One piece: who prints without end must not keep its reader.  False: there is no more now.
bool readPiece(Descriptor &printed, std::string &output, std::size_t most);

/// What waitpid said.
void setEnd(ProcessEnd &end, int status);

/// In the program: all of `text` to whoever started it.  False: that one is gone.
bool sendToStarter(std::string_view text);

} // namespace kiln

#endif // KILN_CODEGEN_PROCESSSTART_H
