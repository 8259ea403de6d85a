// RUN: kiln-opt %s -split-input-file -verify-diagnostics --kiln-verify-barriers

// Each warp adds what it stores: barriers of the warp are enough.  The loop's next round waits for the engine to have read.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @good(%x: tensor<4x512xf32, #runs>, %p: tensor<4x512x!tile.ptr<f32>, #runs>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    scf.for %i = %c0 to %n step %c1 : i32 {
      tile_gpu.bulk_wait read
      tile_gpu.warp_barrier
      tile_gpu.local_store %x, %b : tensor<4x512xf32, #runs>, !tile_gpu.buffer<4x512xf32, #rows>
      tile_gpu.warp_barrier
      tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
    }
    tile_gpu.bulk_wait
    return
  }
}

// -----

// Without the wait.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @no_wait(%x: tensor<4x512xf32, #runs>, %p: tensor<4x512x!tile.ptr<f32>, #runs>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    // expected-note @+1 {{the path goes into the loop's next round}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      tile_gpu.warp_barrier
      // expected-error @+2 {{writes bytes that a sum in flight may still read: wait for its group first}}
      // expected-note @+1 {{no bulk_wait lies on this path}}
      tile_gpu.local_store %x, %b : tensor<4x512xf32, #runs>, !tile_gpu.buffer<4x512xf32, #rows>
      tile_gpu.warp_barrier
      // expected-note @+1 {{the sum}}
      tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
    }
    tile_gpu.bulk_wait
    return
  }
}

// -----

// The lane that waits tells no other.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @no_barrier(%x: tensor<4x512xf32, #runs>, %p: tensor<4x512x!tile.ptr<f32>, #runs>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    // expected-note @+1 {{the path goes into the loop's next round}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      tile_gpu.bulk_wait read
      // expected-error @+2 {{this write to shared memory races with a read before it: different lanes of a warp}}
      // expected-note @+1 {{put a tile_gpu.warp_barrier on this path}}
      tile_gpu.local_store %x, %b : tensor<4x512xf32, #runs>, !tile_gpu.buffer<4x512xf32, #rows>
      tile_gpu.warp_barrier
      // expected-note @+1 {{the read}}
      tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
    }
    tile_gpu.bulk_wait
    return
  }
}

// -----

// Nor does one lane see what the others store.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @no_barrier_before(%x: tensor<4x512xf32, #runs>, %p: tensor<4x512x!tile.ptr<f32>, #runs>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    // expected-note @+1 {{the write}}
    tile_gpu.local_store %x, %b : tensor<4x512xf32, #runs>, !tile_gpu.buffer<4x512xf32, #rows>
    // expected-error @+2 {{this read of shared memory races with a write before it: different lanes of a warp}}
    // expected-note @+1 {{put a tile_gpu.warp_barrier on this path}}
    tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
    tile_gpu.bulk_wait
    return
  }
}

// -----

// What another warp stored.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
#others = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[2,0],[1,0]], shape=[4,512]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @other_warps(%x: tensor<4x512xf32, #runs>, %p: tensor<4x512x!tile.ptr<f32>, #runs>, %q: tensor<4x512x!tile.ptr<f32>, #others>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    // expected-note @+1 {{the write}}
    tile_gpu.local_store %x, %b : tensor<4x512xf32, #runs>, !tile_gpu.buffer<4x512xf32, #rows>
    tile_gpu.warp_barrier
    // expected-error @+2 {{races with a write before it: different warps touch the same bytes}}
    // expected-note @+1 {{put a tile_gpu.barrier on this path}}
    tile_gpu.bulk_add %b, %q : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #others>
    tile_gpu.bulk_wait
    return
  }
}

// -----

// What the engine adds is no thread's to read.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @reads(%x: tensor<4x512xf32, #runs>, %a: !tile.ptr<f32>, %o: tensor<4x512xi64, #runs>) attributes {tile.num_warps = 4 : i32} {
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %o : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi64, #runs>
    tile_gpu.local_store %x, %b : tensor<4x512xf32, #runs>, !tile_gpu.buffer<4x512xf32, #rows>
    tile_gpu.warp_barrier
    // expected-note @+1 {{here}}
    tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
    tile_gpu.bulk_wait
    tile_gpu.barrier
    // Another sum may.
    %old = tile.atomic_rmw add relaxed gpu %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
    // expected-error @+2 {{accesses memory that the copy engine may still write}}
    // expected-note @+1 {{other accesses than atomic ones to memory that it adds to are for another launch}}
    %y = tile.load %p : tensor<4x512x!tile.ptr<f32>, #runs>
    return
  }
}

