//===- Ownership.h - Who could have put a file where it lies --------------===//
//
// Rules on the owner and mode of files and folders, without system calls but those that name users.  What is loaded is
// run: whoever can write a file, or replace a folder on the way to it, runs code as this process's user.
//
// Trusted are this process's user, root, and the owner of the program (or library) that this code is part of: it could
// change what runs already.  A group's right to write is its owner's alone if the group is (the private group that
// many systems give each user).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_OWNERSHIP_H
#define KILN_RUNTIME_CACHE_OWNERSHIP_H

#include <string>
#include <sys/stat.h>
#include <vector>

namespace kiln::cache {

/// "0775".
std::string modeText(mode_t mode);

bool isTrusted(uid_t user);

/// Why what lies in the folder could be replaced by others: "belongs to user 7", "can be written to by others (mode
/// 0777)"; empty if it could not.  In a sticky folder (/tmp) entries are their owners'.
std::string folderObjection(const struct stat &folder);

/// Why a file, not of the cache, may not be loaded; empty if it may.
std::string libraryObjection(const struct stat &file);

/// The folders of the program and of the library that holds this code, and next to each its ../lib; resolved.  What
/// lies there is trusted as they are.
const std::vector<std::string> &programFolders();

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_OWNERSHIP_H
