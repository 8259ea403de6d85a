//===- PrivateDirectory.h - A directory that only this user writes to -----===//
//
// What is loaded from the cache is run, so no one else may be able to put it there.  The directory itself must be ours
// and writable by us alone.  No folder or link on the way to it may be writable by others (Ownership.h): they could
// put another directory of ours in its place, one that we unpacked from their archive.  All later calls go through the
// descriptor: what is renamed afterwards changes nothing.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_PRIVATEDIRECTORY_H
#define KILN_RUNTIME_CACHE_PRIVATEDIRECTORY_H

#include "runtime/cache/OwnedFile.h"

namespace kiln::cache {

/// What a directory is for, in messages: the variable names another one.
struct DirectoryUse {
  const char *what = "cache directory", *variable = "KILN_CACHE_DIR";
};

/// `path` is absolute.  `create` makes it and the directories above it, with mode 0700.
Result<OwnedFile> openPrivateDirectory(FileLayer &files, const std::string &path, bool create,
                                       const DirectoryUse &use = {});

/// The checks on a directory that is open already; `path` is for the message.
Status checkPrivateDirectory(FileLayer &files, int directory, const std::string &path, const DirectoryUse &use = {});

/// Why an open file of this status may not be loaded; empty if it may.
std::string entryFileObjection(const struct stat &status);

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_PRIVATEDIRECTORY_H
