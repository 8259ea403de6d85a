// Warp and block reductions and scans through shuffles.
extern "C" __global__ void warpReduce(const int *in, int *sum, int *smallest, unsigned *largest, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? in[i] : 0;
  int s = v, lo = v;
  unsigned hi = (unsigned)v;
  for (int d = 16; d > 0; d >>= 1) {
    s += __shfl_xor_sync(0xffffffffu, s, d);
    lo = min(lo, __shfl_down_sync(0xffffffffu, lo, d));
    hi = max(hi, __shfl_xor_sync(0xffffffffu, hi, d, 32));
  }
  if ((threadIdx.x & 31) == 0) {
    sum[i / 32] = s;
    smallest[i / 32] = lo;
    largest[i / 32] = hi;
  }
}

// Segments of 8 lanes; the last lane of each segment is broadcast as well.
extern "C" __global__ void segmentScan(const float *in, float *out, float *total, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? in[i] : 0.0f;
  unsigned lane = threadIdx.x & 7;
  for (unsigned d = 1; d < 8; d <<= 1) {
    float t = __shfl_up_sync(0xffffffffu, v, d, 8);
    if (lane >= d)
      v += t;
  }
  float last = __shfl_sync(0xffffffffu, v, 7, 8);
  if (i < n) {
    out[i] = v;
    total[i] = last;
  }
}

__device__ unsigned warpInclusive(unsigned v) {
  for (unsigned d = 1; d < 32; d <<= 1) {
    unsigned t = __shfl_up_sync(0xffffffffu, v, d);
    if ((threadIdx.x & 31) >= d)
      v += t;
  }
  return v;
}

// Inclusive scan of each block's 256 values.
extern "C" __global__ void blockScan(const unsigned *in, unsigned *out, unsigned *blockTotal, int n) {
  __shared__ unsigned partial[8];
  int i = blockIdx.x * 256 + threadIdx.x;
  unsigned v = warpInclusive(i < n ? in[i] : 0u);
  if ((threadIdx.x & 31) == 31)
    partial[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    unsigned p = warpInclusive(threadIdx.x < 8 ? partial[threadIdx.x] : 0u);
    if (threadIdx.x < 8)
      partial[threadIdx.x] = p;
  }
  __syncthreads();
  if (threadIdx.x >= 32)
    v += partial[threadIdx.x / 32 - 1];
  if (i < n)
    out[i] = v;
  if (threadIdx.x == 255)
    blockTotal[blockIdx.x] = v;
}
