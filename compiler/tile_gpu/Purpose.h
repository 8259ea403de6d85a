//===- Purpose.h - What lowering made an instruction for ----------------------===//
//
// Passes after the lowering (compiler/lowering/SinkLoads.cpp, compiler/codegen) care what an instruction is for, not
// what it is called.  Lowering says so in a discardable attribute of the LLVM or NVVM operation, which the translation
// to LLVM IR keeps as an attribute of the call (compiler/codegen/Purposes.h).  A kernel that is given at stage llvm may
// have the attribute too; without it such passes leave its code as it is.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_PURPOSE_H
#define KILN_TILE_GPU_PURPOSE_H

#include "llvm/ADT/StringRef.h"

namespace kiln::tile_gpu {

/// Of an operation of the LLVM or NVVM dialect: one of the words below.
constexpr llvm::StringLiteral purposeAttr = "tile_gpu.purpose";

namespace purpose {
/// A product of the matrix unit on registers.
constexpr llvm::StringLiteral product = "product";
/// An asynchronous copy of a piece that lies inside its tensor.
constexpr llvm::StringLiteral wholeCopy = "whole_copy";
/// An asynchronous copy that is told how many of its bytes to read.
constexpr llvm::StringLiteral partialCopy = "partial_copy";
} // namespace purpose

} // namespace kiln::tile_gpu

#endif // KILN_TILE_GPU_PURPOSE_H
