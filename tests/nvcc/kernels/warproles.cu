// C[m][n] = A[m][k] B[n][k] in bf16, persistent blocks with roles: one warpgroup gives its registers away and one of
// its threads issues tensor loads; two warpgroups take them and multiply 64 x 128 each, one wgmma group always in
// flight.  Results go through shared memory to tensor stores; a named barrier for each consumer.
// Only sm_90a, optimised.
#include "Warpgroup.cuh"
#include <cuda_bf16.h>

constexpr int tileM = 128, tileN = 128, tileK = 64, stages = 3, bytesA = tileM * 128, bytesB = tileN * 128;

struct Shared {
  alignas(1024) unsigned char a[stages][bytesA];
  alignas(1024) unsigned char b[stages][bytesB];
  alignas(1024) unsigned char out[2][2][64 * 128]; // consumer, half of the columns
  alignas(8) uint64_t full[stages], empty[stages];
};

template <int Registers> __device__ __forceinline__ void giveRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers> __device__ __forceinline__ void takeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

// 64 accumulators: the four steps of a stage, committed as one group.  Nothing may touch them before the wait; empty
// statements that claim to change them keep the compiler from moving them about.
__device__ __forceinline__ void hold(float (&d)[64]) {
#pragma unroll
  for (int i = 0; i < 64; i++)
    asm volatile("" : "+f"(d[i])::"memory");
}
__device__ __forceinline__ void multiplyStage(float (&d)[64], uint32_t a, uint32_t b, unsigned accumulate) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int i = 0; i < 4; i++)
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %66, 0;\n"
                 " wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
                 "%11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, "
                 "%31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, "
                 "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 0;\n}"
                 : KILN_OUT16(KILN_F32, d, 0), KILN_OUT16(KILN_F32, d, 16), KILN_OUT16(KILN_F32, d, 32),
                   KILN_OUT16(KILN_F32, d, 48)
                 : "l"(Tile<128>::alongK(a, i)), "l"(Tile<128>::alongK(b, i)), "r"(i ? 1u : accumulate)
                 : "memory");
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int Pending> __device__ __forceinline__ void waitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

extern "C" __global__ void __launch_bounds__(384, 1)
    warpRoles(const __grid_constant__ TensorMap mapA, const __grid_constant__ TensorMap mapB,
              const __grid_constant__ TensorMap mapC, int tilesM, int tilesN, int steps) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared &shared = *reinterpret_cast<Shared *>(memory);
  int group = threadIdx.x / 128, tiles = tilesM * tilesN;
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; s++) {
      initBarrier(sharedAddress(&shared.full[s]), 1);
      initBarrier(sharedAddress(&shared.empty[s]), 2);
    }
    fenceBarrierInit();
  }
  __syncthreads();
  if (group == 0) {
    giveRegisters<40>();
    if (threadIdx.x == 0) {
      int stage = 0;
      unsigned parity = 1;
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
          uint32_t full = sharedAddress(&shared.full[stage]);
          waitParity(sharedAddress(&shared.empty[stage]), parity);
          arriveExpecting(full, bytesA + bytesB);
          loadTile(sharedAddress(shared.a[stage]), &mapA, step * tileK, tile / tilesN * tileM, full);
          loadTile(sharedAddress(shared.b[stage]), &mapB, step * tileK, tile % tilesN * tileN, full);
          if (++stage == stages) {
            stage = 0;
            parity ^= 1;
          }
        }
    }
    return;
  }
  takeRegisters<232>();
  int consumer = group - 1, thread = threadIdx.x % 128, warp = thread / 32, lane = threadIdx.x % 32;
  int stage = 0;
  unsigned parity = 0;
  float acc[64];
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    int before = 0;
    hold(acc);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
      waitParity(sharedAddress(&shared.full[stage]), parity);
      multiplyStage(acc, sharedAddress(shared.a[stage]) + consumer * 64 * 128, sharedAddress(shared.b[stage]),
                    step != 0);
      if (step != 0) {
        waitForProducts<1>();
        if (thread == 0)
          arrive(sharedAddress(&shared.empty[before]));
      }
      before = stage;
      if (++stage == stages) {
        stage = 0;
        parity ^= 1;
      }
    }
    waitForProducts<0>();
    hold(acc);
    if (thread == 0) {
      arrive(sharedAddress(&shared.empty[before]));
      waitForBulkReads<0>(); // of the tile before
    }
    asm volatile("bar.sync %0, 128;" ::"r"(1 + consumer) : "memory");
#pragma unroll
    for (int i = 0; i < 64; i += 2) {
      int row = warp * 16 + i / 2 % 2 * 8 + lane / 4, x = i / 4 * 8 + lane % 4 * 2;
      *reinterpret_cast<__nv_bfloat162 *>(shared.out[consumer][x / 64] + swizzled<128>(row * 128 + x % 64 * 2)) =
          __floats2bfloat162_rn(acc[i], acc[i + 1]);
    }
    fenceAsyncProxy();
    asm volatile("bar.sync %0, 128;" ::"r"(1 + consumer) : "memory");
    if (thread == 0) {
      int row = tile / tilesN * tileM + consumer * 64, x = tile % tilesN * tileN;
      storeTile(&mapC, x, row, sharedAddress(shared.out[consumer][0]));
      storeTile(&mapC, x + 64, row, sharedAddress(shared.out[consumer][1]));
      commitBulk();
    }
  }
  if (thread == 0)
    waitForBulk<0>();
}
