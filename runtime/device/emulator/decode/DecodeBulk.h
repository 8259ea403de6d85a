//===- DecodeBulk.h - Forms of the bulk copies ----------------------------===//
//
// Decoders of cp.async.bulk, its relatives, and of tensormap for the rows in insn/BulkCopy.cpp.  Operands go to the
// pool at Op::aux in the order of bulkSlot.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_DECODE_DECODEBULK_H
#define KILN_RUNTIME_DEVICE_EMULATOR_DECODE_DECODEBULK_H

#include "runtime/device/emulator/decode/Decoder.h"

namespace kiln::emulator {

bool decodeBulkLoad(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op);
bool decodeBulkToCluster(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op);
bool decodeBulkStore(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op);
bool decodeBulkPrefetch(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op);
bool decodeBulkCommit(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op);
bool decodeBulkWait(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op);
bool decodeTensorLoad(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op);
bool decodeTensorStore(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op);
bool decodeTensorPrefetch(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op);
bool decodeMapReplace(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op);
bool decodeMapCopy(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op);
bool decodeBulkFill(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_DECODE_DECODEBULK_H
