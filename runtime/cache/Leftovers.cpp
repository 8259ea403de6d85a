#include "runtime/cache/Leftovers.h"

#include "runtime/cache/PrivateDirectory.h"

#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>

namespace kiln::cache {

OwnedFile openPending(FileLayer &files, int directory, bool create) {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  int file = files.openAt(directory, pendingName, flags, 0);
  if (file == -ENOENT && create) {
    if (const int error = files.makeDirectoryAt(directory, pendingName, 0700); error < 0 && error != -EEXIST)
      return {files, error};
    file = files.openAt(directory, pendingName, flags, 0);
  }
  if (file < 0)
    return {files, file};
  OwnedFile out(files, file);
  if (!checkPrivateDirectory(files, file, pendingName).ok())
    return {files, -EPERM};
  return out;
}

bool namesFile(FileLayer &files, int directory, const char *name, int file) {
  struct stat named, open;
  return files.statusAt(directory, name, named) == 0 && files.status(file, open) == 0 && named.st_dev == open.st_dev &&
         named.st_ino == open.st_ino;
}

static bool isLeftover(FileLayer &files, OwnedFile &file, bool temporary) {
  struct stat info;
  if (files.status(file.get(), info) < 0)
    return false;
  const std::int64_t age = std::time(nullptr) - info.st_mtim.tv_sec;
  // Its writer has made it and not locked it yet; a writer writes nothing before it holds the lock.
  if (temporary && info.st_size == 0 && age < 60)
    return false;
  const int locked = files.lock(file.get(), LOCK_EX | LOCK_NB);
  if (locked == 0)
    return true;
  // On a file system without locks age decides: nothing takes an hour.
  return locked != -EWOULDBLOCK && age > 3600;
}

std::uint64_t removeLeftovers(FileLayer &files, int directory) {
  const OwnedFile pending = openPending(files, directory, false);
  std::vector<std::string> names;
  if (!pending || files.list(pending.get(), names) < 0)
    return 0;
  std::uint64_t removed = 0;
  for (const std::string &name : names) {
    if (!name.ends_with(temporarySuffix) && !name.ends_with(lockSuffix))
      continue;
    OwnedFile file(files, files.openAt(pending.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0));
    if (file && isLeftover(files, file, name.ends_with(temporarySuffix)) &&
        namesFile(files, pending.get(), name.c_str(), file.get()) && files.unlinkAt(pending.get(), name.c_str()) == 0)
      ++removed;
  }
  return removed;
}

} // namespace kiln::cache
