// A system that gives no threads, and no processes: preloaded into `kiln` and what it starts.
//   KILN_TEST_THREADS=n     the threads that each process may make; further ones fail as at a limit on tasks
//   KILN_TEST_PROCESSES=0   no process can be started
#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>

namespace {
long left(const char *variable) {
  const char *text = std::getenv(variable);
  return text ? std::atol(text) : 1L << 30;
}
} // namespace

extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                              void *argument) {
  static long threads = left("KILN_TEST_THREADS");
  if (threads-- <= 0)
    return EAGAIN;
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, body, argument);
}

extern "C" int posix_spawnp(pid_t *process, const char *file, const posix_spawn_file_actions_t *actions,
                            const posix_spawnattr_t *attributes, char *const argv[], char *const environment[]) {
  if (left("KILN_TEST_PROCESSES") <= 0)
    return EAGAIN;
  static const auto real = reinterpret_cast<decltype(&posix_spawnp)>(::dlsym(RTLD_NEXT, "posix_spawnp"));
  return real(process, file, actions, attributes, argv, environment);
}
