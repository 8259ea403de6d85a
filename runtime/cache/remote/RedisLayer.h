//===- RedisLayer.h - Kernels that machines share through a Redis server --===//
//
// A server may be hung, slow, wrong, hostile or gone; a lookup waits for it at most `patience`, and after the first
// failure none waits any more until a thread in the background has seen it answer again.  What it holds is signed with
// a secret that those who share it have, together with its key: an entry that the server made up, changed or moved to
// another key is refused, and refuses the server.  What is compiled is sent from the background, where a queue of
// `mostQueued` bytes drops what is too much; at the end of the program what is left has `patience` once more.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_REMOTE_REDISLAYER_H
#define KILN_RUNTIME_CACHE_REMOTE_REDISLAYER_H

#include "runtime/cache/Layer.h"
#include "runtime/cache/remote/RedisAddress.h"
#include "runtime/cache/remote/RedisLibrary.h"

#include <chrono>
#include <functional>
#include <memory>

namespace kiln::cache {

struct RedisOptions {
  RedisAddress address = {};
  std::string secret = {};                       ///< at least 16 bytes, the same on all machines
  const KilnRedisTable *library = nullptr;       ///< from openRedisLibrary()
  std::chrono::milliseconds patience{200};       ///< that a lookup waits
  std::chrono::milliseconds storePatience{5000}; ///< that a store may take, in the background
  std::chrono::milliseconds retryAfter{30000};   ///< a failure
  std::size_t mostQueued = std::size_t(64) << 20;
  std::function<void(const std::string &)> say = {}; ///< one line when it fails, and when it is back; from any thread
};

/// Its own counters, for tests and `kiln cache`.
struct RedisCounters {
  std::uint64_t hits = 0, misses = 0, skipped = 0; ///< skipped: not asked, since it had failed
  std::uint64_t refused = 0;                       ///< entries that were not signed, or not for this key
  std::uint64_t failures = 0, stored = 0, dropped = 0;
};

class RedisLayer : public Layer {
public:
  virtual RedisCounters counters() const = 0;
};

/// No connection is made yet.  Fails for a secret that is too short.
Result<std::unique_ptr<RedisLayer>> redisLayer(RedisOptions options);

/// Opens libkiln-redis.so: `path`, or next to the program or this library, or in its ../lib.
Result<const KilnRedisTable *> openRedisLibrary(std::string path = {});

/// The secret in a file, which nobody else may read or write.
Result<std::string> readSecret(const std::string &path);

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_REMOTE_REDISLAYER_H
