// RUN: not kiln-opt %s --emit-ptx 2>&1 | FileCheck %s
// RUN: not kiln-opt %s --kiln-stage-tile=target=sm_80 --emit-ptx 2>&1 | FileCheck %s --check-prefix=STAGE

// CHECK: error: the module names no target
// STAGE: error:
func.func @nothing() attributes {tile.kernel} {
  return
}
