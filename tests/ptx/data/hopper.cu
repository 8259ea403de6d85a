// sm_90a: clusters, TMA with tensor coordinates, mbarrier transactions, wgmma, setmaxnreg, elect, PDL, DSMEM.
#include <cstdint>

struct alignas(64) Map {
  char bytes[128];
};

__device__ __forceinline__ uint32_t smem(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    hopper(const __grid_constant__ Map a, const __grid_constant__ Map b, float *out, int k) {
  extern __shared__ __align__(1024) uint8_t stage[];
  __shared__ __align__(8) uint64_t full[2];
  uint32_t bar = smem(full), rank, elected;
  asm volatile("{\n\t.reg .pred P;\n\telect.sync _|P, 0xFFFFFFFF;\n\tselp.b32 %0, 1, 0, P;\n\t}" : "=r"(elected));
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("griddepcontrol.wait;");
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(bar));
    asm volatile("prefetch.tensormap [%0];" ::"l"(&a));
  }
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;");
  if (threadIdx.x >= 256) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (elected) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(32768));
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                   " [%0], [%1, {%3, %4}], [%2];" ::"r"(smem(stage)),
                   "l"(&a), "r"(bar), "r"(0), "r"(k));
      asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                   ".L2::cache_hint [%0], [%1, {%3, %4, 0}], [%2], %5, %6;" ::"r"(smem(stage) + 16384),
                   "l"(&b), "r"(bar), "r"(0), "r"(k), "h"(static_cast<uint16_t>(3)), "l"(0x12F0000000000000ull));
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    asm volatile("{\n\t.reg .pred p;\n\tLAB_WAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1, 0x989680;\n\t"
                 "@p bra DONE;\n\tbra LAB_WAIT;\n\tDONE:\n\t}" ::"r"(bar),
                 "r"(0));
    float d[4] = {0, 0, 0, 0};
    uint64_t da = (smem(stage) & 0x3FFFF) >> 4 | 1ull << 62, db = da + 1024;
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %6, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, p, 1, -1, 0, 1;\n\t}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "l"(da), "l"(db), "r"(k));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared::cta.b16 [%0], {%1, %2};" ::"r"(smem(stage)),
                 "r"(__float_as_int(d[0])), "r"(__float_as_int(d[1])));
    asm volatile("fence.proxy.async.shared::cta; barrier.sync 1, 256;");
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(bar), "r"(rank ^ 1));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(remote), "r"(5),
                 "r"(remote));
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
                 "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::"l"(&b),
                 "r"(smem(stage)), "r"(0), "r"(k));
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(out), "f"(d[0]), "f"(d[1]), "f"(d[2]),
                 "f"(d[3]));
    out[threadIdx.x] = d[2];
  }
  asm volatile("griddepcontrol.launch_dependents;");
}
