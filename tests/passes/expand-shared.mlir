// RUN: kiln-opt %s --kiln-expand-shared | FileCheck %s
// RUN: kiln-opt %s --kiln-expand-shared=scratch-bytes=2048 | FileCheck %s --check-prefix=SMALL

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#wide = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#vec = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
#copies = #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
#quad = #tile_gpu.linear<lane=[[4],[8],[16],[1],[2]], warp=[[32],[64]], shape=[128]>

module attributes {tile_gpu.target = "sm_80"} {

// A conversion across warps: scratch, a store, a load.  In a small scratch several times.
// CHECK-LABEL: @convert
// CHECK-NEXT: %[[S:.*]] = tile_gpu.local_alloc : !tile_gpu.scratch<8192>
// CHECK-NEXT: %[[Y:.*]] = ub.poison
// CHECK-NEXT: tile_gpu.exchange_store %{{.*}}, %[[S]] {pass = 0 : i32}
// CHECK-NEXT: %[[R:.*]] = tile_gpu.exchange_load %[[S]], %[[Y]] {pass = 0 : i32}
// CHECK-NEXT: return %[[R]]
// SMALL-LABEL: @convert
// SMALL: tile_gpu.local_alloc : !tile_gpu.scratch<2048>
// SMALL: exchange_store {{.*}} {pass = 3 : i32}
// SMALL: exchange_load {{.*}} {pass = 3 : i32}
// SMALL-NOT: exchange
// SMALL: return
func.func @convert(%x: tensor<64x32xf32, #row>) -> tensor<64x32xf32, #col> {
  %y = tile_gpu.convert_layout %x : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>
  return %y : tensor<64x32xf32, #col>
}

// One inside the warps stays.
// CHECK-LABEL: @shuffled
// CHECK-NEXT: tile_gpu.convert_layout
// CHECK-NEXT: return
func.func @shuffled(%x: tensor<128xf32, #copies>) -> tensor<128xf32, #quad> {
  %y = tile_gpu.convert_layout %x : tensor<128xf32, #copies> to tensor<128xf32, #quad>
  return %y : tensor<128xf32, #quad>
}

// Odd extents: three slabs in one round, or one slab a round.
// CHECK-LABEL: @three
// CHECK: local_alloc : !tile_gpu.scratch<24576>
// CHECK: exchange_store
// CHECK-NOT: exchange_store
// CHECK: return
func.func @three(%x: tensor<64x96xf32, #row>) -> tensor<64x96xf32, #col> {
  %y = tile_gpu.convert_layout %x : tensor<64x96xf32, #row> to tensor<64x96xf32, #col>
  return %y : tensor<64x96xf32, #col>
}

// A reduction across warps: in the warps, exchanged, in each thread.
// CHECK-LABEL: @sum
// CHECK-NEXT: %[[P:.*]] = tile_gpu.reduce_partial(%{{.*}}) {axis = 0 : i32} : tensor<512xf32, {{.*}}> to tensor<4xf32, {{.*}}> {
// CHECK: tile_gpu.yield
// CHECK: %[[S:.*]] = tile_gpu.local_alloc : !tile_gpu.scratch<16>
// CHECK: tile_gpu.exchange_store %[[P]], %[[S]]
// CHECK: %[[L:.*]] = tile_gpu.exchange_load %[[S]]
// CHECK: %[[R:.*]] = tile.reduce(%[[L]]) {axis = 0 : i32} : tensor<4xf32, {{.*}}> to f32
// CHECK: tile.yield
// CHECK: return %[[R]]
func.func @sum(%x: tensor<512xf32, #vec>) -> f32 {
  %s = tile.reduce(%x) {axis = 0 : i32} : tensor<512xf32, #vec> to f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  return %s : f32
}

// Two operands are exchanged one after the other.
// CHECK-LABEL: @argmax
// CHECK: %{{.*}}:2 = tile_gpu.reduce_partial(%{{.*}}, %{{.*}})
// CHECK-COUNT-2: tile_gpu.local_alloc
// CHECK: tile.reduce(%{{.*}}, %{{.*}})
func.func @argmax(%x: tensor<512xf32, #vec>, %i: tensor<512xi32, #vec>) -> (f32, i32) {
  %v, %w = tile.reduce(%x, %i) {axis = 0 : i32} : tensor<512xf32, #vec>, tensor<512xi32, #vec> to f32, i32 {
  ^bb0(%a: f32, %ia: i32, %b: f32, %ib: i32):
    %g = arith.cmpf ogt, %a, %b : f32
    %m = arith.select %g, %a, %b : f32
    %n = arith.select %g, %ia, %ib : i32
    tile.yield %m, %n : f32, i32
  }
  return %v, %w : f32, i32
}

