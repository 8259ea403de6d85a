//===- TuneRemote.h - A sweep's configurations, measured for others ------------===//
//
// What a sweep tells its workers of the call (Workers.h brings it), and a worker that measures what it is told.  The
// call is data: a kernel's name, the words of --with and --set, and the header of the sweep's journal.  A worker builds
// the call anew; it refuses a sweep whose header would not be its own: another compiler, another kind of device.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_TUNEREMOTE_H
#define KILN_RUNTIME_TOOLS_TUNEREMOTE_H

#include "runtime/tools/TuneWorker.h"
#include "runtime/tune/remote/RedisQueue.h"
#include "runtime/tune/remote/Workers.h"

namespace kiln::tools {

/// `request` whose --check-with is not empty.
tune::Json remoteCall(const TuneRequest &request, const tune::JournalHeader &header,
                      const std::vector<std::string> &checkWith, double seconds);

/// Answers requests on one device.  Not thread safe.
class RemoteMeasurer {
public:
  /// `run`: of the worker's command line; without a device of its own the emulator that a sweep names, or its GPU.
  explicit RemoteMeasurer(RunOptions run) : run(std::move(run)) {}

  std::string answer(const std::string &request);

private:
  Status open(const tune::Json &call);
  const RunOptions run;
  tune::Json opened; ///< the call of those below
  std::unique_ptr<TuneCall> call;
  std::unique_ptr<TuneWorker> worker;
};

/// --queue and --work: the address, the secret and the library.
Result<tune::QueueOptions> queueOptions(const std::string &address, double silence,
                                        const std::atomic<bool> *interrupted);

/// --work: each device takes requests until it is interrupted or there are none.  How many were answered.
Result<std::size_t> serveQueue(const tune::QueueOptions &options, const RunOptions &run,
                               const std::vector<std::string> &devices, double idle);

/// The GPU of a rank: one after the other of its host; "" where there is none.
std::string gpuOfRank(int localRank);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_TUNEREMOTE_H
