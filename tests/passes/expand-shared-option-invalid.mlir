// RUN: kiln-opt %s -verify-diagnostics --kiln-expand-shared=scratch-bytes=100
// expected-error @+1 {{scratch-bytes is 100: 1024 to 1048576}}
module attributes {tile_gpu.target = "sm_80"} {}
