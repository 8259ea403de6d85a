// Inline asm, printf, assert, dynamic and static shared memory, 64-bit atomics, constant tables, vectors.
#include <cassert>
#include <cstdint>
#include <cstdio>

__constant__ float coefficients[2][3] = {{1.0f, -2.5f, 3.0f}, {0.5f, 0.25f, 0.125f}};
__constant__ double pairs[4] = {1.0, 2.0};
__device__ int counters[8] = {1, 2, 3};
__device__ const char *names[2] = {"alpha", "beta \"quoted\" {"};
__device__ unsigned long long total;
__managed__ int managedValue = 7;
struct Packed {
  char tag;
  const int *where;
  short tail;
};
__device__ Packed packed = {'k', &counters[3], -2};

extern __shared__ __align__(128) unsigned char dynamicShared[];

__global__ void __launch_bounds__(256, 2) sum(const float4 *__restrict__ in, float *out, int n) {
  __shared__ float partial[8];
  float s = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float4 v = in[i];
    s += v.x * coefficients[0][i % 3] + v.y + v.z + v.w;
  }
  for (int o = 16; o > 0; o >>= 1)
    s += __shfl_xor_sync(0xffffffffu, s, o);
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < 8; ++i)
      s += partial[i];
    atomicAdd(out, s);
    atomicAdd(&total, 1ull);
    atomicCAS(&total, 5ull, 6ull);
    atomicMax(&counters[1], n);
  }
}

__global__ void assembly(uint32_t *p, uint64_t *q) {
  uint32_t r, s;
  asm volatile("{\n\t.reg .pred p, q;\n\t.reg .b32 t, u<2>;\n\t"
               "setp.lt.and.u32 p|q, %2, 077, 1;\n\t"
               "@!p mov.b32 t, 0b1011;\n\t@p mov.b32 t, 0x1FU;\n\t"
               "{ .reg .b32 t; mov.b32 t, WARP_SZ; mov.b32 u0, t; }\n\t"
               "lop3.b32 %0, t, u0, %2, 0xE8; /* majority */\n\t"
               "mov.b32 u1, (1 << 4) | 3;\n\t"
               "add .u32 %1, u1, %0; // spaced\n\t}"
               : "=r"(r), "=r"(s)
               : "r"(threadIdx.x));
  uint32_t lo, hi;
  asm("mov.b64 {%0, %1}, %2;" : "=r"(lo), "=r"(hi) : "l"(q[0]));
  asm("mov.b64 {%0, _}, %1;" : "=r"(lo) : "l"(q[1]));
  float f;
  asm("mov.f32 %0, 1.5;" : "=f"(f));
  p[threadIdx.x] = r + s + lo + hi + static_cast<uint32_t>(f) + dynamicShared[threadIdx.x];
  dynamicShared[threadIdx.x] = static_cast<unsigned char>(r);
}

__global__ void talk(int n, double d) {
  assert(n > 3);
  if (n == 4)
    printf("block %d of %s: %f\n", blockIdx.x, names[n & 1], d * pairs[n & 3]);
  managedValue = packed.tail + *packed.where;
}
