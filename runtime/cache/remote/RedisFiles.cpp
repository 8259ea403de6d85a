// The files that a server's layer needs: its library, and the secret.
#include "runtime/cache/Ownership.h"
#include "runtime/cache/remote/RedisLayer.h"
#include "runtime/cache/TrustedFile.h"
#include "runtime/cache/TrustedLibrary.h"

#include <fstream>
#include <iterator>
#include <sys/stat.h>

namespace kiln::cache {

Result<const KilnRedisTable *> openRedisLibrary(std::string path) {
  constexpr LibraryName name = {
      "libkiln-redis.so", "kilnRedisTable",
      "it comes with Kiln, next to libkiln-compiler.so, and needs Debian's libhiredis0.14 and "
      "libsodium23"};
  KILN_ASSIGN(const void *table, openTrustedLibrary(name, std::move(path), redisTableVersion));
  return static_cast<const KilnRedisTable *>(table);
}

Result<std::string> readSecret(const std::string &path) {
  if (path.empty())
    return Status::invalid("a server is named, and no secret: without one anybody who reaches the server could give "
                           "this program code to run",
                           "set KILN_CACHE_SECRET to a file that all machines have: head -c 32 /dev/urandom | base64 > "
                           "FILE && chmod 600 FILE");
  KILN_ASSIGN(const std::string trusted, trustedFile(path, "the secret"));
  struct stat info{};
  if (::stat(trusted.c_str(), &info) == 0 && (info.st_mode & 077) != 0)
    return Status::invalid("the secret '" + trusted + "' can be read by others (mode " + modeText(info.st_mode) + ")",
                           "chmod 600 " + trusted);
  std::ifstream file(trusted, std::ios::binary);
  std::string out((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file)
    return Status(StatusCode::IoError, "the secret '" + trusted + "' cannot be read",
                  "give a file that this user may read");
  while (!out.empty() && (out.back() == '\n' || out.back() == '\r'))
    out.pop_back();
  return out;
}

} // namespace kiln::cache
