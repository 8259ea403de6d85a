// The files that a server's layer needs: its library, and the secret.
#include "runtime/cache/Ownership.h"
#include "runtime/cache/remote/RedisLayer.h"
#include "runtime/cache/TrustedFile.h"

#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/stat.h>

namespace kiln::cache {

Result<const KilnRedisTable *> openRedisLibrary(std::string path) {
  constexpr const char *fileName = "libkiln-redis.so";
  for (const std::string &folder : programFolders())
    if (std::error_code error; path.empty() && std::filesystem::exists(folder + "/" + fileName, error))
      path = folder + "/" + fileName;
  const std::string remedy = "it comes with Kiln, next to libkiln-compiler.so, and needs Debian's libhiredis0.14 and "
                             "libsodium23";
  if (path.empty())
    return Status(StatusCode::NotFound, std::string(fileName) + " is not next to the program, nor in its ../lib",
                  remedy);
  KILN_ASSIGN(const std::string trusted, trustedFile(path, "the library"));
  void *library = ::dlopen(trusted.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Status(StatusCode::NotFound, "'" + trusted + "' cannot be loaded: " + ::dlerror(), remedy);
  using Function = const KilnRedisTable *();
  auto *function = reinterpret_cast<Function *>(::dlsym(library, "kilnRedisTable"));
  const KilnRedisTable *table = function ? function() : nullptr;
  if (!table || table->version != redisTableVersion)
    return Status(StatusCode::Unsupported, "'" + trusted + "' is of another version of Kiln", remedy);
  return table;
}

Result<std::string> readSecret(const std::string &path) {
  if (path.empty())
    return Status::invalid("a cache's server is named, and no secret: without one anybody who reaches the server could "
                           "give this program code to run",
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
