//===- FakeDriver.h - A CUDA driver without a GPU, for tests --------------===//
//
// kiln-fake-cuda.so exports the functions of the driver API that Kiln calls.  Memory is host memory, a launch is
// recorded and runs nothing, and any function can be told to fail.  Tests reach the state through the exported
// `fakeCuda`.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_RUNTIME_FAKEDRIVER_H
#define KILN_TESTS_RUNTIME_FAKEDRIVER_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kiln::test {

struct FakeLaunch {
  unsigned grid[3], block[3], cluster[3], sharedBytes;
  void *stream;
  std::vector<unsigned char> arguments;
  bool cooperative = false;
};

struct FakeParameter {
  std::size_t offset, bytes;
};

struct FakeCuda {
  std::map<std::string, int> failures; ///< function name -> error it returns
  int devices = 1, major = 9, minor = 0, l2Bytes = 50 << 20;
  std::string ptxLog;                                                ///< what the compiler writes to its error log
  std::vector<FakeParameter> parameters = {{0, 8}, {8, 8}, {16, 4}}; ///< of every kernel
  /// Values read: threads of a block, static shared memory, local memory, registers, dynamic shared memory.
  std::map<int, int> functionAttributes = {{0, 1024}, {1, 1024}, {3, 0}, {4, 40}, {8, 49152 - 1024}};
  std::vector<std::pair<int, int>> attributesSet;
  std::vector<FakeLaunch> launches;
  std::string image;              ///< PTX loaded last
  std::vector<std::string> calls; ///< every function called
  int contextSwitches = 0;
  void *streamContext = nullptr; ///< what cuStreamGetCtx says; nullptr: the one that is current
  void *copyStream = nullptr;    ///< of the last asynchronous copy
  int captureMode = 0;           ///< of the thread: global
  int modeAtLoad = -1;           ///< what it was when a module was loaded
  int captureStatus = 0;         ///< what cuStreamIsCapturing says
  std::map<std::uint64_t, std::size_t> allocations;
  int liveObjects = 0; ///< contexts, streams, events, modules
};

} // namespace kiln::test

#endif // KILN_TESTS_RUNTIME_FAKEDRIVER_H
