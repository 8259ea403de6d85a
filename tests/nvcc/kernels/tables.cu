// Constant and global tables, pointers between them, and switches that become jump tables.
__constant__ int primes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
__constant__ float scales[4] = {0.5f, -1.25f, 3.0f, 1e-3f};
__constant__ char letters[8] = "abcdefg";
__device__ unsigned short weights[5] = {1, 10, 100, 1000, 10000};
__device__ const int *tableOf[2] = {primes + 1, primes + 8};
__device__ int counterCell = 5;

extern "C" __global__ void lookups(const unsigned *in, int *out, float *f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned v = in[i];
  out[i] = primes[v & 15] * letters[(v >> 4) & 7] + weights[v % 5];
  f[i] = scales[(v >> 2) & 3] * (float)(v & 255);
}

extern "C" __global__ void tablePointers(const unsigned *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = tableOf[in[i] & 1][(in[i] >> 1) & 7] + counterCell;
}

extern "C" __global__ void jumpTable(const unsigned *in, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned v = in[i], r = v >> 8;
  switch (v % 13) {
  case 0: r = r * 3 + 1; break;
  case 1: r = r ^ 0x5a5a; break;
  case 2: r = r / 7; break;
  case 3: r = __brev(r); break;
  case 4: r = __popc(r); break;
  case 5: r = r - v; break;
  case 6: r = r << (v & 7); break;
  case 7: r = ~r; break;
  case 8: r = r * r; break;
  case 9: r = r % 1001; break;
  case 10: r = max(r, 77u); break;
  default: r = 0xdead; break;
  }
  out[i] = r;
}
