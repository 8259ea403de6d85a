// RUN: kiln-opt %s --split-input-file --verify-diagnostics --kiln-stage-tile=target=sm_80

// expected-error @+1 {{kernel 'k' has no body}}
func.func private @k(%x: !tile.ptr<f32>) attributes {tile.kernel}