// Rows stay in their warps: nothing to do.
// CHECK-LABEL: @rows
// CHECK-NEXT: tile.reduce
// CHECK-NOT: local_alloc
// CHECK: return
func.func @rows(%x: tensor<64x32xf32, #row>) -> tensor<64xf32, #tile_gpu.slice<dim=1, parent=blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>>> {
  %s = tile.reduce(%x) {axis = 1 : i32} : tensor<64x32xf32, #row> to tensor<64xf32, #tile_gpu.slice<dim=1, parent=blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>>> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  return %s : tensor<64xf32, #tile_gpu.slice<dim=1, parent=blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>>>
}

// A result in another layout is converted after the reduction.
// CHECK-LABEL: @rows_elsewhere
// CHECK-NEXT: %[[R:.*]] = tile.reduce
// CHECK: exchange_store %[[R]]
func.func @rows_elsewhere(%x: tensor<64x32xf32, #row>) -> tensor<64xf32, #vec> {
  %s = tile.reduce(%x) {axis = 1 : i32} : tensor<64x32xf32, #row> to tensor<64xf32, #vec> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  return %s : tensor<64xf32, #vec>
}

// Scans: runs and totals in each warp, totals exchanged, runs combined with them.
// CHECK-LABEL: @scan
// CHECK-NEXT: %[[P:.*]]:2 = tile_gpu.scan_partial(%{{.*}}) {axis = 0 : i32, reverse}
// CHECK: tile_gpu.exchange_store %[[P]]#1
// CHECK: %[[T:.*]] = tile_gpu.exchange_load
// CHECK: tile_gpu.scan_apply(%[[P]]#0, %[[T]]) {axis = 0 : i32, reverse}
func.func @scan(%x: tensor<1536xf32, #vec>) -> tensor<1536xf32, #vec> {
  %s = tile.scan(%x) {axis = 0 : i32, reverse} : tensor<1536xf32, #vec> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  return %s : tensor<1536xf32, #vec>
}

// Columns in many pieces: what comes before each is computed once, and each thread gets its own.
// CHECK-LABEL: @columns
// CHECK-NEXT: %[[P:.*]]:2 = tile_gpu.scan_partial(%{{.*}}) {axis = 0 : i32} : tensor<64x64xf32, #{{.*}}> to tensor<64x64xf32, #{{.*}}>, tensor<64x16xf32, #[[PARTS:.*]]> {
// CHECK: tile_gpu.exchange_store %[[P]]#1
// CHECK: %[[T:.*]] = tile_gpu.exchange_load
// CHECK: %[[B:.*]] = tile_gpu.scan_before(%[[T]]) : tensor<64x16xf32,
// CHECK: tile_gpu.exchange_store %[[B]]
// CHECK: %[[R:.*]] = tile_gpu.exchange_load {{.*}} to tensor<64x16xf32, #[[PARTS]]>
// CHECK: tile_gpu.scan_apply(%[[P]]#0, %[[R]]) {axis = 0 : i32, before}
func.func @columns(%x: tensor<64x64xf32, #wide>) -> tensor<64x64xf32, #wide> {
  %s = tile.scan(%x) {axis = 0 : i32} : tensor<64x64xf32, #wide> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  return %s : tensor<64x64xf32, #wide>
}

// CHECK-LABEL: @gather
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<512xf32
// CHECK-NEXT: tile_gpu.local_store %{{.*}}, %[[B]]
// CHECK-NEXT: tile_gpu.gather_shared %[[B]][%{{.*}}] {axis = 0 : i32}
func.func @gather(%x: tensor<512xf32, #vec>, %i: tensor<128xi32, #vec>) -> tensor<128xf32, #vec> {
  %g = tile.gather %x[%i] {axis = 0 : i32} : tensor<512xf32, #vec>, tensor<128xi32, #vec>
  return %g : tensor<128xf32, #vec>
}

// What a loop only reads is stored once, before the outermost such loop; what a round makes, in that round.
// CHECK-LABEL: @gather_in_loops
// CHECK: %[[B:.*]] = tile_gpu.local_alloc
// CHECK-NEXT: tile_gpu.local_store %arg0, %[[B]]
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NEXT: %[[G:.*]] = tile_gpu.gather_shared %[[B]]
// CHECK-NEXT: %[[C:.*]] = tile_gpu.local_alloc
// CHECK-NEXT: tile_gpu.local_store %[[G]], %[[C]]
// CHECK-NEXT: tile_gpu.gather_shared %[[C]]
func.func @gather_in_loops(%x: tensor<512xf32, #vec>, %i: tensor<128xi32, #vec>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %j = %zero to %n step %one : i32 {
    scf.for %k = %zero to %n step %one : i32 {
      %g = tile.gather %x[%i] {axis = 0 : i32} : tensor<512xf32, #vec>, tensor<128xi32, #vec>
      %h = tile.gather %g[%i] {axis = 0 : i32} : tensor<128xf32, #vec>, tensor<128xi32, #vec>
      tile.print "h" %h : tensor<128xf32, #vec>
    }
  }
  return
}

