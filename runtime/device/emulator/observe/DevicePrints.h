//===- DevicePrints.h - What kernels print of tiles, in order -------------===//
//
// A print of a tile (tile.print) is one line an element, each from the lane that holds it: on a GPU in any order.  Here
// the lines of a block are kept until it ends, and come out print by print, in the order in which prints were met, each
// print's lines by coordinates.  Other text that a kernel prints is not kept.
//
// A line is one of a print if its format begins with "program %u,%u,%u ".  Lines of one format and source line are of
// one print; the second time that an element prints begins the next one (a loop's next round, another value of the same
// print).
//
// A launch with a directory for them writes dumped tiles (support/TileDump.h) instead of printing them, each to
// DIR/KERNEL.NAME.X_Y_Z.npy, of program (X, Y, Z), and ".ROUND" before ".npy" from the second time on.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_OBSERVE_DEVICEPRINTS_H
#define KILN_RUNTIME_DEVICE_EMULATOR_OBSERVE_DEVICEPRINTS_H

#include "runtime/device/emulator/execute/Executor.h"

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace kiln::emulator {

/// Of a block.
class DevicePrints {
public:
  explicit DevicePrints(Worker &worker) : worker(worker) {}
  ~DevicePrints() { flush(); } // of a block that did not come to its end
  DevicePrints(const DevicePrints &) = delete;
  DevicePrints &operator=(const DevicePrints &) = delete;

  static bool isPrint(std::string_view format) { return format.starts_with("program %u,%u,%u "); }
  /// The line that `format` became, of the source line.
  void add(std::string_view format, std::uint32_t file, std::uint32_t line, std::string text);
  /// Prints or writes everything that was added.
  void flush();

private:
  struct Line {
    std::vector<std::uint64_t> at; ///< coordinates
    std::string text;
  };
  struct Print {
    std::vector<Line> lines;
  };
  using Key = std::tuple<std::string, std::uint32_t, std::uint32_t>; ///< format, file, line
  struct Series {
    std::map<std::vector<std::uint64_t>, std::size_t> times; ///< how often an element has printed
    std::vector<std::size_t> prints;                         ///< by time
  };
  static std::vector<std::uint64_t> coordinates(std::string_view text);
  Status writeTile(const Print &print, unsigned round);

  Worker &worker;
  std::map<Key, Series> series;
  std::vector<Print> prints;              ///< in the order in which they began
  std::map<std::string, unsigned> rounds; ///< of dumped tiles, by file name
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_OBSERVE_DEVICEPRINTS_H
