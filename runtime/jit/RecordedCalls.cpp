#include "runtime/jit/RecordedCalls.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace kiln {

namespace {

Status failure(const std::string &file, const char *what, int error) {
  return {StatusCode::IoError, "KILN_RECORD_CALLS: '" + file + "' cannot be " + what + ": " + std::strerror(error),
          "name a file that this user may write"};
}

/// Everything; it is read at the first call of a kind only.
Result<std::string> contentsOf(int fd, const std::string &file) {
  std::string out;
  char buffer[1 << 14];
  for (;;) {
    const ssize_t n = ::pread(fd, buffer, sizeof buffer, static_cast<off_t>(out.size()));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return failure(file, "read", errno);
    if (n == 0)
      return out;
    out.append(buffer, static_cast<std::size_t>(n));
  }
}

Status addTo(int fd, const std::string &file, const std::string &call) {
  struct stat about{};
  if (::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
    return failure(file, "used: it is no file", EINVAL);
  constexpr int attempts = 200; // of a process that stopped while it had the lock, others do without
  for (int i = 0; ::flock(fd, LOCK_EX | LOCK_NB) != 0; ++i) {
    if ((errno != EINTR && errno != EWOULDBLOCK) || i == attempts)
      return failure(file, "locked", errno);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  KILN_ASSIGN(const std::string before, contentsOf(fd, file));
  const std::string line = call + "\n";
  if (before.starts_with(line) || before.find("\n" + line) != std::string::npos)
    return {};
  // A line that somebody wrote without its end is left whole.
  const std::string text = (before.empty() || before.back() == '\n' ? "" : "\n") + line;
  const ssize_t n = ::write(fd, text.data(), text.size());
  if (n == static_cast<ssize_t>(text.size()))
    return {};
  const int error = n < 0 ? errno : ENOSPC;
  (void)!::ftruncate(fd, static_cast<off_t>(before.size()));
  return failure(file, "written", error);
}

} // namespace

Status recordCall(const std::string &file, const std::string &call) {
  constexpr mode_t mode = 0666; // less what the umask says
  // A pipe without a reader would keep the program.
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, mode);
  if (fd < 0)
    return failure(file, "opened", errno);
  Status s = addTo(fd, file, call);
  ::flock(fd, LOCK_UN); // a child that was forked meanwhile has the descriptor, too
  ::close(fd);
  return s;
}

} // namespace kiln
