//===- Leftovers.h - The folder of temporary and lock files ---------------===//
//
// `pending/` in the cache directory: entries that are being written and the locks of kernels that are being compiled.
// Each file is locked by the process that works with it, so a file that can be locked belongs to no one and may go
// (an empty temporary file only after a minute: its writer may be about to lock it).
// A lock file's name is removed by its holder; who locks a file whose name is gone, or names another file by now,
// holds nothing and starts again.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_LEFTOVERS_H
#define KILN_RUNTIME_CACHE_LEFTOVERS_H

#include "runtime/cache/OwnedFile.h"

#include <cstdint>

namespace kiln::cache {

inline constexpr const char *pendingName = "pending";
inline constexpr std::string_view temporarySuffix = ".tmp", lockSuffix = ".lock";

/// -errno in place of a descriptor if it fails.
OwnedFile openPending(FileLayer &files, int directory, bool create);

/// Whether `name` in `directory` is the file that is open as `file`.
bool namesFile(FileLayer &files, int directory, const char *name, int file);

/// Removes the files of dead processes and gives their number.
std::uint64_t removeLeftovers(FileLayer &files, int directory);

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_LEFTOVERS_H
