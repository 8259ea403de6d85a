//===- CacheEntry.h - One entry of the kernel cache, shown and taken apart -----===//
#ifndef KILN_RUNTIME_TOOLS_CACHEENTRY_H
#define KILN_RUNTIME_TOOLS_CACHEENTRY_H

#include "runtime/cache/KernelCache.h"
#include "runtime/tools/Report.h"

namespace kiln::tools {

/// An entry read whole.
struct CacheEntry {
  cache::EntryInfo info;
  cache::Entry entry;
};

/// The entry whose file begins with `name` (what `kiln cache list` prints, or enough of it).  Fails if there is none,
/// if there are several, and if it is damaged.
Result<CacheEntry> findCacheEntry(cache::KernelCache &kernels, const std::string &name);

/// The entry's program, key, metadata and code's size as lines; and all but the code as JSON.
std::string describeCacheEntry(const CacheEntry &entry);
Json cacheEntryJson(const CacheEntry &entry);

/// Writes KERNEL.mlir, which begins with the command that compiles it again, KERNEL.ptx or KERNEL.cubin, and
/// KERNEL.json into the folder, which is made; their paths.
Result<std::vector<std::string>> extractCacheEntry(const CacheEntry &entry, const std::string &folder);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_CACHEENTRY_H
