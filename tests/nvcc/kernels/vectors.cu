// Vector loads and stores of every width, and three-dimensional indices.
extern "C" __global__ void floatVectors(const float4 *in, float4 *out, float2 *halves, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float4 v = in[i];
  out[i] = make_float4(v.w, v.z * 2.0f, v.y - 1.0f, -v.x);
  halves[i] = make_float2(v.x, v.w);
}

extern "C" __global__ void integerVectors(const int4 *a, const uchar4 *b, const short2 *c, int4 *out, uchar4 *bytes,
                                          ulonglong2 *wide, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int4 v = a[i];
  uchar4 u = b[i];
  short2 s = c[i];
  out[i] = make_int4(v.x + s.x, v.y ^ s.y, v.z * u.x, v.w - u.w);
  bytes[i] = make_uchar4((unsigned char)(u.x + u.y), u.w, (unsigned char)~u.z, (unsigned char)v.x);
  wide[i] = make_ulonglong2((unsigned long long)(long long)v.x * 5, (unsigned long long)(unsigned)v.y << 9);
}

extern "C" __global__ void indices(unsigned *out) {
  unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  unsigned b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned lane, warp;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(warp));
  unsigned *o = out + (b * blockDim.x * blockDim.y * blockDim.z + t) * 4;
  o[0] = t;
  o[1] = b;
  o[2] = lane;
  o[3] = warp;
}
