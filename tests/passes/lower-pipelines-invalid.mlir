// RUN: kiln-opt %s --kiln-lower-pipelines -split-input-file -verify-diagnostics

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @full(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !p2
  %a, %b = tile_gpu.acquire %p : !p2
  %c = tile_gpu.commit %a : !p2
  %d, %e = tile_gpu.acquire %c : !p2
  %f = tile_gpu.commit %d : !p2
  // expected-error @+1 {{finds no free slot: of 2, 0 acquired, 2 committed, 0 waited for; release one before, or give the pipeline more}}
  %g, %h = tile_gpu.acquire %f : !p2
  %i = tile_gpu.commit %g : !p2
  tile_gpu.drain %i : !p2
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @twice(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !p3
  %a, %b = tile_gpu.acquire %p : !p3
  // expected-error @+1 {{takes a second slot before the first is committed}}
  %d, %e = tile_gpu.acquire %a : !p3
  tile_gpu.drain %d : !p3
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @nothing_committed(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !p3
  // expected-error @+1 {{commits no slot}}
  %a = tile_gpu.commit %p : !p3
  tile_gpu.drain %a : !p3
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @never_committed(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !p3
  // expected-error @+1 {{waits for a slot that is never committed}}
  %a, %b = tile_gpu.wait %p : !p3
  tile_gpu.drain %a : !p3
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @nothing_released(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !p3
  // expected-error @+1 {{releases no slot}}
  %a = tile_gpu.release %p : !p3
  tile_gpu.drain %a : !p3
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @looks(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !p3
  // expected-error @+1 {{looks at a slot that was not waited for: name one by `at`}}
  %b = tile_gpu.slots %p : !p3
  tile_gpu.drain %p : !p3
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @half_acquired(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !p3
  %a, %b = tile_gpu.acquire %p : !p3
  // expected-error @+1 {{ends a pipeline of which a slot was acquired and not committed}}
  tile_gpu.drain %a : !p3
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @no_end(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !p3
  %a, %b = tile_gpu.acquire %p : !p3
  // expected-error @+1 {{this pipeline does not end, with 0 acquired, 1 committed, 0 waited for: tile_gpu.drain it, or carry it on}}
  %c = tile_gpu.commit %a : !p3
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @forked(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-note @+1 {{each state is used once}}
  %p = tile_gpu.pipeline : !p3
  %a, %b = tile_gpu.acquire %p : !p3
  %c = tile_gpu.commit %a : !p3
  // expected-error @+1 {{takes the state of a pipeline that went on somewhere else}}
  %d, %e = tile_gpu.acquire %p : !p3
  tile_gpu.drain %c : !p3
  tile_gpu.drain %d : !p3
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @every_round(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-note @+1 {{each state is used once}}
  %p = tile_gpu.pipeline : !p3
  scf.for %i = %c0 to %n step %c1 : i32 {
    // expected-error @+1 {{or that a loop around it does not carry}}
    %a, %b = tile_gpu.acquire %p : !p3
    %c = tile_gpu.commit %a : !p3
    tile_gpu.drain %c : !p3
  }
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @keeps_one(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !p3
  %q = scf.for %i = %c0 to %n step %c1 iter_args(%s = %p) -> (!p3) : i32 {
    %a, %b = tile_gpu.acquire %s : !p3
    %c = tile_gpu.commit %a : !p3
    // expected-error @+1 {{a round of this loop ends with a pipeline in another state than it began with: 0 acquired, 1 committed, 0 waited for, not 0 acquired, 0 committed, 0 waited for}}
    scf.yield %c : !p3
  }
  tile_gpu.drain %q : !p3
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @one_side(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !p3
  %q = scf.if %k -> (!p3) {
    %a, %b = tile_gpu.acquire %p : !p3
    %c = tile_gpu.commit %a : !p3
    scf.yield %c : !p3
  } else {
    // expected-error @+1 {{this side of a conditional ends with a pipeline in another state than the other side}}
    scf.yield %p : !p3
  }
  tile_gpu.drain %q : !p3
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @swapped(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !p3
  %o = tile_gpu.pipeline : !p3
  %q:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %p, %t = %o) -> (!p3, !p3) : i32 {
    // expected-error @+1 {{with a pipeline in another state than it began with: another pipeline}}
    scf.yield %t, %s : !p3, !p3
  }
  tile_gpu.drain %q#0 : !p3
  tile_gpu.drain %q#1 : !p3
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @lost_inside(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    // expected-error @+1 {{this pipeline does not end}}
    %p = tile_gpu.pipeline : !p3
  }
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @while(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !p3
  // expected-error @+1 {{'scf.while' takes or gives the state of a pipeline: only scf.for and scf.if carry one}}
  %q = scf.while (%s = %p) : (!p3) -> !p3 {
    scf.condition(%k) %s : !p3
  } do {
  ^bb0(%s: !p3):
    scf.yield %s : !p3
  }
  tile_gpu.drain %q : !p3
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @drained_in_one_side(%n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-note @+1 {{each state is used once}}
  %p = tile_gpu.pipeline : !p3
  scf.if %k {
    tile_gpu.drain %p : !p3
  }
  // expected-error @+1 {{takes the state of a pipeline that went on somewhere else}}
  tile_gpu.drain %p : !p3
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
// expected-note @+1 {{each state is used once}}
func.func @argument(%p: !p3) {
  %other = tile_gpu.pipeline : !p3
  tile_gpu.drain %other : !p3
  // expected-error @+1 {{takes the state of a pipeline that is not known here}}
  tile_gpu.drain %p : !p3
  return
}
