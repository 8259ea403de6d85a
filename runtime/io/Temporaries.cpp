#include "runtime/io/Temporaries.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace kiln {

// A name is owned by whoever exchanges it for null: the handler, which leaves it allocated, or the object that listed
// it, which frees it.  So the handler never reads freed memory, whatever other threads do meanwhile.
static std::atomic<char *> names[ListedTemporary::most];
static std::atomic<pid_t> owner{0};
static_assert(std::atomic<char *>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free);

ListedTemporary::ListedTemporary(const std::string &path) {
  char *const copy = ::strdup(path.c_str());
  if (!copy)
    return;
  owner = ::getpid();
  for (unsigned i = 0; i < most; ++i)
    if (char *empty = nullptr; names[i].compare_exchange_strong(empty, copy)) {
      slot = static_cast<int>(i);
      return;
    }
  std::free(copy);
}

ListedTemporary::~ListedTemporary() {
  if (slot >= 0)
    std::free(names[slot].exchange(nullptr));
}

void removeListedTemporaries() {
  if (owner != ::getpid())
    return;
  for (std::atomic<char *> &name : names)
    if (const char *path = name.exchange(nullptr))
      ::unlink(path);
}

static void removeAndEnd(int signal) {
  removeListedTemporaries();
  // The action is the default again (SA_RESETHAND); the signal is blocked until the handler returns.
  ::raise(signal);
}

void removeTemporariesOnSignals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now = {};
    if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL)
      continue;
    struct sigaction action = {};
    action.sa_handler = removeAndEnd;
    action.sa_flags = SA_RESETHAND;
    ::sigaction(signal, &action, nullptr);
  }
}

} // namespace kiln
