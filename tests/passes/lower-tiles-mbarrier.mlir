// RUN: kiln-opt %s --kiln-lower-tiles --canonicalize --cse --split-input-file | FileCheck %s
// RUN: kiln-opt %s --kiln-stage-lowering --emit-ptx --split-input-file | FileCheck %s --check-prefix=PTX

// One thread of the first warp is elected where the kernel begins, once, and does alone what `elected` says; its warp
// meets after that.  What threads wrote where the mbarriers lie was written before; the copy engine sees them begin.
// CHECK-LABEL: @alone
// CHECK-SAME: %[[S:[a-z0-9]*]]: i32, %{{[a-z0-9]*}}: i32
// CHECK-DAG: %[[ALL:.*]] = arith.constant -1 : i32
// CHECK-DAG: %[[SHARED:.*]] = llvm.mlir.addressof @kiln_shared
// CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK: %[[WARP:.*]] = arith.shrui %[[TID]], %c5_i32
// CHECK-NEXT: %[[LEADER:.*]] = nvvm.elect.sync -> i1
// CHECK-NEXT: %[[FIRST:.*]] = arith.cmpi eq, %[[WARP]], %c0_i32
// CHECK-NEXT: %[[ONE:.*]] = arith.andi %[[FIRST]], %[[LEADER]]
// CHECK-NOT: nvvm.elect.sync
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT: %[[B:.*]] = llvm.getelementptr %[[SHARED]][64]
// CHECK-NEXT: scf.if %[[ONE]] {
// CHECK-NEXT: nvvm.mbarrier.init %[[B]], %c8_i32 :
// CHECK-NEXT: %[[B1:.*]] = llvm.getelementptr %[[B]][8]
// CHECK-NEXT: nvvm.mbarrier.init %[[B1]], %c8_i32 :
// CHECK-NEXT: nvvm.fence.mbarrier.init
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.bar.warp.sync %[[ALL]]
// The elected thread arrives and waits where it is.
// CHECK-NEXT: scf.if %[[ONE]] {
// CHECK-NEXT: %[[OFFSET:.*]] = arith.muli %[[S]], %c8_i32
// CHECK-NEXT: %[[AT:.*]] = llvm.getelementptr %[[B]][%[[OFFSET]]]
// CHECK-NEXT: nvvm.mbarrier.arrive %[[AT]]
// CHECK-NEXT: %[[BYTE:.*]] = llvm.ptrtoint %[[AT]]
// CHECK-NEXT: llvm.inline_asm {{.*}}mbarrier.try_wait{{.*}} %[[BYTE]], %{{.*}} : (i32, i32) -> ()
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.bar.warp.sync %[[ALL]]
// CHECK-NEXT: scf.if %[[ONE]] {
// CHECK-NEXT: nvvm.mbarrier.inval %[[B]] :
// CHECK-NEXT: %[[B2:.*]] = llvm.getelementptr %[[B]][8]
// CHECK-NEXT: nvvm.mbarrier.inval %[[B2]] :
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.bar.warp.sync %[[ALL]]
// PTX: .entry alone(
// PTX: elect.sync
// PTX: fence.proxy.async.shared::cta;
// PTX: mbarrier.init.shared.b64 {{.*}}[kiln_shared+64]
// PTX-NEXT: mbarrier.init.shared.b64 {{.*}}[kiln_shared+72]
// PTX: fence.mbarrier_init.release.cluster;
// PTX: bar.warp.sync
// PTX: mbarrier.inval.shared
module attributes {tile_gpu.target = "sm_90"} {
  func.func @alone(%s: i32, %p: i32) attributes {tile.kernel, tile.num_warps = 4 : i32, tile_gpu.shared_bytes = 80 : i32} {
    %b = tile_gpu.local_alloc {offset = 64 : i32} : !tile_gpu.mbarriers<2>
    tile_gpu.elected {
      tile_gpu.mbarrier_init %b arrivals 8 : !tile_gpu.mbarriers<2>
    }
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %b[%s] phase %p : !tile_gpu.mbarriers<2>
      tile_gpu.mbarrier_wait %b[%s] phase %p : !tile_gpu.mbarriers<2>
    }
    tile_gpu.elected {
      tile_gpu.mbarrier_invalidate %b : !tile_gpu.mbarriers<2>
    }
    return
  }
}

// -----

