//===- BulkCopies.h - cp.async.bulk ---------------------------------------===//
//
// Copies and reductions of contiguous bytes through the async proxy, bulk groups, and the tensor forms, whose boxes are
// told by a tensor map: sections 3.3 and 3.4 of the emulator specification.  Operands: BulkTransfer.h.  Each executing
// lane issues a copy of its own.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_BULKCOPIES_H
#define KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_BULKCOPIES_H

#include "runtime/device/emulator/execute/Warp.h"

namespace kiln::emulator {

Next bulkLoad(Warp &w, const Op &op);      ///< global to shared memory of the cluster
Next bulkToCluster(Warp &w, const Op &op); ///< the block's shared memory to the cluster's; also a reduction
Next bulkStore(Warp &w, const Op &op);     ///< shared to global memory; also a reduction
Next bulkCommit(Warp &w, const Op &op);
Next bulkWait(Warp &w, const Op &op); ///< all but the newest `imm` groups

Next tensorLoad(Warp &w, const Op &op);
Next tensorStore(Warp &w, const Op &op); ///< also a reduction
Next tensorPrefetch(Warp &w, const Op &op);

/// tensormap.replace at s[0] + imm: field and dimension are aux, the value is s[1], of 64 bits if op.flags say so.
Next replaceMap(Warp &w, const Op &op);
constexpr std::uint16_t mapValue64 = 0x100;
/// tensormap.cp_fenceproxy.
Next copyMap(Warp &w, const Op &op);
/// st.bulk: s[1] zero bytes at s[0] + imm.
Next bulkFill(Warp &w, const Op &op);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_BULKCOPIES_H
