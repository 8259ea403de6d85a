// RUN: kiln-opt %s --kiln-lower-tiles | FileCheck %s

// One thread counts: the first of all, or the elected one, which asks nobody else's number.
// CHECK-LABEL: @counts
// CHECK: %[[NUMBER:.*]] = arith.andi %{{.*}}, %c127_i32
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[NUMBER]], %{{.*}} : i32
// CHECK: %[[LANE:.*]] = nvvm.elect.sync
// CHECK: %[[ELECTED:.*]] = arith.andi %{{.*}}, %[[LANE]]
// CHECK: %[[IS:.*]] = arith.cmpi sgt
// CHECK-NEXT: scf.if %[[FIRST]] {
// CHECK-NEXT: scf.if %[[IS]] {
// CHECK: "red.release.gpu.global.add.u32 [$0], $1;"
// CHECK: scf.if %[[ELECTED]] {
// CHECK-NEXT: {{.*}}"ld.relaxed.gpu.global.b32 $0, [$1];"
// CHECK-NEXT: {{.*}}"fence.acq_rel.gpu;"
// CHECK-NEXT: scf.if %[[IS]] {
// CHECK: "red.relaxed.gpu.global.add.u32 [$0], $1;"
// CHECK: scf.while
// CHECK: "ld.acquire.gpu.global.b32 $0, [$1];"
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @counts(%p: !tile.ptr<f32>, %count: !tile.ptr<i32>, %n: i32) attributes {tile.num_warps = 4 : i32, tile.kernel} {
    %c0 = arith.constant 0 : i32
    %is = arith.cmpi sgt, %n, %c0 : i32
    tile_gpu.count %count if %is for %p : !tile.ptr<i32>, !tile.ptr<f32>
    tile_gpu.elected {
      tile_gpu.count %count if %is await %n of %count for %p : !tile.ptr<i32>, !tile.ptr<f32>, !tile.ptr<i32>
    }
    return
  }
}
