//===- BulkReduce.h - Element-wise reductions of bulk copies --------------===//
//
// What cp.reduce.async.bulk does to each element: to = to op from.  Integers of global memory change atomically, since
// blocks on other host threads may reduce into them too; kernels with floating-point reductions run on one thread.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_BULKREDUCE_H
#define KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_BULKREDUCE_H

#include "compiler/target/TensorMap.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kiln::emulator {

enum class ReduceOp : std::uint8_t { None, Add, Min, Max, Inc, Dec, And, Or, Xor };
/// Bit strings count as unsigned.
enum class ReduceType : std::uint8_t { U32, S32, U64, S64, F16, Bf16, F32, F32Ftz, F64 };

/// Reduces `bytes` bytes, whole elements.
using Combine = void (*)(std::byte *to, const std::byte *from, std::uint32_t bytes);

/// nullptr: there is no such reduction.
Combine combineOf(ReduceOp op, ReduceType type);
/// The same for elements of a tensor map.
Combine combineOf(ReduceOp op, TensorMapType type);

/// "add", ...; None if no reduction has the name.
ReduceOp reduceOpOf(std::string_view name);
std::string_view reduceOpName(ReduceOp op);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_BULKREDUCE_H
