// RUN: kiln-opt %s --kiln-test-axis-info | FileCheck %s

// A multiple of 2^k divides by it whatever its sign; of what is no multiple nothing is left unless the sign is known.
// CHECK-LABEL: @division
func.func @division(%n: i32 {tile.divisibility = 16 : i32}, %m: i32, %o: i64 {tile.divisibility = 4 : i32}) attributes {tile.kernel} {
  %two = arith.constant 2 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c6 = arith.constant 6 : i32
  %zero = arith.constant 0 : i32
  // CHECK: arith.divsi {{.*}} {facts = "c=1 v=8 k=1"}
  %half = arith.divsi %n, %two : i32
  // CHECK: arith.divsi {{.*}} {facts = "c=1 v=1 k=1"}
  %one = arith.divsi %n, %c16 : i32
  // CHECK: arith.divsi {{.*}} {facts = "c=1 v=1 k=1"}
  %less = arith.divsi %n, %c32 : i32
  // CHECK: arith.divsi {{.*}} {facts = "c=1 v=1 k=1"}
  %sixth = arith.divsi %n, %c6 : i32
  // CHECK: arith.remsi {{.*}} {facts = "c=1 v=1073741824 k=1"}
  %none = arith.remsi %n, %c16 : i32
  // CHECK: arith.remsi {{.*}} {facts = "c=1 v=16 k=1"}
  %some = arith.remsi %n, %c32 : i32
  // What divides both divides the rest.
  // CHECK: arith.remsi {{.*}} {facts = "c=1 v=2 k=1"}
  %rest = arith.remsi %n, %c6 : i32
  // CHECK: arith.remui {{.*}} {facts = "c=1 v=8 k=1"}
  %rest2 = arith.remui %n, %half : i32
  // CHECK: arith.remsi {{.*}} {facts = "c=1 v=1 k=1"}
  %any = arith.remsi %m, %c16 : i32

  // Numbers that count up, of unknown sign: runs that rounding to zero would tear are none.
  %r = tile.range 0 to 64 : tensor<64xi32>
  %ns = tile.splat %n : i32 to tensor<64xi32>
  %t2 = tile.splat %two : i32 to tensor<64xi32>
  // CHECK: arith.addi {{.*}} {facts = "c=64 v=16 k=1"}
  %i = arith.addi %ns, %r : tensor<64xi32>
  // CHECK: arith.divsi {{.*}} {facts = "c=1 v=1 k=1"}
  %pairs = arith.divsi %i, %t2 : tensor<64xi32>
  // CHECK: arith.remsi {{.*}} {facts = "c=1 v=1 k=1"}
  %odd = arith.remsi %i, %t2 : tensor<64xi32>
  return
}

// CHECK-LABEL: @assumed
func.func @assumed(%n: i32, %m: i64, %k: i32) attributes {tile.kernel} {
  %zero = arith.constant 0 : i32
  %z64 = arith.constant 0 : i64
  %c16 = arith.constant 16 : i32
  %c8 = arith.constant 8 : i64
  %c31 = arith.constant 31 : i32
  // n % 16 == 0, n >= 0 and n <= 1048576
  %rest = arith.remsi %n, %c16 : i32
  %whole = arith.cmpi eq, %rest, %zero : i32
  %positive = arith.cmpi sge, %n, %zero : i32
  %most = arith.constant 1048576 : i32
  %few = arith.cmpi sge, %most, %n : i32
  %both = arith.andi %whole, %positive : i1
  %all = arith.andi %few, %both : i1
  tile.assume %all
  // CHECK: arith.extsi {{.*}} {facts = "c=1 v=16 k=1"}
  %wide = arith.extsi %n : i32 to i64
  // Not negative, and no sum wraps: a division by 8 floors.
  %r = tile.range 0 to 64 : tensor<64xi32>
  %ns = tile.splat %n : i32 to tensor<64xi32>
  %i = arith.addi %ns, %r : tensor<64xi32>
  %t8 = arith.constant dense<8> : tensor<64xi32>
  // CHECK: arith.divsi %{{.*}}, %{{.*}} {facts = "c=1 v=1 k=8"} : tensor<64xi32>
  %eighths = arith.divsi %i, %t8 : tensor<64xi32>

  // 0 == m % 8, of a value that is computed; and the low bits of another.
  %m3 = arith.addi %m, %z64 : i64
  %rest2 = arith.remui %m3, %c8 : i64
  %whole2 = arith.cmpi eq, %z64, %rest2 : i64
  tile.assume %whole2
  // CHECK: arith.addi {{.*}} {facts = "c=1 v=8 k=1", twice}
  %twice = arith.addi %m3, %m3 {twice} : i64
  %low = arith.andi %k, %c31 : i32
  %whole3 = arith.cmpi eq, %low, %zero : i32
  tile.assume %whole3
  // CHECK: arith.extsi {{.*}} {facts = "c=1 v=32 k=1"}
  %wide3 = arith.extsi %k : i32 to i64
  return
}

