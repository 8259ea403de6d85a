//===- StreamGraph.h - What a stream is given, recorded once and replayed -----------===//
//
// A CUDA graph, by the driver's own functions.  The emulator has none: there `replay` makes the calls again.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_STREAMGRAPH_H
#define KILN_TESTS_KERNELS_STREAMGRAPH_H

#include "kiln/Device.h"

#include <functional>

namespace kiln::test {

class StreamGraph {
public:
  /// Records what `calls` gives to the stream; on a GPU it is not run.
  StreamGraph(Device &device, Stream &stream, std::function<Status(Stream &)> calls);
  ~StreamGraph();
  StreamGraph(const StreamGraph &) = delete;
  StreamGraph &operator=(const StreamGraph &) = delete;

  /// Of the recording.
  const Status &status() const { return verdict; }
  /// Runs it, to its end.
  Status replay();

private:
  Stream &stream;
  std::function<Status(Stream &)> calls;
  Status verdict;
  void *driver = nullptr, *graph = nullptr, *executable = nullptr;
};

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_STREAMGRAPH_H