// Outside of it each warp arrives once, after all of its lanes, and all threads wait: in a loop, since the hardware gives
// up after a while.
// CHECK-LABEL: @together
// CHECK-SAME: %[[S:[a-z0-9]*]]: i32, %[[P:[a-z0-9]*]]: i32
// CHECK-DAG: %[[ALL:.*]] = arith.constant -1 : i32
// CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK: %[[LANE:.*]] = arith.andi %[[TID]], %c31_i32
// CHECK: %[[LANE0:.*]] = arith.cmpi eq, %[[LANE]], %c0_i32
// CHECK-NOT: nvvm.elect.sync
// CHECK: %[[OFFSET:.*]] = arith.muli %[[S]], %c8_i32
// CHECK-NEXT: %[[AT:.*]] = llvm.getelementptr %{{.*}}[%[[OFFSET]]]
// CHECK-NEXT: nvvm.bar.warp.sync %[[ALL]]
// CHECK-NEXT: scf.if %[[LANE0]] {
// CHECK-NEXT: nvvm.mbarrier.arrive %[[AT]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[BYTE:.*]] = llvm.ptrtoint %[[AT]] : !llvm.ptr<3> to i32
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "{\0A\09.reg .pred p;\0Aagain:\0A\09mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1;\0A\09@!p bra again;\0A\09}", "r,r,~{memory}" %[[BYTE]], %[[P]] : (i32, i32) -> ()
// CHECK-NEXT: return
// PTX: .entry together(
// PTX: bar.warp.sync
// PTX: mbarrier.arrive.shared.b64
// PTX: again:
// PTX-NEXT: mbarrier.try_wait.parity.shared::cta.b64 p, [%r{{[0-9]+}}], %r{{[0-9]+}};
// PTX-NEXT: @!p bra again;
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @together(%s: i32, %p: i32) attributes {tile.kernel, tile.num_warps = 4 : i32, tile_gpu.shared_bytes = 24 : i32} {
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<3>
    tile_gpu.mbarrier_arrive %b[%s] phase %p : !tile_gpu.mbarriers<3>
    tile_gpu.mbarrier_wait %b[%s] phase %p : !tile_gpu.mbarriers<3>
    return
  }
}

// -----

// A copy announces all of its bytes, then begins each box: 64 elements of a row, 64 rows, as the buffer's columns of 128
// bytes lie; the coordinate of the dimension that the buffer does not have stays.
// CHECK-LABEL: @boxes
// CHECK-SAME: %[[I:[a-z0-9]*]]: i32, %[[H:[a-z0-9]*]]: i32, %[[J:[a-z0-9]*]]: i32, %[[MAP:[a-z0-9]*]]: !llvm.ptr {
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 32768 : i32
// CHECK-DAG: %[[BASE:.*]] = llvm.mlir.addressof @kiln_shared
// CHECK: %[[BARRIERS:.*]] = llvm.getelementptr %[[BASE]][32768]
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[OFFSET:.*]] = arith.muli %[[H]], %c8_i32
// CHECK-NEXT: %[[FULL:.*]] = llvm.getelementptr %[[BARRIERS]][%[[OFFSET]]]
// CHECK-NEXT: nvvm.mbarrier.expect_tx %[[FULL]], %[[BYTES]]
// CHECK-NEXT: %[[TO:.*]] = llvm.addrspacecast %[[BASE]] : !llvm.ptr<3> to !llvm.ptr<7>
// CHECK-NEXT: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TO]], %[[MAP]], %[[FULL]], box[%[[I]], %[[H]], %[[J]]]
// CHECK-NEXT: %[[I1:.*]] = arith.addi %[[I]], %c64_i32
// CHECK-NEXT: %[[TO1:.*]] = llvm.getelementptr %[[TO]][16384]
// CHECK-NEXT: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TO1]], %[[MAP]], %[[FULL]], box[%[[I1]], %[[H]], %[[J]]]
// CHECK-NEXT: %[[J1:.*]] = arith.addi %[[J]], %c64_i32
// CHECK-NEXT: %[[TO2:.*]] = llvm.getelementptr %[[TO]][8192]
// CHECK-NEXT: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TO2]], %[[MAP]], %[[FULL]], box[%[[I]], %[[H]], %[[J1]]]
// CHECK-NEXT: %[[TO3:.*]] = llvm.getelementptr %[[TO]][24576]
// CHECK-NEXT: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TO3]], %[[MAP]], %[[FULL]], box[%[[I1]], %[[H]], %[[J1]]]
// CHECK-NEXT: }
// PTX: .entry boxes(
// PTX: mbarrier.expect_tx.relaxed.cta.shared.b64
// PTX-COUNT-4: cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
#rows = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, 4, s1), strides = ()[s0, s1] -> (s1 * 2, s1 * 8), box = [64, 1, 64], swizzle = "128B">
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @boxes(%x: !tile.ptr<bf16>, %n: i32, %i: i32, %h: i32, %j: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
      attributes {tile.kernel, tile.num_warps = 4 : i32, tile_gpu.shared_bytes = 32784 : i32} {
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<128x128xbf16, #rows>
    %full = tile_gpu.local_alloc {offset = 32768 : i32} : !tile_gpu.mbarriers<2>
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%i, %h, %j] to %b dims [2, 0] counts %full[%h] : !tile_gpu.buffer<128x128xbf16, #rows>, !tile_gpu.mbarriers<2>
    }
    return
  }
}
