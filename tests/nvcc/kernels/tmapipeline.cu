// Column sums through a ring of four stages: one thread of a producer warp issues tensor loads, three consumer warps
// add rows and release stages, named barriers join what they have.  in[rows][cols], boxes of 32 columns by 8 rows; the
// boxes at the ends leave the tensor.
// Only sm_90a.
#include "Tensor.cuh"

constexpr int stages = 4, boxRows = 8, boxCols = 32, consumers = 3;

extern "C" __global__ void __launch_bounds__(128)
    tmaColumnSums(const __grid_constant__ TensorMap in, int *sums, int rows, int cols) {
  __shared__ alignas(128) int data[stages][boxRows][boxCols];
  __shared__ alignas(8) uint64_t full[stages], empty[stages];
  __shared__ int partial[consumers][boxCols];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, count = (rows + boxRows - 1) / boxRows;
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; s++) {
      initBarrier(sharedAddress(&full[s]), 1);
      initBarrier(sharedAddress(&empty[s]), consumers);
    }
    fenceBarrierInit();
  }
  __syncthreads();
  if (warp == consumers) {
    if (lane == 0)
#pragma unroll 1
      for (int i = 0; i < count; i++) {
        int s = i % stages;
        waitParity(sharedAddress(&empty[s]), (i / stages & 1) ^ 1);
        arriveExpecting(sharedAddress(&full[s]), sizeof(data[0]));
        loadTile(sharedAddress(data[s]), &in, blockIdx.x * boxCols, i * boxRows, sharedAddress(&full[s]));
      }
    return;
  }
  int sum = 0;
#pragma unroll 1
  for (int i = 0; i < count; i++) {
    int s = i % stages;
    waitParity(sharedAddress(&full[s]), i / stages & 1);
#pragma unroll 1
    for (int y = warp; y < boxRows; y += consumers)
      sum += data[s][y][lane];
    __syncwarp();
    if (lane == 0)
      arrive(sharedAddress(&empty[s]));
  }
  partial[warp][lane] = sum;
  if (warp != 0) {
    asm volatile("bar.arrive 1, 96;" ::: "memory");
    return;
  }
  asm volatile("bar.sync 1, 96;" ::: "memory");
  for (int w = 1; w < consumers; w++)
    sum += partial[w][lane];
  if (blockIdx.x * boxCols + lane < cols)
    sums[blockIdx.x * boxCols + lane] = sum;
}
