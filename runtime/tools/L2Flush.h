//===- L2Flush.h - A GPU's L2 filled with something else ----------------------===//
//
// Between two launches that are timed: what the first one left in the L2 is not there for the second one.  A copy on
// the device, from and into memory twice the size of the L2; it is given to a stream and nobody waits, so that launches
// after it do not have to wait for the host.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_L2FLUSH_H
#define KILN_RUNTIME_TOOLS_L2FLUSH_H

#include "kiln/Device.h"

namespace kiln::tools {

class L2Flush {
public:
  /// Refused on the emulator, which has no caches.
  static Result<L2Flush> create(Device &device);
  Status operator()(Stream &stream) const { return to->copyFrom(*from, &stream); }

private:
  std::unique_ptr<Buffer> from, to;
};

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_L2FLUSH_H
