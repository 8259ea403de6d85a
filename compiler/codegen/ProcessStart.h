//===- ProcessStart.h - A program started with pipes to it --------------------===//
//
// What runProcess and Conversation share: descriptors that close themselves, and the start itself.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_PROCESSSTART_H
#define KILN_CODEGEN_PROCESSSTART_H

#include "compiler/codegen/Process.h"

#include <sys/types.h>
#include <utility>

namespace kiln {

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

} // namespace kiln

#endif // KILN_CODEGEN_PROCESSSTART_H
