// 64-bit integers and doubles.
extern "C" __global__ void wideIntegers(const long long *a, const long long *b, long long *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned long long x = (unsigned long long)a[i], y = (unsigned long long)b[i];
  unsigned long long d = y | 1;
  long long *o = out + i * 8;
  o[0] = (long long)(x + y * 3);
  o[1] = (long long)(x * y);
  o[2] = (long long)__umul64hi(x, y);
  o[3] = __mul64hi(a[i], b[i]);
  o[4] = (long long)(x / d);
  o[5] = (long long)(x % d);
  o[6] = (a[i] >> (b[i] & 63)) ^ (long long)(x << (y & 63));
  o[7] = a[i] < b[i] ? (x > y ? 3 : 2) : (x > y ? 1 : 0);
}

// 128-bit products and sums through carry chains.
extern "C" __global__ void carries(const unsigned long long *a, const unsigned long long *b, unsigned long long *out,
                                   int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned __int128 p = (unsigned __int128)a[i] * b[i] + a[i];
  unsigned __int128 q = p - ((unsigned __int128)b[i] << 17);
  out[i * 2] = (unsigned long long)q;
  out[i * 2 + 1] = (unsigned long long)(q >> 64);
}

extern "C" __global__ void doubles(const double *a, const double *b, double *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  double x = a[i], y = b[i];
  double *o = out + i * 8;
  o[0] = __dadd_rn(x, y);
  o[1] = __dmul_rn(x, y);
  o[2] = x / y;
  o[3] = sqrt(fabs(x));
  o[4] = fma(x, y, 0.5);
  o[5] = (double)(long long)(x * 1000.0);
  o[6] = (double)(float)x + floor(y);
  o[7] = fmin(x, y) - trunc(x);
}

// One warp a block adds the terms of a series in double.
extern "C" __global__ void series(double *out, int terms) {
  double s = 0.0;
  for (int k = threadIdx.x; k < terms; k += 32)
    s += 1.0 / ((double)(k + 1) * (k + 1 + blockIdx.x));
  for (int d = 16; d; d >>= 1)
    s += __shfl_xor_sync(0xffffffffu, s, d);
  if (threadIdx.x == 0)
    out[blockIdx.x] = s;
}
