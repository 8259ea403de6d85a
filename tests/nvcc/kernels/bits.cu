// Bit counting, permutes, shifts of pairs, bit fields, dot products, high products, divisions.
extern "C" __global__ void bitCounts(const unsigned *a, const unsigned long long *b, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned x = a[i];
  unsigned long long y = b[i];
  int *o = out + i * 8;
  o[0] = __popc(x);
  o[1] = __clz((int)x);
  o[2] = __ffs((int)x);
  o[3] = (int)__brev(x);
  o[4] = __popcll(y);
  o[5] = __clzll((long long)y);
  o[6] = __ffsll((long long)y);
  unsigned long long r = __brevll(y);
  o[7] = (int)(r >> 32) ^ (int)r;
}

extern "C" __global__ void bitMixes(const unsigned *a, const unsigned *b, const unsigned *c, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned x = a[i], y = b[i], z = c[i], field, insert;
  unsigned *o = out + i * 12;
  o[0] = __byte_perm(x, y, z);
  o[1] = __funnelshift_l(x, y, z);
  o[2] = __funnelshift_r(x, y, z);
  o[3] = __funnelshift_lc(x, y, z & 63);
  o[4] = __funnelshift_rc(x, y, z & 63);
  asm("bfe.s32 %0, %1, %2, %3;" : "=r"(field) : "r"(x), "r"(z & 31), "r"(y & 31));
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(insert) : "r"(x), "r"(y), "r"(z & 31), "r"((z >> 8) & 15));
  o[5] = field;
  o[6] = insert;
  o[7] = (unsigned)__dp4a((int)x, (int)y, (int)z);
  o[8] = __dp4a(x, y, z);
  o[9] = __sad((int)x, (int)y, z);
  o[10] = (x & y) | (~x & z);
  o[11] = __umulhi(x, y) + (unsigned)__mulhi((int)x, (int)z) + __umul24(y, z);
}

extern "C" __global__ void divisions(const int *a, const int *b, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int x = a[i], y = b[i] ? b[i] : 1;
  int *o = out + i * 6;
  o[0] = x == (int)0x80000000 && y == -1 ? 0 : x / y;
  o[1] = x == (int)0x80000000 && y == -1 ? 0 : x % y;
  o[2] = (int)((unsigned)x / (unsigned)y);
  o[3] = (int)((unsigned)x % (unsigned)y);
  o[4] = x / 7 + x % 1000;
  o[5] = (short)x / (short)(y | 1);
}