// -----

// The kernel ends first.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @no_end(%x: tensor<4x512xf32, #runs>, %p: tensor<4x512x!tile.ptr<f32>, #runs>, %m: i1) attributes {tile.num_warps = 4 : i32} {
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    tile_gpu.local_store %x, %b : tensor<4x512xf32, #runs>, !tile_gpu.buffer<4x512xf32, #rows>
    tile_gpu.warp_barrier
    tile_gpu.bulk_wait
    scf.if %m {
      // expected-error @+1 {{the kernel may end while the copy engine reads shared memory here}}
      tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
    }
    // expected-note @+1 {{wait for all before this}}
    return
  }
}

// -----

// A count comes after the wait and a barrier of all.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @counted(%x: tensor<4x512xf32, #runs>, %a: !tile.ptr<f32>, %o: tensor<4x512xi64, #runs>, %count: !tile.ptr<i32>, %is: i1, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %o : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi64, #runs>
    scf.for %i = %c0 to %n step %c1 : i32 {
      tile_gpu.bulk_wait
      tile_gpu.barrier
      tile_gpu.elected {
        tile_gpu.count %count if %is for %a : !tile.ptr<i32>, !tile.ptr<f32>
      }
      tile_gpu.warp_barrier
      tile_gpu.local_store %x, %b : tensor<4x512xf32, #runs>, !tile_gpu.buffer<4x512xf32, #rows>
      tile_gpu.warp_barrier
      tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
    }
    tile_gpu.bulk_wait
    return
  }
}

// -----

// The engine may not have added yet.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @counted_early(%x: tensor<4x512xf32, #runs>, %a: !tile.ptr<f32>, %o: tensor<4x512xi64, #runs>, %count: !tile.ptr<i32>, %is: i1, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %o : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi64, #runs>
    // expected-note @+1 {{the path goes into the loop's next round}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-note @+1 {{this waits until the sum has read, not until it has written}}
      tile_gpu.bulk_wait read
      tile_gpu.barrier
      tile_gpu.elected {
        // expected-error @+1 {{counts what a sum in flight may still write: wait for its group first}}
        tile_gpu.count %count if %is for %a : !tile.ptr<i32>, !tile.ptr<f32>
      }
      tile_gpu.warp_barrier
      tile_gpu.local_store %x, %b : tensor<4x512xf32, #runs>, !tile_gpu.buffer<4x512xf32, #rows>
      tile_gpu.warp_barrier
      // expected-note @+1 {{the sum}}
      tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
    }
    tile_gpu.bulk_wait
    return
  }
}

// -----

// Nobody has told the thread that counts.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @counted_alone(%x: tensor<4x512xf32, #runs>, %a: !tile.ptr<f32>, %o: tensor<4x512xi64, #runs>, %count: !tile.ptr<i32>, %is: i1, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %o : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi64, #runs>
    // expected-note @+1 {{the path goes into the loop's next round}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      tile_gpu.bulk_wait
      tile_gpu.elected {
        // expected-error @+2 {{counts what other threads may not have written yet}}
        // expected-note @+1 {{put a tile_gpu.barrier on this path, after the wait}}
        tile_gpu.count %count if %is for %a : !tile.ptr<i32>, !tile.ptr<f32>
      }
      tile_gpu.warp_barrier
      tile_gpu.local_store %x, %b : tensor<4x512xf32, #runs>, !tile_gpu.buffer<4x512xf32, #rows>
      tile_gpu.warp_barrier
      // expected-note @+1 {{the write}}
      tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
    }
    tile_gpu.bulk_wait
    return
  }
}

// -----

// So for sums of the threads.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @added_by_threads(%x: tensor<4x512xf32, #runs>, %a: !tile.ptr<f32>, %o: tensor<4x512xi64, #runs>, %count: !tile.ptr<i32>, %is: i1, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %o : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi64, #runs>
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-note @+1 {{the write}}
      %old = tile.atomic_rmw add relaxed gpu %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
      // expected-error @+2 {{counts what other threads may not have written yet}}
      // expected-note @+1 {{put a tile_gpu.barrier on this path}}
      tile_gpu.count %count if %is for %p : !tile.ptr<i32>, tensor<4x512x!tile.ptr<f32>, #runs>
    }
    tile_gpu.bulk_wait
    return
  }
}
