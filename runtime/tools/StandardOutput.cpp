#include "runtime/tools/StandardOutput.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>

namespace kiln::tools {

void fillClosedStandardStreams() {
  // open() takes the smallest number that is free: in this order, the one that is missing.
  for (const int stream : {0, 1, 2})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      (void)::open("/dev/null", stream == 1 ? O_RDONLY : O_RDWR);
}

bool closeStandardOutput() {
  const bool lost = std::ferror(stdout) != 0; // earlier, for a reason that is not kept
  errno = 0;
  const bool closed = std::fclose(stdout) == 0; // flushes; NFS reports a full disk only here
  if (!lost && closed)
    return true;
  std::fprintf(stderr, "kiln: cannot write standard output%s%s (make room there, or write to another place)\n",
               errno ? ": " : "", errno ? std::strerror(errno) : "");
  return false;
}

} // namespace kiln::tools
