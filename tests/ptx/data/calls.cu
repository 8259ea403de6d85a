// Device calls, recursion, function pointers, a jump table, local arrays, struct parameters and returns, malloc.
#include <cstdint>

struct Big {
  double a[3];
  char c;
};

__device__ __noinline__ Big makeBig(int n, Big in) {
  Big b = in;
  b.a[n % 3] += n;
  b.c = static_cast<char>(n);
  return b;
}
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ int addOne(int x) { return x + 1; }
__device__ int twice(int x) { return x * 2; }
__device__ __noinline__ void store(int *p, int v) { *p = v; }
using Operation = int (*)(int);
__device__ Operation operations[2] = {addOne, twice};
__constant__ Operation constantOperations[2] = {twice, addOne};

extern "C" __global__ void calls(int *out, int n, Big big) {
  Big b = makeBig(n, big);
  int stack[16];
  for (int i = 0; i < 16; ++i)
    stack[i] = out[i];
  stack[n & 15] = fibonacci(n);
  store(out + 2, operations[n & 1](n) + constantOperations[n & 1](n));
  out[0] = static_cast<int>(b.a[n % 3]) + b.c + stack[(n + 1) & 15];
  int *p = static_cast<int *>(malloc(64));
  if (p) {
    p[n & 15] = 1;
    out[1] = p[0];
    free(p);
  }
}

extern "C" __global__ void table(int *out, int n, float x) {
  switch (n) {
  case 0: out[0] = static_cast<int>(sinf(x)); break;
  case 1: out[1] = static_cast<int>(x * 3); break;
  case 2: out[9] = out[3] / 7; break;
  case 3: out[3] = 5; __threadfence(); break;
  case 4: out[out[4]] = 4; break;
  case 5: out[5] += static_cast<int>(__expf(x)); break;
  case 6: out[6] ^= 9; break;
  case 7: atomicExch(out + 7, 3); break;
  default: __trap();
  }
}
