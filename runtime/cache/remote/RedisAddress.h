//===- RedisAddress.h - Where a server is ---------------------------------===//
#ifndef KILN_RUNTIME_CACHE_REMOTE_REDISADDRESS_H
#define KILN_RUNTIME_CACHE_REMOTE_REDISADDRESS_H

#include "support/Status.h"

#include <string>
#include <string_view>

namespace kiln::cache {

struct RedisAddress {
  std::string host = {}, port = "6379";
  std::string socket = {}; ///< path of a Unix socket, instead of a host
  std::string user = {}, password = {}, database = {};

  /// Without user and password: "redis://host:6379/2", "unix:///run/redis.sock".
  std::string text() const;
  /// "host", "host:port", "[::1]:port", "redis://[user:password@]host[:port][/database]", "unix:///path".
  static Result<RedisAddress> parse(std::string_view text);
};

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_REMOTE_REDISADDRESS_H
