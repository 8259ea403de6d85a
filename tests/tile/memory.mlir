// RUN: kiln-opt %s | kiln-opt | FileCheck %s
// RUN: kiln-opt %s --mlir-print-op-generic | kiln-opt | FileCheck %s

// CHECK-LABEL: func.func @memory
func.func @memory(%p: tensor<8x!tile.ptr<f32>>, %q: !tile.ptr<i32>, %o: tensor<8xi32>, %m: tensor<8xi1>,
                  %v: tensor<8xf32>, %i: i64, %w: i32, %src: tensor<16x4xf32>, %idx: tensor<8x4xi32>) {
  // CHECK: tile.addptr %{{.*}}, %{{.*}} : tensor<8x!tile.ptr<f32>>, tensor<8xi32>
  %0 = tile.addptr %p, %o : tensor<8x!tile.ptr<f32>>, tensor<8xi32>
  // CHECK: tile.addptr %{{.*}}, %{{.*}} : !tile.ptr<i32>, i64
  %1 = tile.addptr %q, %i : !tile.ptr<i32>, i64
  // CHECK: tile.load %{{.*}} : tensor<8x!tile.ptr<f32>>
  %2 = tile.load %p : tensor<8x!tile.ptr<f32>>
  // CHECK: tile.load %{{.*}} mask %{{.*}} : tensor<8x!tile.ptr<f32>>
  %3 = tile.load %p mask %m : tensor<8x!tile.ptr<f32>>
  // CHECK: tile.load %{{.*}} mask %{{.*}} other %{{.*}} cache streaming : tensor<8x!tile.ptr<f32>>
  %4 = tile.load %p mask %m other %v cache streaming : tensor<8x!tile.ptr<f32>>
  // CHECK: tile.load %{{.*}} cache volatile : !tile.ptr<i32>
  %5 = tile.load %q cache volatile : !tile.ptr<i32>
  // CHECK: tile.store %{{.*}}, %{{.*}} : tensor<8x!tile.ptr<f32>>
  tile.store %p, %v : tensor<8x!tile.ptr<f32>>
  // CHECK: tile.store %{{.*}}, %{{.*}} mask %{{.*}} cache global : tensor<8x!tile.ptr<f32>>
  tile.store %p, %v mask %m cache global : tensor<8x!tile.ptr<f32>>
  // CHECK: tile.atomic_rmw add relaxed gpu %{{.*}}, %{{.*}} mask %{{.*}} : tensor<8x!tile.ptr<f32>>
  %6 = tile.atomic_rmw add relaxed gpu %p, %v mask %m : tensor<8x!tile.ptr<f32>>
  // CHECK: tile.atomic_rmw add relaxed gpu %{{.*}}, %{{.*}} after %{{.*}} of %{{.*}} : tensor<8x!tile.ptr<f32>>
  %10 = tile.atomic_rmw add relaxed gpu %p, %v after %w of %q : tensor<8x!tile.ptr<f32>>
  // CHECK: tile.atomic_rmw add relaxed gpu %{{.*}}, %{{.*}} mask %{{.*}} after %{{.*}} of %{{.*}} : tensor<8x!tile.ptr<f32>>
  %11 = tile.atomic_rmw add relaxed gpu %p, %v mask %m after %w of %q : tensor<8x!tile.ptr<f32>>
  // CHECK: tile.atomic_rmw xchg acq_rel sys %{{.*}}, %{{.*}} : !tile.ptr<i32>
  %7 = tile.atomic_rmw xchg acq_rel sys %q, %w : !tile.ptr<i32>
  // CHECK: tile.atomic_cas acquire cta %{{.*}}, %{{.*}}, %{{.*}} : !tile.ptr<i32>
  %8 = tile.atomic_cas acquire cta %q, %w, %w : !tile.ptr<i32>
  // CHECK: tile.gather %{{.*}}[%{{.*}}] {axis = 0 : i32} : tensor<16x4xf32>, tensor<8x4xi32>
  %9 = tile.gather %src[%idx] {axis = 0 : i32} : tensor<16x4xf32>, tensor<8x4xi32>
  return
}
