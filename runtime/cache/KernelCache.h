//===- KernelCache.h - Compiled kernels on disk ---------------------------===//
//
// Shared by all processes of one user.  A lookup gives exactly what was stored under that key, or nothing: a damaged,
// half-written, foreign or hostile file is a miss.  Nothing here ever has to succeed for a kernel to run: a caller
// that gets a failed Status compiles and goes on.  Safe to use from several threads and processes at once.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_KERNELCACHE_H
#define KILN_RUNTIME_CACHE_KERNELCACHE_H

#include "runtime/cache/CompileLock.h"
#include "runtime/cache/Entry.h"
#include "runtime/cache/FileLayer.h"
#include "runtime/cache/Hash.h"
#include "runtime/cache/KeyText.h"
#include "runtime/cache/Report.h"
#include "support/Status.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kiln::cache {

struct CacheOptions {
  std::string directory;
  std::uint64_t maxBytes = std::uint64_t(1) << 30; ///< of all entries together; 0 = no cap
  bool create = true;                              ///< make the directory (0700) if it is not there
  std::chrono::seconds touchInterval{60};          ///< a hit renews an entry's time of use at most this often
  FileLayer *files = nullptr;                      ///< nullptr: the system; must outlive the cache and its locks
  Hash128 (*hash)(std::string_view) = hash128;     ///< names the files
};

/// $KILN_CACHE_DIR, else $XDG_CACHE_HOME/kiln, else $HOME/.cache/kiln.  `environment` is getenv or the like.
Result<std::string> defaultCacheDirectory(const std::function<const char *(const char *)> &environment);

class KernelCache {
public:
  /// Fails if the directory is not private: its owner is not this user, others may write to it, it is a symbolic link
  /// or a file, or a link on the way to it could be replaced by others.
  static Result<std::unique_ptr<KernelCache>> open(CacheOptions options);
  ~KernelCache();

  /// The entry, or nothing; `why`, if given, says why nothing.  A failed Status (too many open files, the directory
  /// lost its privacy, ...) is a miss too.
  Result<std::optional<Entry>> lookup(const KeyText &key, MissReason *why = nullptr);

  /// Replaces an entry of the same key.  After a failure the key has its old entry or none.
  Status store(const KeyText &key, const Entry &entry);

  /// Waits until no one else compiles `key`; then look it up again before compiling.  Fails after `patience`, and
  /// where locks do not work: compile without.
  Result<CompileLock> lockForCompile(const KeyText &key, std::chrono::milliseconds patience);

  /// Header and key of every entry, the most recently used first; payloads are not checked.
  Result<std::vector<EntryInfo>> list();
  /// Like `list`, and reads every entry whole: `damage` is final.
  Result<std::vector<EntryInfo>> verify();
  /// Removes what the options say, and in any case what dead processes left.
  Result<PruneReport> prune(const PruneOptions &options);
  /// Why this key hits or misses: the nearest entry and the fields that differ.
  Result<Explanation> explain(const KeyText &key);
  /// The nearest entry of another key, whether or not this key has one; `present` and `damage` are not looked at.
  Result<Explanation> nearest(const KeyText &key);

  CacheCounters counters() const;
  /// Absolute.
  const std::string &directory() const;

private:
  class Impl;
  explicit KernelCache(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_KERNELCACHE_H
