// RUN: kiln-opt %s --kiln-count-groups | FileCheck %s

module attributes {tile_gpu.target = "sm_80"} {

// One after the other; no token is for all; of two tokens the younger one counts.
// CHECK-LABEL: @straight
// CHECK: async_wait %0 {groups = 2 : i32}
// CHECK: async_wait %1 {groups = 1 : i32}
// CHECK: async_wait %0, %1 {groups = 1 : i32}
// CHECK: async_wait %2 {groups = 0 : i32}
// CHECK: async_wait all {groups = 0 : i32}
func.func @straight() {
  %a = tile_gpu.async_commit
  %b = tile_gpu.async_commit
  %c = tile_gpu.async_commit
  tile_gpu.async_wait %a
  tile_gpu.async_wait %b
  tile_gpu.async_wait %a, %b
  tile_gpu.async_wait %c
  tile_gpu.async_wait all
  return
}

// What the author says stays.
// CHECK-LABEL: @stays
// CHECK: async_wait %0 {groups = 5 : i32}
func.func @stays() {
  %a = tile_gpu.async_commit
  tile_gpu.async_wait %a {groups = 5 : i32}
  return
}

// A token from elsewhere may be of the last group.
// CHECK-LABEL: @elsewhere
// CHECK: async_wait %arg0 {groups = 0 : i32}
func.func @elsewhere(%t: !tile_gpu.token) {
  %a = tile_gpu.async_commit
  tile_gpu.async_wait %t
  return
}

// Two ways, one with a commit: the shorter one counts.
// CHECK-LABEL: @conditional
// CHECK: async_wait %0 {groups = 1 : i32}
// CHECK: async_wait %1 {groups = 0 : i32}
func.func @conditional(%p: i1) {
  %a = tile_gpu.async_commit
  %r = scf.if %p -> !tile_gpu.token {
    %b = tile_gpu.async_commit
    %c = tile_gpu.async_commit
    scf.yield %b : !tile_gpu.token
  } else {
    %d = tile_gpu.async_commit
    scf.yield %d : !tile_gpu.token
  }
  tile_gpu.async_wait %a
  tile_gpu.async_wait %r
  return
}

// Four stages: a round waits for the oldest of three groups.  After the loop the tokens are as old as in it.
// CHECK-LABEL: @pipelined
// CHECK: scf.for
// CHECK: async_wait %{{.*}} {groups = 2 : i32}
// CHECK: scf.yield
// CHECK: async_wait %{{.*}}#1 {groups = 1 : i32}
func.func @pipelined(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t0 = tile_gpu.async_commit
  %t1 = tile_gpu.async_commit
  %t2 = tile_gpu.async_commit
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t0, %b = %t1, %c = %t2)
      -> (!tile_gpu.token, !tile_gpu.token, !tile_gpu.token) : i32 {
    tile_gpu.async_wait %a
    %d = tile_gpu.async_commit
    scf.yield %b, %c, %d : !tile_gpu.token, !tile_gpu.token, !tile_gpu.token
  }
  tile_gpu.async_wait %r#1
  return
}

// The first round would allow one more than the later ones; a loop within a loop.
// CHECK-LABEL: @falls
// CHECK: scf.for
// CHECK: scf.for
// CHECK: async_wait %{{.*}} {groups = 0 : i32}
func.func @falls(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = tile_gpu.async_commit
  %u = tile_gpu.async_commit
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> !tile_gpu.token : i32 {
    %q = scf.for %j = %c0 to %n step %c1 iter_args(%b = %a) -> !tile_gpu.token : i32 {
      tile_gpu.async_wait %b
      %d = tile_gpu.async_commit
      scf.yield %d : !tile_gpu.token
    }
    scf.yield %q : !tile_gpu.token
  }
  return
}

// A while loop hands on what its condition names.
// CHECK-LABEL: @while
// CHECK: async_wait %{{.*}} {groups = 1 : i32}
// CHECK: async_wait %{{.*}} {groups = 2 : i32}
// CHECK: async_wait %{{.*}}#0 {groups = 2 : i32}
func.func @while(%p: i1) {
  %t = tile_gpu.async_commit
  %u = tile_gpu.async_commit
  %r:2 = scf.while (%a = %t, %b = %u) : (!tile_gpu.token, !tile_gpu.token) -> (!tile_gpu.token, !tile_gpu.token) {
    tile_gpu.async_wait %a
    %c = tile_gpu.async_commit
    scf.condition(%p) %a, %c : !tile_gpu.token, !tile_gpu.token
  } do {
  ^bb0(%a: !tile_gpu.token, %c: !tile_gpu.token):
    tile_gpu.async_wait %a
    %d = tile_gpu.async_commit
    scf.yield %c, %d : !tile_gpu.token, !tile_gpu.token
  }
  tile_gpu.async_wait %r#0
  return
}
}
