#include "runtime/cache/PrivateDirectory.h"

#include "runtime/cache/Ownership.h"
#include "support/Text.h"

#include <cerrno>
#include <deque>
#include <fcntl.h>
#include <unistd.h>

namespace kiln::cache {

static constexpr mode_t othersWrite = S_IWGRP | S_IWOTH;

namespace {

/// The texts of one directory's failures.
struct Refusals {
  const DirectoryUse &use;
  const std::string &path;

  std::string chooseAnother() const { return std::string("set ") + use.variable + " to a directory of your own"; }
  Status operator()(const std::string &why, std::string remedy = {}) const {
    return Status::invalid(std::string(use.what) + " '" + path + "' " + why,
                           remedy.empty() ? chooseAnother() : std::move(remedy));
  }
  Status onTheWay(const char *verb, const std::string &name, int error) const {
    return systemError(std::string(verb) + " '" + name + "' on the way to the " + use.what, path, error,
                       chooseAnother());
  }
};

} // namespace

Status checkPrivateDirectory(FileLayer &files, int directory, const std::string &path, const DirectoryUse &use) {
  const Refusals refused{use, path};
  struct stat info;
  if (const int error = files.status(directory, info); error < 0)
    return systemError(std::string("inspect the ") + use.what, path, error);
  if (!S_ISDIR(info.st_mode))
    return refused("is not a directory");
  if (info.st_uid != ::geteuid())
    return refused("belongs to user " + std::to_string(info.st_uid) + ", this process runs as user " +
                   std::to_string(::geteuid()));
  if (info.st_mode & othersWrite)
    return refused("can be written to by others (mode " + modeText(info.st_mode) + ")",
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

Result<OwnedFile> openPrivateDirectory(FileLayer &files, const std::string &path, bool create,
                                       const DirectoryUse &use) {
  const Refusals refused{use, path};
  constexpr int onTheWay = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  constexpr int last = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  constexpr int maxLinks = 40; // as the system does

  if (path.empty() || path[0] != '/' || path.find('\0') != std::string::npos)
    return refused("is not an absolute path");
  std::deque<std::string> todo = components(path);
  if (todo.empty())
    return refused("is the root of all files");

  const auto openRoot = [&]() { return files.openAt(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0); };
  OwnedFile at(files, openRoot());
  if (!at)
    return systemError("open", "/", at.get());
  struct stat info;
  for (int links = 0; todo.size() > 1;) {
    const std::string name = std::move(todo.front());
    todo.pop_front();
    const int file = openOrMake(files, at.get(), name.c_str(), onTheWay, create);
    if (file < 0)
      return refused.onTheWay("open", name, file);
    OwnedFile next(files, file);
    if (const int error = files.status(file, info); error < 0)
      return refused.onTheWay("inspect", name, error);
    if (S_ISDIR(info.st_mode)) {
      // Who can rename what lies in it can put another directory of ours there, with files that we once unpacked.
      if (const std::string why = folderObjection(info); !why.empty())
        return refused("could be replaced by others: '" + name + "' on the way to it " + why,
                       std::string("set ") + use.variable +
                           " to a directory below folders that only you, or root, may change");
      at = std::move(next);
      continue;
    }
    if (!S_ISLNK(info.st_mode))
      return refused("cannot be: '" + name + "' on the way to it is a file");

    // In a sticky folder its owner can replace it.
    if (!isTrusted(info.st_uid))
      return refused("is reached through the symbolic link '" + name + "', which another user could replace");
    if (++links > maxLinks)
      return refused("is reached through more than " + std::to_string(maxLinks) + " symbolic links");
    std::string target;
    if (const int error = files.readLinkAt(at.get(), name.c_str(), target); error < 0)
      return refused.onTheWay("read the symbolic link", name, error);
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
    return refused(isLink ? "is a symbolic link" : "is not a directory",
                   isLink ? std::string("set ") + use.variable + " to the directory it points to" : std::string());
  }
  if (file < 0)
    return systemError(std::string("open the ") + use.what, path, file, refused.chooseAnother());
  OwnedFile directory(files, file);
  KILN_TRY(checkPrivateDirectory(files, file, path, use));
  return directory;
}

} // namespace kiln::cache
