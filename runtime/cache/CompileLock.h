//===- CompileLock.h - One compile a key over all processes ---------------===//
//
// While a lock is held no other process or thread gets the lock of the same key.  The system releases the lock of a
// process that dies, however it dies.  The lock is advice: the cache stays sound without it, only work is done twice.
// A lock that a forked child inherits belongs to the parent: the child's copy releases nothing.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_COMPILELOCK_H
#define KILN_RUNTIME_CACHE_COMPILELOCK_H

#include <memory>

namespace kiln::cache {

class CompileLock {
public:
  class Held;

  explicit CompileLock(std::unique_ptr<Held> held, bool waited);
  CompileLock(CompileLock &&) noexcept;
  CompileLock &operator=(CompileLock &&) noexcept;
  ~CompileLock();

  /// Another holder was there first: it has probably stored the entry by now.
  bool waited() const { return hadToWait; }
  /// What the destructor does, earlier.
  void release();

private:
  std::unique_ptr<Held> held;
  bool hadToWait = false;
};

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_COMPILELOCK_H
