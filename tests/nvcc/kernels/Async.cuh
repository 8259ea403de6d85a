// Asynchronous copies, mbarriers, fences: one PTX instruction a function.
#pragma once
#include <cstdint>

__device__ __forceinline__ uint32_t sharedAddress(const void *pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// cp.async.  `bytes` of `Size` are copied, the rest is zeros.
template <int Size> __device__ __forceinline__ void copyAsync(uint32_t to, const void *from, int bytes = Size) {
  if constexpr (Size == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
                 "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
                 "r"(bytes), "n"(Size)
                 : "memory");
}
__device__ __forceinline__ void commitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending> __device__ __forceinline__ void waitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
__device__ __forceinline__ void arriveAfterCopies(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
}

// mbarrier.
__device__ __forceinline__ void initBarrier(uint32_t barrier, unsigned count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void invalidateBarrier(uint32_t barrier) {
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ uint64_t arrive(uint32_t barrier) {
  uint64_t state;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(barrier) : "memory");
  return state;
}
/// Polls (sm_80).
__device__ __forceinline__ void pollParity(uint32_t barrier, unsigned parity) {
  unsigned done;
  do
    asm volatile("{\n .reg .pred p;\n mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n selp.b32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
  while (!done);
}
__device__ __forceinline__ void pollState(uint32_t barrier, uint64_t state) {
  unsigned done;
  do
    asm volatile("{\n .reg .pred p;\n mbarrier.test_wait.shared.b64 p, [%1], %2;\n selp.b32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(barrier), "l"(state)
                 : "memory");
  while (!done);
}

#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void arriveExpecting(uint32_t barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void expectBytes(uint32_t barrier, unsigned bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/// On the barrier of another block of the cluster (an address that mapa gave), or one's own.
__device__ __forceinline__ void arriveRemote(uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Sleeps in the hardware until the phase with this parity is over.
__device__ __forceinline__ void waitParity(uint32_t barrier, unsigned parity) {
  asm volatile("{\n .reg .pred p;\nwaiting:\n mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @p bra done;\n"
               " bra waiting;\ndone:\n}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}
__device__ __forceinline__ void waitParityCluster(uint32_t barrier, unsigned parity) {
  asm volatile("{\n .reg .pred p;\nwaiting:\n mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
               " @p bra done;\n bra waiting;\ndone:\n}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}
__device__ __forceinline__ void fenceBarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void fenceAsyncProxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Clusters.
__device__ __forceinline__ unsigned clusterRank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ __forceinline__ void clusterArrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void clusterWait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
/// The address of the same place in block `rank` of the cluster.
__device__ __forceinline__ uint32_t mapToRank(uint32_t address, unsigned rank) {
  uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

// Bulk copies.
__device__ __forceinline__ void bulkLoad(uint32_t to, const void *from, unsigned bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
               : "memory");
}
__device__ __forceinline__ void bulkStore(void *to, uint32_t from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
               "r"(from), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void commitBulk() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int Pending> __device__ __forceinline__ void waitForBulk() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(Pending) : "memory");
}
/// The sources may be written again; the destinations may not be there yet.
template <int Pending> __device__ __forceinline__ void waitForBulkReads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}
#endif
