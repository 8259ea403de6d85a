//===- RedisLibrary.h - What Kiln takes from hiredis and libsodium --------===//
//
// libkiln-redis.so holds both, so that programs which use no server need neither where they run.  It is opened when the
// first server is named.  Pure functions: sockets, threads and time limits are Kiln's (RedisConnection.h), since no
// call into a client library ends in time for sure.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_REMOTE_REDISLIBRARY_H
#define KILN_RUNTIME_CACHE_REMOTE_REDISLIBRARY_H

#include <cstddef>
#include <cstdint>

extern "C" {

/// What a server answered.  `text` lives until the next call with the same reader.
struct KilnRedisReply {
  enum Kind : std::int32_t { Incomplete, Text, Nothing, Number, Error, Unexpected } kind;
  const char *text;
  std::size_t bytes;
};

struct KilnRedisTable {
  std::uint32_t version;
  /// A command as it goes over the wire; null without memory.  Given back with `release`.
  char *(*format)(int count, const char *const *words, const std::size_t *bytes, std::size_t *length);
  void (*release)(char *text);
  /// Takes an answer piece by piece.  Arrays are Unexpected: no command that Kiln sends is answered with one.
  void *(*makeReader)();
  KilnRedisReply (*feed)(void *reader, const char *piece, std::size_t bytes);
  void (*freeReader)(void *reader);
  /// Keyed BLAKE2b, 32 bytes; the key is made of a secret of any length.
  void (*sign)(unsigned char *out, const char *secret, std::size_t secretBytes, const char *data, std::size_t bytes);
  bool (*same)(const unsigned char *a, const unsigned char *b); ///< 32 bytes, in a time that says nothing of them
};

} // extern "C"

namespace kiln::cache {
inline constexpr std::uint32_t redisTableVersion = 1;
inline constexpr std::size_t signatureBytes = 32;
} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_REMOTE_REDISLIBRARY_H
