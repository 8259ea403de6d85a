//===- JudgedAccess.h - Which threads touch which bytes, element by element --===//
//
// What the tests of barriers compare with.  Slow, and without any of the compiler's ways to see it faster.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_BARRIERS_JUDGEDACCESS_H
#define KILN_TESTS_BARRIERS_JUDGEDACCESS_H

#include "compiler/tile_gpu/TileGpu.h"

#include <map>

namespace kiln::test {

/// Who touches a byte: warps and lanes.
struct Threads {
  std::uint32_t warps = 0, lanes = 0;
};
using Footprint = std::map<std::uint64_t, Threads>;

struct JudgedAccess {
  bool write = false;
  Footprint bytes;
};

/// Of a local_store, a local_load or an asynchronous copy to the buffer of this number: element by element from the
/// layouts.  Owners write, every copy reads.
JudgedAccess judged(mlir::Operation *op, std::int64_t slot);

/// 0 nothing, 1 a barrier of the warp, 2 one of the block is needed between.
int need(const JudgedAccess &a, const JudgedAccess &b);

/// Some byte is touched by both.
bool overlap(const JudgedAccess &a, const JudgedAccess &b);

} // namespace kiln::test

#endif // KILN_TESTS_BARRIERS_JUDGEDACCESS_H
