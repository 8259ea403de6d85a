//===- ForkGuard.h - Whether this process made the object, or forked ------===//
//
// A page that the kernel gives to a forked child as zeros (MADV_WIPEONFORK): one load tells, where getpid is a system
// call.  Where the advice is not known, the process id is asked.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_FORKGUARD_H
#define KILN_RUNTIME_JIT_FORKGUARD_H

#include <sys/mman.h>
#include <unistd.h>

namespace kiln {

class ForkGuard {
public:
  ForkGuard() : bytes(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))), process(::getpid()) {
    void *at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
      return;
    if (::madvise(at, bytes, MADV_WIPEONFORK) != 0) {
      ::munmap(at, bytes);
      return;
    }
    page = static_cast<volatile unsigned *>(at);
    *page = 1;
  }
  ~ForkGuard() {
    if (page)
      ::munmap(const_cast<unsigned *>(page), bytes);
  }
  ForkGuard(const ForkGuard &) = delete;
  ForkGuard &operator=(const ForkGuard &) = delete;

  bool forked() const { return page ? *page == 0 : ::getpid() != process; }

private:
  std::size_t bytes;
  pid_t process;
  volatile unsigned *page = nullptr;
};

} // namespace kiln

#endif // KILN_RUNTIME_JIT_FORKGUARD_H
