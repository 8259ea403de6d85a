//===- QueueAddress.h - Which queue of which server --------------------------===//
#ifndef KILN_RUNTIME_TUNE_REMOTE_QUEUEADDRESS_H
#define KILN_RUNTIME_TUNE_REMOTE_QUEUEADDRESS_H

#include "runtime/cache/remote/RedisAddress.h"

namespace kiln::tune {

struct QueueAddress {
  cache::RedisAddress server;
  std::string name = "kiln";

  /// Without user and password.
  std::string text() const { return server.text() + "#" + name; }
  /// "redis://host:6379#sweep": what KILN_CACHE_SERVER takes, with the name of the queue.  The failure does not repeat
  /// the text, which may have a password.
  static Result<QueueAddress> parse(const std::string &text);
};

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_REMOTE_QUEUEADDRESS_H
