// Global atomics whose final state does not depend on the order.
extern "C" __global__ void integerAtomics(const int *in, int *cells, unsigned *ucells, unsigned long long *wide, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int v = in[i];
    atomicAdd(&cells[0], v);
    atomicSub(&cells[1], v);
    atomicMin(&cells[2], v);
    atomicMax(&cells[3], v);
    atomicAnd(&ucells[0], (unsigned)v | 0xf0u);
    atomicOr(&ucells[1], (unsigned)v & 0xff00ffu);
    atomicXor(&ucells[2], (unsigned)v);
    atomicInc(&ucells[3], 99u);
    atomicDec(&ucells[4], 41u);
    atomicMax(&ucells[5], (unsigned)v);
    atomicAdd(&wide[0], (unsigned long long)(unsigned)v << 16);
    atomicMax(&wide[1], (unsigned long long)(unsigned)v * 3);
    atomicXor(&wide[2], (unsigned long long)(unsigned)v << 20);
  }
}

// Values are small integers: sums are exact in any order.
extern "C" __global__ void floatAtomics(const int *in, float *f, double *d, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(&f[i & 3], (float)(in[i] & 15));
    atomicAdd(&d[i & 1], in[i] * 0.5);
  }
}

// Maximum of floats and a 16-bit product through compare-and-swap loops.
extern "C" __global__ void casLoops(const float *in, float *top, unsigned *product, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned *bits = (unsigned *)top;
  unsigned seen = atomicAdd(bits, 0u);
  while (__uint_as_float(seen) < in[i]) {
    unsigned was = atomicCAS(bits, seen, __float_as_uint(in[i]));
    if (was == seen)
      break;
    seen = was;
  }
  unsigned factor = __float_as_uint(in[i]) | 1u, old = atomicAdd(product, 0u), was;
  do {
    was = old;
    old = atomicCAS(product, was, was * factor);
  } while (old != was);
}

// The last block to finish adds the partial sums of all.
extern "C" __global__ void lastBlock(const unsigned *in, unsigned *partial, unsigned *ticket, unsigned *total, int n) {
  __shared__ unsigned sum;
  __shared__ bool last;
  if (threadIdx.x == 0)
    sum = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&sum, in[i]);
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    unsigned t = 0;
    for (unsigned b = 0; b < gridDim.x; b++)
      t += *(volatile unsigned *)&partial[b];
    *total = t;
  }
}
