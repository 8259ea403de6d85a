//===- PrivateDirectory.h - A directory that only this user writes to -----===//
//
// What is loaded from the cache is run, so no one else may be able to put it there.  The directory itself must be ours
// and writable by us alone.  All later calls go through its descriptor: whoever renames a directory on the way to it
// changes nothing.  A symbolic link on the way is followed only if no one but us and root could have placed it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_PRIVATEDIRECTORY_H
#define KILN_RUNTIME_CACHE_PRIVATEDIRECTORY_H

#include "runtime/cache/OwnedFile.h"

namespace kiln::cache {

/// `path` is absolute.  `create` makes it and the directories above it, with mode 0700.
Result<OwnedFile> openPrivateDirectory(FileLayer &files, const std::string &path, bool create);

/// The checks on a directory that is open already; `path` is for the message.
Status checkPrivateDirectory(FileLayer &files, int directory, const std::string &path);

/// Why an open file of this status may not be loaded; empty if it may.
std::string entryFileObjection(const struct stat &status);

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_PRIVATEDIRECTORY_H
