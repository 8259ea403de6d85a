// RUN: kiln-opt %s --verify-diagnostics --kiln-verify-stage=stage=shared

// expected-error @+1 {{no stage is called 'shared': tile, tile_gpu}}
module {
}
