#include "runtime/cache/PrivateDirectory.h"

#include "support/Text.h"

#include <cerrno>
#include <deque>
#include <fcntl.h>
#include <unistd.h>

namespace kiln::cache {

static constexpr mode_t othersWrite = S_IWGRP | S_IWOTH;
static constexpr const char *chooseAnother = "set KILN_CACHE_DIR to a directory of your own";

static Status refused(const std::string &path, const std::string &why, std::string remedy = chooseAnother) {
  return Status::invalid("cache directory '" + path + "' " + why, std::move(remedy));
}

static std::string modeText(mode_t mode) {
  return format("%04o", static_cast<unsigned>(mode & 07777));
}

Status checkPrivateDirectory(FileLayer &files, int directory, const std::string &path) {
  struct stat info;
  if (const int error = files.status(directory, info); error < 0)
    return systemError("inspect the cache directory", path, error);
  if (!S_ISDIR(info.st_mode))
    return refused(path, "is not a directory");
  if (info.st_uid != ::geteuid())
    return refused(path, "belongs to user " + std::to_string(info.st_uid) + ", this process runs as user " +
                             std::to_string(::geteuid()));
  if (info.st_mode & othersWrite)
    return refused(path, "can be written to by others (mode " + modeText(info.st_mode) + ")",
                   "empty it, then 'chmod 700' it: others may have placed code in it");
  return {};
}

std::string entryFileObjection(const struct stat &status) {
  if (!S_ISREG(status.st_mode))
    return "it is not a regular file";
  if (status.st_uid != ::geteuid())
    return "it belongs to user " + std::to_string(status.st_uid) + ", this process runs as user " +
           std::to_string(::geteuid());
  if (status.st_mode & othersWrite)
    return "others can write to it (mode " + modeText(status.st_mode) + ")";
  return {};
}

/// The directory that holds a link decides, with the link's owner, who can replace it.
static bool othersCouldReplace(const struct stat &parent, const struct stat &link) {
  const auto trusted = [](uid_t user) { return user == 0 || user == ::geteuid(); };
  const bool anyoneMayRename = (parent.st_mode & othersWrite) && !(parent.st_mode & S_ISVTX);
  return !trusted(link.st_uid) || !trusted(parent.st_uid) || anyoneMayRename;
}

static std::deque<std::string> components(const std::string &path) {
  std::deque<std::string> out;
  for (std::string_view part : split(path, '/'))
    if (!part.empty() && part != ".")
      out.emplace_back(part);
  return out;
}

/// Opens `name` in `at`, and makes it first if it is missing and may be made.
static int openOrMake(FileLayer &files, int at, const char *name, int flags, bool create) {
  const int file = files.openAt(at, name, flags, 0);
  if (file != -ENOENT || !create)
    return file;
  // Another process may be faster.
  if (const int error = files.makeDirectoryAt(at, name, 0700); error < 0 && error != -EEXIST)
    return error;
  return files.openAt(at, name, flags, 0);
}

Result<OwnedFile> openPrivateDirectory(FileLayer &files, const std::string &path, bool create) {
  constexpr int onTheWay = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  constexpr int last = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  constexpr int maxLinks = 40; // as the system does

  if (path.empty() || path[0] != '/' || path.find('\0') != std::string::npos)
    return refused(path, "is not an absolute path");
  std::deque<std::string> todo = components(path);
  if (todo.empty())
    return refused(path, "is the root of all files");

  const auto openRoot = [&]() { return files.openAt(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0); };
  OwnedFile at(files, openRoot());
  if (!at)
    return systemError("open", "/", at.get());
  struct stat parent, info;
  for (int links = 0; todo.size() > 1;) {
    const std::string name = std::move(todo.front());
    todo.pop_front();
    const int file = openOrMake(files, at.get(), name.c_str(), onTheWay, create);
    if (file < 0)
      return systemError("open '" + name + "' on the way to the cache directory", path, file, chooseAnother);
    OwnedFile next(files, file);
    if (const int error = files.status(file, info); error < 0)
      return systemError("inspect '" + name + "' on the way to the cache directory", path, error, chooseAnother);
    if (S_ISDIR(info.st_mode)) {
      at = std::move(next);
      continue;
    }
    if (!S_ISLNK(info.st_mode))
      return refused(path, "cannot be: '" + name + "' on the way to it is a file");

    if (const int error = files.status(at.get(), parent); error < 0)
      return systemError("inspect '" + name + "' on the way to the cache directory", path, error, chooseAnother);
    if (othersCouldReplace(parent, info))
      return refused(path, "is reached through the symbolic link '" + name + "', which another user could replace");
    if (++links > maxLinks)
      return refused(path, "is reached through more than " + std::to_string(maxLinks) + " symbolic links");
    std::string target;
    if (const int error = files.readLinkAt(at.get(), name.c_str(), target); error < 0)
      return systemError("read the symbolic link '" + name + "' on the way to", path, error, chooseAnother);
    std::deque<std::string> rest = components(target);
    todo.insert(todo.begin(), rest.begin(), rest.end());
    if (target[0] == '/') {
      at = OwnedFile(files, openRoot());
      if (!at)
        return systemError("open", "/", at.get());
    }
  }

  const std::string &name = todo.front();
  const int file = openOrMake(files, at.get(), name.c_str(), last, create);
  if (file == -ENOTDIR || file == -ELOOP) {
    const bool isLink = files.statusAt(at.get(), name.c_str(), info) == 0 && S_ISLNK(info.st_mode);
    return refused(path, isLink ? "is a symbolic link" : "is not a directory",
                   isLink ? "set KILN_CACHE_DIR to the directory it points to" : chooseAnother);
  }
  if (file < 0)
    return systemError("open the cache directory", path, file, chooseAnother);
  OwnedFile directory(files, file);
  KILN_TRY(checkPrivateDirectory(files, file, path));
  return directory;
}

} // namespace kiln::cache
