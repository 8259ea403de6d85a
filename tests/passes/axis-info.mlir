// RUN: kiln-opt %s --kiln-test-axis-info | FileCheck %s

// The add kernel: offsets of a program, a bounds mask, pointers in elements.
// CHECK-LABEL: @add
func.func @add(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32},
               %out: !tile.ptr<f32>, %n: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  // CHECK: tile.program_id x {facts = "c=1 v=1 k=1"}
  %pid = tile.program_id x
  // CHECK: arith.constant {facts = "c=1 v=1024 k=1"} 1024
  %block = arith.constant 1024 : i32
  // CHECK: arith.muli {{.*}} {facts = "c=1 v=1024 k=1"}
  %start = arith.muli %pid, %block : i32
  // CHECK: tile.range {{.*}} {facts = "c=1024 v=1073741824 k=1"}
  %r = tile.range 0 to 1024 : tensor<1024xi32>
  // CHECK: tile.splat {{.*}} {facts = "c=1 v=1024 k=1024"}
  %s = tile.splat %start : i32 to tensor<1024xi32>
  // CHECK: arith.addi {{.*}} {facts = "c=1024 v=1024 k=1"}
  %o = arith.addi %s, %r : tensor<1024xi32>
  %ns = tile.splat %n : i32 to tensor<1024xi32>
  // CHECK: arith.cmpi {{.*}} {facts = "c=1 v=1 k=16"}
  %m = arith.cmpi slt, %o, %ns : tensor<1024xi32>
  // CHECK: tile.splat {{.*}} {facts = "c=1 v=4 k=1024"}
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
  // CHECK: tile.addptr {{.*}} {facts = "c=1024 v=4 k=1"}
  %xp = tile.addptr %xs, %o : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %a = tile.load %xp mask %m : tensor<1024x!tile.ptr<f32>>
  %os = tile.splat %out : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
  // CHECK: tile.addptr {{.*}} {facts = "c=1024 v=1 k=1"}
  %op = tile.addptr %os, %o : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  tile.store %op, %a mask %m : tensor<1024x!tile.ptr<f32>>
  return
}
