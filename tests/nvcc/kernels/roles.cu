// Named barriers: two producer warps fill a double buffer, two consumer warps drain it.
__device__ void barrierSync(int id) { asm volatile("bar.sync %0, 128;" ::"r"(id) : "memory"); }
__device__ void barrierArrive(int id) { asm volatile("bar.arrive %0, 128;" ::"r"(id) : "memory"); }

// Barrier 1 + s: stage s is full; barrier 3 + s: stage s is empty.
extern "C" __global__ void producerConsumer(const int *in, int *out, int rounds) {
  __shared__ int stage[2][64];
  int t = threadIdx.x & 63;
  if (threadIdx.x < 64) {
    for (int r = 0; r < rounds; r++) {
      if (r >= 2)
        barrierSync(3 + (r & 1));
      stage[r & 1][t] = in[r * 64 + t] * 2;
      __threadfence_block();
      barrierArrive(1 + (r & 1));
    }
  } else {
    for (int r = 0; r < rounds; r++) {
      barrierSync(1 + (r & 1));
      out[r * 64 + t] = stage[r & 1][63 - t] + r;
      if (r + 2 < rounds)
        barrierArrive(3 + (r & 1));
    }
  }
}
