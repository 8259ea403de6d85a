//===- Carrier.h - What brings configurations to workers elsewhere -----------===//
//
// A carrier brings a request, a text, to one of its workers and the answer back.  It knows nothing of what they say.
// Workers may be lost at any time; then it says so, and whoever asked decides whether another one gets the request.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_REMOTE_CARRIER_H
#define KILN_RUNTIME_TUNE_REMOTE_CARRIER_H

#include "support/Status.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace kiln::tune {

/// What became of a request.
struct Delivery {
  enum class End : std::uint8_t {
    Answered,
    Lost,    ///< the worker was lost while it worked on it
    NotBegun ///< the worker that was to take it did not: another one may
  } end = End::NotBegun;
  std::string worker; ///< its name; of NotBegun empty
  std::string answer;
};

/// When nobody waits any more.
struct Patience {
  std::optional<std::chrono::steady_clock::time_point> begin = {}; ///< by which a worker has begun
  const std::atomic<bool> *interrupted = nullptr;

  bool isInterrupted() const { return interrupted && interrupted->load(); }
};

class Carrier {
public:
  virtual ~Carrier() = default;
  /// How many requests can be worked on at a time, if that is known.
  virtual std::optional<unsigned> workers() const = 0;
  /// Whether a worker that it calls lost is, for sure.  Otherwise losses say nothing of what was measured.
  virtual bool knowsWhoIsLost() const { return true; }
  /// Brings a request to the worker of this name, or, if it is empty, to anyone, and waits.  From several threads.
  /// A failure says that the carrier itself does not work, or that `patience` is over (NotReady).
  virtual Result<Delivery> deliver(const std::string &request, const std::string &to, const Patience &patience) = 0;
  /// Requests of another call follow, and none of the one before is in flight: who refused that may take part again.
  virtual void beginCall() = 0;
  /// The worker refuses all requests of this call.  Fails if none is left.
  virtual Status leaveOut(const std::string &worker, const std::string &why) = 0;
};

/// A worker's side: the answer to a request.
using Answer = std::function<std::string(const std::string &request)>;

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_REMOTE_CARRIER_H
