//===- Report.h - What the cache says about itself ------------------------===//
//
// Plain data: what `kiln cache` prints.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_REPORT_H
#define KILN_RUNTIME_CACHE_REPORT_H

#include "runtime/cache/Entry.h"
#include "runtime/cache/KeyText.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln::cache {

/// Of one KernelCache object since it was opened.
struct CacheCounters {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;         ///< every lookup that is no hit, damaged and failed ones included
  std::uint64_t damaged = 0;        ///< misses whose file was refused: damaged, not ours, writable by others
  std::uint64_t collisions = 0;     ///< misses whose file holds another key of the same hash
  std::uint64_t lookupFailures = 0; ///< misses that returned a failed status
  std::uint64_t stores = 0;         ///< that succeeded
  std::uint64_t storeFailures = 0;
  std::uint64_t evicted = 0; ///< entries removed to stay below the size cap
};

/// Why a lookup found nothing.
enum class MissReason : std::uint8_t { None, Absent, Damaged, OtherKey, Failed };
/// "no entry", "damaged entry", ...
std::string_view missReasonText(MissReason reason);

struct EntryInfo {
  std::string fileName;
  std::uint64_t bytes = 0;                 ///< of the file
  std::chrono::seconds idle{0};            ///< since it was stored or last hit, to a minute or so
  std::optional<std::chrono::seconds> age; ///< since it was stored, if the file system knows
  std::string damage;                      ///< why it will not be loaded; empty for a good entry
  bool unreadable = false;                 ///< `damage` says why it could not be read, which may pass
  EntryKind kind = EntryKind::Ptx;         ///< this and what follows: only of entries whose header could be read
  KeyText key;
  std::string metadata;
};

struct PruneOptions {
  std::optional<std::uint64_t> maxBytes;       ///< remove the least recently used until no more is left
  std::optional<std::chrono::seconds> maxIdle; ///< remove what was not used for longer
  bool all = false;                            ///< remove every entry
  bool damaged = false;                        ///< read every entry and remove the damaged ones
};

struct PruneReport {
  std::uint64_t removed = 0, removedBytes = 0, kept = 0, keptBytes = 0;
  std::uint64_t leftovers = 0;       ///< temporary and lock files of dead processes that were removed
  std::vector<std::string> failures; ///< what could not be removed, and why
};

struct FieldDifference {
  std::string field;
  std::string text; ///< "'sm_90a', the entry has 'sm_80'", or the first line that differs
};

/// How a key relates to what is in the cache.
struct Explanation {
  bool present = false; ///< a good entry of exactly this key exists
  std::string damage;   ///< the key's file exists, and why it will not be loaded
  std::uint64_t entries = 0;
  std::string nearest; ///< file name of the entry with the most equal fields; empty if none has any
  std::uint64_t equalFields = 0, totalFields = 0;
  std::vector<FieldDifference> differences;

  /// Some lines for a terminal.
  std::string toString() const;
  /// The part of them that is about the nearest entry; empty if there is none.
  std::string differencesText() const;
};

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_REPORT_H
