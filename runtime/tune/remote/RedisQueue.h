//===- RedisQueue.h - Workers that come and go, through a Redis server --------===//
//
// The sweep puts requests into a list; a worker takes one, holds a lease on it that expires unless it is renewed, and
// leaves an answer.  A lease that has been gone for `silence` seconds says that the worker was lost; since only the
// server says so, that never becomes a result.  Requests and answers are signed with a secret (Signer.h) and name the
// request that they belong to: a server that lies can delay or end a sweep or a worker and choose who measures, and
// never change what a worker runs or what it has measured.  A server that is silent for `silence` seconds ends both
// with a failure, and one that refuses a command for good does at once.
//
// Keys, all of which expire: kiln:tune:1:QUEUE:waiting, a list of numbers of requests; kiln:tune:1:QUEUE:to:WORKER, of
// those for one worker; kiln:tune:1:QUEUE:NUMBER:request, :lease (the worker's name) and :answer.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_REMOTE_REDISQUEUE_H
#define KILN_RUNTIME_TUNE_REMOTE_REDISQUEUE_H

#include "runtime/cache/remote/RedisLibrary.h"
#include "runtime/cache/remote/Signer.h"
#include "runtime/tune/remote/Carrier.h"
#include "runtime/tune/remote/QueueAddress.h"

#include <memory>

namespace kiln::tune {

struct QueueOptions {
  QueueAddress address;
  std::string secret;
  const KilnRedisTable *library = nullptr;           ///< from openRedisLibrary()
  double silence = 15;                               ///< of a server or a worker, in seconds
  const std::atomic<bool> *interrupted = nullptr;    ///< ends what waits
  std::function<void(const std::string &)> say = {}; ///< a line; from any thread
};

/// The sweep's side.  Asks the server once: fails if it does not answer.
Result<std::unique_ptr<Carrier>> openRedisQueue(QueueOptions options);

/// A worker's side: answers requests until it is interrupted, or for `idle` seconds there was none (0: no limit).
/// `worker`: a name that no other has.
Status serveRedisQueue(QueueOptions options, const std::string &worker, double idle, const Answer &answer);

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_REMOTE_REDISQUEUE_H
