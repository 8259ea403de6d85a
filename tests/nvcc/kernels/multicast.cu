// C[m][n] = A[m][k] B[n][k] in f16 by clusters of two blocks, one above the other: each loads its tile of A and half of
// the tile of B, which goes to both.  A stage is free when both blocks have read it.  64 x 64 a block.
// Only sm_90a.
#include "Warpgroup.cuh"
#include <cuda_fp16.h>

constexpr int stages = 3, tileBytes = 64 * 128;

extern "C" __global__ void __cluster_dims__(1, 2, 1) __launch_bounds__(160)
    multicast(const __grid_constant__ TensorMap mapA, const __grid_constant__ TensorMap mapB, float *c, int m, int n,
              int steps) {
  __shared__ alignas(1024) unsigned char sa[stages][tileBytes], sb[stages][tileBytes];
  __shared__ alignas(8) uint64_t full[stages], empty[stages];
  unsigned rank = clusterRank();
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; s++) {
      initBarrier(sharedAddress(&full[s]), 1);
      initBarrier(sharedAddress(&empty[s]), 2);
    }
    fenceBarrierInit();
  }
  __syncwarp();
  clusterArrive();
  clusterWait();
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128)
#pragma unroll 1
      for (int step = 0; step < steps; step++) {
        int s = step % stages;
        uint32_t barrier = sharedAddress(&full[s]);
        waitParityCluster(sharedAddress(&empty[s]), (step / stages & 1) ^ 1);
        arriveExpecting(barrier, 2 * tileBytes);
        loadTile(sharedAddress(sa[s]), &mapA, step * 64, blockIdx.y * 64, barrier);
        loadTileMulticast(sharedAddress(sb[s]) + rank * (tileBytes / 2), &mapB, step * 64, blockIdx.x * 64 + rank * 32,
                          barrier, 3);
      }
    __syncwarp();
  } else {
    float acc[32] = {};
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
      int s = step % stages;
      waitParity(sharedAddress(&full[s]), step / stages & 1);
      uint64_t a[4], b[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        a[i] = Tile<128>::alongK(sharedAddress(sa[s]), i);
        b[i] = Tile<128>::alongK(sharedAddress(sb[s]), i);
      }
      unsigned accumulate = step != 0;
      KILN_SS16("m64n64k16.f32.f16.f16", KILN_OUT32(KILN_F32, acc), a, b, accumulate, "n"(1), "n"(1), "n"(0), "n"(0));
      asm volatile("bar.sync 1, 128;" ::: "memory");
      if (threadIdx.x < 2)
        arriveRemote(mapToRank(sharedAddress(&empty[s]), threadIdx.x));
    }
    storeAccumulators(acc, c, m, n);
    __syncwarp();
  }
  clusterArrive();
  clusterWait(); // the other block may still arrive here
}
