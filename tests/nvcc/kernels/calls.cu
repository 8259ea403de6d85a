// Functions that stay functions: plain, recursive, through pointers, with structures by value.
struct Pair {
  int a;
  short b;
  double c;
};

__device__ __noinline__ int mix(int x, int y) { return x * 31 + (y ^ (x >> 3)); }

__device__ __noinline__ unsigned binomial(unsigned n, unsigned k) {
  if (k == 0 || k == n)
    return 1;
  return binomial(n - 1, k - 1) + binomial(n - 1, k);
}

__device__ __noinline__ Pair swapScale(Pair p, float f) {
  Pair r;
  r.a = p.b;
  r.b = (short)p.a;
  r.c = p.c * f;
  return r;
}

extern "C" __global__ void plainCalls(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = mix(in[i], i) + mix(i, in[i]);
}

extern "C" __global__ void recursion(const unsigned *rows, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = binomial(rows[i] & 7, (rows[i] >> 8) % ((rows[i] & 7) + 1));
}

extern "C" __global__ void structures(const int *in, int *a, short *b, double *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Pair p;
  p.a = in[i];
  p.b = (short)(in[i] >> 7);
  p.c = i * 0.25;
  Pair r = swapScale(p, 3.0f);
  a[i] = r.a;
  b[i] = r.b;
  c[i] = r.c;
}

// A kernel parameter that is a structure.
extern "C" __global__ void structureParameter(Pair p, int *a, double *c) {
  a[threadIdx.x] = p.a + p.b * (int)threadIdx.x;
  c[threadIdx.x] = p.c * threadIdx.x;
}

typedef int (*Operation)(int, int);
__device__ __noinline__ int opAdd(int x, int y) { return x + y; }
__device__ __noinline__ int opSub(int x, int y) { return x - y; }
__device__ __noinline__ int opMul(int x, int y) { return x * y; }
__device__ Operation operations[3] = {opAdd, opSub, opMul};

// Lanes of one warp call different functions.
extern "C" __global__ void pointers(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = operations[((unsigned)in[i] >> 4) % 3](in[i], i);
}
