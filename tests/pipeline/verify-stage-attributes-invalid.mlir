// RUN: kiln-opt %s --split-input-file --verify-diagnostics --kiln-verify-stage=stage=tile

// LLVM's translation reads these and fails without a word.
// expected-error @+1 {{the attribute 'nvvm.maxnreg' has no place in a kernel: attributes are those of tile and tile_gpu}}
module attributes {nvvm.maxnreg = 32 : i32} {
}

// -----

// expected-error @+1 {{the attribute 'nvvm.cluster_dim' has no place in a kernel}}
func.func @function() attributes {tile.kernel, nvvm.cluster_dim = array<i32: 2>} {
  return
}

// -----

// expected-error @+1 {{the attribute 'llvm.inreg' has no place in a kernel}}
func.func @argument(%x: i32 {llvm.inreg}) attributes {tile.kernel} {
  return
}
