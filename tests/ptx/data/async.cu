// sm_80: cp.async, mbarrier, mma.sync, ldmatrix, wmma, redux, cache hints.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

__global__ void copies(const float4 *g, float4 *out, int n) {
  __shared__ __align__(16) float4 tile[2][64];
  __shared__ uint64_t barrier;
  uint32_t s = static_cast<uint32_t>(__cvta_generic_to_shared(&tile[0][threadIdx.x]));
  uint32_t b = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(64));
  __syncthreads();
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(s), "l"(g + threadIdx.x), "r"(n));
  asm volatile("cp.async.ca.shared.global [%0 + 1024], [%1+-16], 4;" ::"r"(s), "l"(g + threadIdx.x + 1));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(b));
  uint64_t state;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(b));
  asm volatile("{ .reg .pred p; WAIT_%=: mbarrier.test_wait.shared.b64 p, [%0], %1; @p bra.uni DONE_%=; bra.uni "
               "WAIT_%=; DONE_%=: }" ::"r"(b),
               "l"(state));
  asm volatile("cp.async.commit_group; cp.async.wait_group 0;");
  out[threadIdx.x] = tile[0][threadIdx.x];
}

__global__ void fragments(const __half *a, const __half *b, float *c, uint32_t *o, const __nv_bfloat16 *z) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);

  __shared__ __align__(16) uint32_t s[256];
  uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(s)), r[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
  float d[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
               "{%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[0]), "r"(r[1]));
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v2.b32 {%0, %1}, [%2], %3;"
               : "=r"(r[0]), "=r"(r[1])
               : "l"(o), "l"(policy));
  __half2 h = __hfma2(__float2half2_rn(d[0]), __half2(a[0], a[1]), __half2(b[0], b[1]));
  __nv_bfloat162 q = __hmul2(__nv_bfloat162(z[0], z[1]), __nv_bfloat162(z[2], z[3]));
  o[threadIdx.x] = __reduce_add_sync(0xffffffffu, r[0]) + __popc(__ballot_sync(0xffffffffu, r[1] & 1)) +
                   __vabsdiffu4(r[2], r[3]) + *reinterpret_cast<uint32_t *>(&h) + *reinterpret_cast<uint32_t *>(&q) +
                   __match_any_sync(0xffffffffu, r[2]) + __dp4a(static_cast<int>(r[0]), static_cast<int>(r[1]), 5);
}
