//===- Pass.h - What the file of one pass includes --------------------------===//
//
// The dialects that the records of Passes.td name.  The pass itself, its options and its base class, is a header of its
// own, generated from its record:
//
//   namespace kiln {
//   #include "compiler/passes/CountGroups.inc"
//
// Passes.h, with all of them, is for those who put passes in order: whatever includes it is rebuilt for each new
// record.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_PASS_H
#define KILN_PASSES_PASS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#endif // KILN_PASSES_PASS_H
