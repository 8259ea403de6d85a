//===- CacheState.h - What the functions of KernelCache share -------------===//
//
// The open directory and the counters.  `root` may be replaced (the directory was deleted and made again), so each
// operation takes it once.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_CACHESTATE_H
#define KILN_RUNTIME_CACHE_CACHESTATE_H

#include "runtime/cache/KernelCache.h"
#include "runtime/cache/OwnedFile.h"

#include <atomic>
#include <mutex>

namespace kiln::cache {

inline constexpr std::string_view entrySuffix = ".kernel";

/// A name in the directory that looks like an entry.
struct EntryFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t usedNanoseconds = 0; ///< since 1970
};

class KernelCache::Impl {
public:
  using Root = std::shared_ptr<const OwnedFile>;

  Impl(CacheOptions options, FileLayer &files, OwnedFile directory)
      : options(std::move(options)), files(files), root(std::make_shared<const OwnedFile>(std::move(directory))) {}

  /// The directory, checked again.
  Result<Root> openRoot();

  /// The directory and its `pending` folder, made again if someone removed them.
  struct Pending {
    Root root;
    OwnedFile folder;
  };
  Result<Pending> openPendingFolder();

  /// `view` points into `fileText`; moving the object may move the bytes, so it stays where it was made.
  struct Loaded {
    std::string fileText;
    EntryView view;
    std::int64_t usedNanoseconds = 0;
    OwnedFile file;
  };
  /// Reads and checks the file; without `whole` only up to its metadata, and no checksum.  An InvalidArgument status
  /// says why it must not be loaded, others that it could not be read.
  Status load(int directory, const std::string &name, bool whole, Loaded &out);

  /// One attempt; `lost` if the files were removed under it and another attempt may succeed.
  Status storeOnce(const std::string &hex, const std::string &encoded, bool &lost);
  Status storeCounted(const KeyText &key, const Entry &entry);
  /// Measures the directory if that is due and removes the least recently used entries over the cap, never `newest`.
  void limitSize(const Hash128 &hash, std::uint64_t stored, const std::string &newest);

  /// Every name that looks like an entry, the least recently used first.
  Result<std::vector<EntryFile>> scan(int directory);
  /// `whole`: the payload and the checksum too.  Nothing if the file is gone.
  std::optional<EntryInfo> inspect(int directory, const EntryFile &file, bool whole);
  Result<std::vector<EntryInfo>> inspectAll(bool whole);

  std::string entryPath(const std::string &name) const { return options.directory + "/" + name; }

  const CacheOptions options; ///< the directory made absolute
  FileLayer &files;

  std::atomic<std::uint64_t> hits = 0, misses = 0, damaged = 0, collisions = 0, lookupFailures = 0, stores = 0,
                             storeFailures = 0, evicted = 0;

private:
  Result<Root> reopenRoot(const Root &lost);

  std::mutex rootMutex;
  Root root;

  std::mutex sizeMutex;
  std::uint64_t storedSinceScan = 0; ///< bytes
};

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_CACHESTATE_H
