// A ring of four stages between one producer warp and two consumer warps, as sm_80 has it: cp.async whose completion
// arrives on an mbarrier, consumers that poll and arrive on a second one.
// out[r][i] = 2 in[r][i] + in[r][(i + 1) % 128]; the last `tail` words of in[r] are not read and count as zeros.
#include "Async.cuh"

constexpr int stages = 4, row = 128;

extern "C" __global__ void __launch_bounds__(96) ring(const int *in, int *out, int rows, int tail) {
  __shared__ alignas(16) int data[stages][row];
  __shared__ alignas(8) uint64_t barriers[2 * stages];
  int t = threadIdx.x;
  uint32_t full = sharedAddress(barriers), empty = full + 8 * stages;
  if (t == 0)
#pragma unroll 1
    for (int s = 0; s < stages; s++) {
      initBarrier(full + 8 * s, 32);
      initBarrier(empty + 8 * s, 64);
    }
  __syncthreads();
  if (t < 32) {
#pragma unroll 1
    for (int r = blockIdx.x, i = 0; r < rows; r += gridDim.x, i++) {
      int s = i % stages;
      if (i >= stages)
        pollParity(empty + 8 * s, (i / stages - 1) & 1);
      int words = min(max(row - tail - t * 4, 0), 4);
      copyAsync<16>(sharedAddress(&data[s][t * 4]), words ? in + r * row + t * 4 : in, words * 4);
      arriveAfterCopies(full + 8 * s);
    }
  } else {
#pragma unroll 1
    for (int r = blockIdx.x, i = 0; r < rows; r += gridDim.x, i++) {
      int s = i % stages;
      pollParity(full + 8 * s, (i / stages) & 1);
#pragma unroll 1
      for (int x = t - 32; x < row; x += 64)
        out[r * row + x] = 2 * data[s][x] + data[s][(x + 1) % row];
      arrive(empty + 8 * s);
    }
  }
  __syncthreads();
  if (t == 0)
#pragma unroll 1
    for (int s = 0; s < 2 * stages; s++)
      invalidateBarrier(full + 8 * s);
}

// Two halves of a block wait for each other by states, round after round; the barriers are used again after inval.
extern "C" __global__ void __launch_bounds__(128) handshake(const int *in, int *out, int rounds) {
  __shared__ int values[128];
  __shared__ alignas(8) uint64_t barrier;
  int t = threadIdx.x;
  uint32_t address = sharedAddress(&barrier);
#pragma unroll 1
  for (int pass = 0; pass < 2; pass++) {
    if (t == 0)
      initBarrier(address, 128);
    __syncthreads();
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
      values[t] = in[(pass * rounds + r) * 128 + t];
      pollState(address, arrive(address));
      out[(pass * rounds + r) * 128 + t] = values[127 - t] + r;
      pollState(address, arrive(address));
    }
    __syncthreads();
    if (t == 0)
      invalidateBarrier(address);
    __syncthreads();
  }
}
