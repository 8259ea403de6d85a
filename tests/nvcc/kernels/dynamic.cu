// Dynamic shared memory, split by the kernel into two arrays of different types.
extern __shared__ unsigned char pool[];

extern "C" __global__ void reverseBlock(const int *in, int *out, unsigned char *tags) {
  int *values = (int *)pool;
  unsigned char *marks = pool + blockDim.x * sizeof(int);
  int base = blockIdx.x * blockDim.x;
  values[threadIdx.x] = in[base + threadIdx.x];
  marks[threadIdx.x] = (unsigned char)(in[base + threadIdx.x] >> 3);
  __syncthreads();
  out[base + threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
  tags[base + threadIdx.x] = marks[(threadIdx.x * 5) % blockDim.x];
}

// Bitonic sort of one block's keys; blockDim.x is a power of two.
extern "C" __global__ void bitonicSort(unsigned *keys) {
  unsigned *s = (unsigned *)pool;
  unsigned t = threadIdx.x, n = blockDim.x;
  s[t] = keys[blockIdx.x * n + t];
  __syncthreads();
  for (unsigned k = 2; k <= n; k <<= 1)
    for (unsigned j = k / 2; j > 0; j >>= 1) {
      unsigned other = t ^ j;
      if (other > t) {
        unsigned x = s[t], y = s[other];
        if ((x > y) == ((t & k) == 0)) {
          s[t] = y;
          s[other] = x;
        }
      }
      __syncthreads();
    }
  keys[blockIdx.x * n + t] = s[t];
}

// How much dynamic shared memory the block sees.
extern "C" __global__ void dynamicSize(unsigned *out) {
  unsigned size;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
  *out = size;
}