// What is assumed on some paths only is not known.
// CHECK-LABEL: @sometimes
func.func @sometimes(%n: i32, %k: i32) attributes {tile.kernel} {
  %zero = arith.constant 0 : i32
  %c = arith.cmpi ne, %k, %zero : i32
  %c16 = arith.constant 16 : i32
  %rest = arith.remsi %n, %c16 : i32
  %whole = arith.cmpi eq, %rest, %zero : i32
  scf.if %c {
    tile.assume %whole
  }
  // CHECK: arith.extsi {{.*}} {facts = "c=1 v=1 k=1"}
  %wide = arith.extsi %n : i32 to i64
  return
}

// A carried value: the fact joins those of every round.
// CHECK-LABEL: @carried
func.func @carried(%n: i32, %start: i32, %step: i32) attributes {tile.kernel} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %last = scf.for %i = %zero to %n step %one iter_args(%at = %start) -> (i32) : i32 {
    %rest = arith.remsi %at, %c4 : i32
    %whole = arith.cmpi eq, %rest, %zero : i32
    tile.assume %whole
    // CHECK: arith.extsi {{.*}} {facts = "c=1 v=4 k=1"}
    %wide = arith.extsi %at : i32 to i64
    %next = arith.addi %at, %step : i32
    scf.yield %next : i32
  // CHECK: } {facts = "c=1 v=1 k=1", facts.arguments = ["c=1 v=1 k=1", "c=1 v=4 k=1"]}
  }
  return
}

// CHECK-LABEL: @stated
func.func @stated(%n: i32, %x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %t: tensor<64x32xi32>) {
  // CHECK: tile.multiple_of {{.*}} {facts = "c=1 v=8 k=1"}
  %m = tile.multiple_of %n, 24 : i32
  // Elements that count up along one dimension are no multiples at each place of another.
  // CHECK: tile.max_contiguous {{.*}} facts = "c=1 v=1 k=1, c=8 v=1 k=1"
  %runs = tile.max_contiguous %t, 8 {axis = 1 : i32} : tensor<64x32xi32>
  // CHECK: tile.multiple_of {{.*}} {facts = "c=1 v=1 k=1, c=8 v=4 k=1"}
  %whole = tile.multiple_of %runs, 4 : tensor<64x32xi32>
  // CHECK: tile.addptr {{.*}} {facts = "c=1 v=1 k=1, c=8 v=4 k=1"}
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<64x32x!tile.ptr<f32>>
  %p = tile.addptr %xs, %whole : tensor<64x32x!tile.ptr<f32>>, tensor<64x32xi32>
  // The other order says the same.
  // CHECK: tile.multiple_of {{.*}} {facts = "c=1 v=4 k=1, c=1 v=4 k=1"}
  %every = tile.multiple_of %t, 4 : tensor<64x32xi32>
  // CHECK: tile.max_contiguous {{.*}} facts = "c=1 v=1 k=1, c=8 v=4 k=1"
  %runs2 = tile.max_contiguous %every, 8 {axis = 1 : i32} : tensor<64x32xi32>
  return
}
