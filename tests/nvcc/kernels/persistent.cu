// Persistent blocks that draw tiles from a counter: out = in transposed minus its row's largest element of the tile,
// sums = the sum of each tile.  The last block to leave sets the counter back, so that the next launch finds zeros.
#include "Async.cuh"

constexpr int tile = 32;

extern "C" __global__ void __launch_bounds__(256)
    persistentTranspose(const float *in, float *out, float *sums, int rows, int cols, unsigned *counters) {
  __shared__ float data[2][tile][tile + 1];
  __shared__ float partial[8];
  __shared__ int drawn[2];
  int tilesX = (cols + tile - 1) / tile, tiles = tilesX * ((rows + tile - 1) / tile);
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  auto fill = [&](int s, int number) {
    int r0 = number / tilesX * tile, c0 = number % tilesX * tile;
#pragma unroll 1
    for (int y = warp; y < tile; y += 8) {
      bool inside = r0 + y < rows && c0 + lane < cols;
      copyAsync<4>(sharedAddress(&data[s][y][lane]), inside ? in + (r0 + y) * cols + c0 + lane : in, inside ? 4 : 0);
    }
    commitCopies();
  };
  if (t == 0)
    drawn[0] = atomicAdd(counters, 1u);
  __syncthreads();
  int number = drawn[0];
  if (number < tiles)
    fill(0, number);
  for (int s = 0; number < tiles; s ^= 1) {
    if (t == 0)
      drawn[s ^ 1] = atomicAdd(counters, 1u);
    waitForCopies<0>();
    __syncthreads();
    int next = drawn[s ^ 1];
    if (next < tiles)
      fill(s ^ 1, next);
    int r0 = number / tilesX * tile, c0 = number % tilesX * tile;
    float sum = 0;
#pragma unroll 1
    for (int y = warp; y < tile; y += 8)
      sum += data[s][y][lane];
    for (int d = 16; d; d /= 2)
      sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0)
      partial[warp] = sum;
#pragma unroll 1
    for (int x = warp; x < tile; x += 8) {
      float largest = data[s][lane][0];
#pragma unroll 1
      for (int i = 1; i < min(tile, cols - c0); i++)
        largest = fmaxf(largest, data[s][lane][i]);
      if (r0 + lane < rows && c0 + x < cols)
        out[(c0 + x) * rows + r0 + lane] = data[s][lane][x] - largest;
    }
    __syncthreads();
    if (t == 0) {
      float all = 0;
#pragma unroll 1
      for (int w = 0; w < 8; w++)
        all += partial[w];
      sums[number] = all;
    }
    number = next;
  }
  if (t == 0 && atomicAdd(counters + 1, 1u) == gridDim.x - 1) {
    atomicExch(counters, 0u);
    atomicExch(counters + 1, 0u);
  }
}
