// Votes, matches and stream compaction.
extern "C" __global__ void votes(const int *in, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? in[i] : 0;
  unsigned b = __ballot_sync(0xffffffffu, v > 0);
  unsigned r = (__any_sync(0xffffffffu, v == 7) ? 1u : 0u) | (__all_sync(0xffffffffu, v > -1000) ? 2u : 0u);
  if (i < n) {
    out[i * 2] = b;
    out[i * 2 + 1] = r;
  }
}

extern "C" __global__ void matches(const int *in, const unsigned long long *wide, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool active = i < n;
  unsigned mask = __ballot_sync(0xffffffffu, active);
  if (active) {
    int same;
    out[i * 4] = __match_any_sync(mask, in[i]);
    out[i * 4 + 1] = __match_any_sync(mask, wide[i]);
    out[i * 4 + 2] = __match_all_sync(mask, in[i] >> 5, &same);
    out[i * 4 + 3] = (unsigned)same;
  }
}

// Keeps positive values; the order inside a warp is kept, the order of warps is not.
extern "C" __global__ void compact(const int *in, int *out, unsigned *count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool keep = i < n && in[i] > 0;
  unsigned mask = __ballot_sync(0xffffffffu, keep);
  unsigned lane = threadIdx.x & 31, base = 0;
  if (mask == 0)
    return;
  unsigned leader = __ffs((int)mask) - 1;
  if (lane == leader)
    base = atomicAdd(count, (unsigned)__popc(mask));
  base = __shfl_sync(0xffffffffu, base, leader);
  if (keep)
    out[base + __popc(mask & ((1u << lane) - 1))] = in[i];
}

extern "C" __global__ void warpRedux(const unsigned *in, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = i < n ? in[i] : 0;
  unsigned sum = __reduce_add_sync(0xffffffffu, v), top = __reduce_max_sync(0xffffffffu, v);
  int low = __reduce_min_sync(0xffffffffu, (int)v);
  unsigned all = __reduce_and_sync(0xffffffffu, v), odd = __reduce_xor_sync(0xffffffffu, v);
  int bars = __syncthreads_count(v & 1);
  int andAll = __syncthreads_and(v != 3), orAny = __syncthreads_or(v == 5);
  if (i < n) {
    unsigned *o = out + i * 8;
    o[0] = sum;
    o[1] = top;
    o[2] = (unsigned)low;
    o[3] = all;
    o[4] = odd;
    o[5] = (unsigned)bars;
    o[6] = (unsigned)(andAll != 0);
    o[7] = (unsigned)(orAny != 0);
  }
}