// One buffer for all that read the same; none for long where there is no room for what else is alive meanwhile.
// CHECK-LABEL: @gathers_of_one_source
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<512xf32
// CHECK-NOT: tile_gpu.local_alloc
// CHECK: scf.for
// CHECK-NEXT: tile_gpu.gather_shared %[[B]]
// CHECK-NEXT: tile_gpu.gather_shared %[[B]]
// CHECK: tile_gpu.local_alloc : !tile_gpu.buffer<32768xf32
// CHECK-NEXT: tile_gpu.local_store
// CHECK-NEXT: tile_gpu.gather_shared
func.func @gathers_of_one_source(%x: tensor<512xf32, #vec>, %large: tensor<32768xf32, #vec>,
                                 %i: tensor<128xi32, #vec>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %j = %zero to %n step %one : i32 {
    %g = tile.gather %x[%i] {axis = 0 : i32} : tensor<512xf32, #vec>, tensor<128xi32, #vec>
    %h = tile.gather %x[%i] {axis = 0 : i32} : tensor<512xf32, #vec>, tensor<128xi32, #vec>
    %k = tile.gather %large[%i] {axis = 0 : i32} : tensor<32768xf32, #vec>, tensor<128xi32, #vec>
    tile.print "g" %g : tensor<128xf32, #vec>
    tile.print "h" %h : tensor<128xf32, #vec>
    tile.print "k" %k : tensor<128xf32, #vec>
  }
  return
}

// Old values that other warps need go through a buffer; unused ones do not.
// CHECK-LABEL: @atomics
// CHECK: %[[O:.*]] = tile.atomic_rmw
// CHECK-NEXT: %[[B:.*]] = tile_gpu.local_alloc
// CHECK-NEXT: tile_gpu.local_store %[[O]], %[[B]]
// CHECK-NEXT: %[[A:.*]] = tile_gpu.local_load %[[B]]
// CHECK: tile.atomic_rmw
// CHECK-NEXT: return %[[A]]
func.func @atomics(%p: tensor<16x!tile.ptr<i32>, #copies>, %v: tensor<16xi32, #copies>) -> tensor<16xi32, #copies> {
  %old = tile.atomic_rmw add relaxed gpu %p, %v : tensor<16x!tile.ptr<i32>, #copies>
  %unused = tile.atomic_rmw add relaxed gpu %p, %v : tensor<16x!tile.ptr<i32>, #copies>
  return %old : tensor<16xi32, #copies>
}

// After other programs: a wait for these before it, the count of one more after it.
// CHECK-LABEL: @ordered
// CHECK-SAME: %[[P:[a-z0-9]*]]: tensor
// CHECK: tile_gpu.await %[[N:.*]] of %[[C:.*]] for %[[P]] : <i32>, tensor<16x!tile.ptr<i32>
// CHECK-NEXT: tile.atomic_rmw add relaxed gpu %[[P]], %{{[a-z0-9]*}} : tensor
// CHECK: %[[IS:.*]] = arith.cmpi sge, %[[N]], %
// CHECK: tile_gpu.count %[[C]] if %[[IS]] for %[[P]]
func.func @ordered(%p: tensor<16x!tile.ptr<i32>, #copies>, %v: tensor<16xi32, #copies>, %c: !tile.ptr<i32>, %n: i32) {
  %unused = tile.atomic_rmw add relaxed gpu %p, %v after %n of %c : tensor<16x!tile.ptr<i32>, #copies>
  return
}

// CHECK-LABEL: @scalar_atomic
// CHECK: %[[O:.*]] = tile.atomic_rmw
// CHECK-NEXT: %[[T:.*]] = tile.splat %[[O]]
// CHECK: tile_gpu.local_store %[[T]]
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: %[[R:.*]] = tile_gpu.local_scalar
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: return %[[R]]
func.func @scalar_atomic(%p: !tile.ptr<i32>, %v: i32) -> i32 {
  %old = tile.atomic_rmw add relaxed gpu %p, %v : !tile.ptr<i32>
  return %old : i32
}

// In a loop those that only copy need not come by.
// CHECK-LABEL: @scalar_atomic_in_loop
// CHECK: tile_gpu.local_store
// CHECK: %[[L:.*]] = tile_gpu.local_load
// CHECK: %[[R:.*]] = tile.reduce(%[[L]])
// CHECK-NOT: tile_gpu.barrier
// CHECK: scf.yield %[[R]]
func.func @scalar_atomic_in_loop(%p: !tile.ptr<i32>, %v: i32) -> i32 {
  %last = scf.for %i = %v to %v step %v iter_args(%x = %v) -> i32 : i32 {
    %old = tile.atomic_rmw add relaxed gpu %p, %v : !tile.ptr<i32>
    scf.yield %old : i32
  }
  return %last : i32
}
}
