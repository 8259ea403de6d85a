// Distributed shared memory in clusters: sums read from every block, a ring of blocks that pass rows on by st.async
// and by bulk copies, remote arrivals, remote atomics.
// Only sm_90a.
#include "Async.cuh"

// out[i] = sum over the blocks of a cluster of their rows; the cluster's size is the launch's.
extern "C" __global__ void __launch_bounds__(128) clusterSums(const int *in, int *out, int row) {
  extern __shared__ int mine[];
  unsigned rank = clusterRank(), ranks;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(ranks));
#pragma unroll 1
  for (int i = threadIdx.x; i < row; i += 128)
    mine[i] = in[blockIdx.x * row + i];
  clusterArrive();
  clusterWait();
  int cluster = blockIdx.x / ranks;
#pragma unroll 1
  for (int i = rank * 128 + threadIdx.x; i < row; i += ranks * 128) {
    int sum = 0;
#pragma unroll 1
    for (unsigned r = 0; r < ranks; r++) {
      int value;
      asm volatile("ld.shared::cluster.u32 %0, [%1];"
                   : "=r"(value)
                   : "r"(mapToRank(sharedAddress(&mine[i]), r))
                   : "memory");
      sum += value;
    }
    out[cluster * row + i] = sum;
  }
  clusterArrive();
  clusterWait(); // nobody leaves while others read
}

// Four blocks in a ring.  In each round a block adds its number to a row of 64 words and stores it into the next
// block's, whose barrier counts the bytes; the receiver frees the buffer by a remote arrival.
extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(64)
    clusterRing(const int *in, int *out, int rounds) {
  __shared__ alignas(16) int inbox[2][64];
  __shared__ alignas(8) uint64_t arrived[2], freed[2];
  unsigned rank = clusterRank(), next = (rank + 1) % 4, previous = (rank + 3) % 4;
  int t = threadIdx.x;
  if (t == 0) {
    for (int s = 0; s < 2; s++) {
      initBarrier(sharedAddress(&arrived[s]), 1);
      initBarrier(sharedAddress(&freed[s]), 64);
    }
    fenceBarrierInit();
  }
  __syncwarp();
  clusterArrive();
  clusterWait();
  int value = in[blockIdx.x * 64 + t];
#pragma unroll 1
  for (int r = 0; r < rounds; r++) {
    int s = r % 2;
    if (t == 0)
      arriveExpecting(sharedAddress(&arrived[s]), 64 * 4);
    waitParityCluster(sharedAddress(&freed[s]), (r / 2 & 1) ^ 1); // the next block has read what was sent before
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                     mapToRank(sharedAddress(&inbox[s][t ^ 1]), next)),
                 "r"(value + int(rank)), "r"(mapToRank(sharedAddress(&arrived[s]), next))
                 : "memory");
    waitParityCluster(sharedAddress(&arrived[s]), r / 2 & 1);
    value = inbox[s][t];
    arriveRemote(mapToRank(sharedAddress(&freed[s]), previous));
  }
  out[blockIdx.x * 64 + t] = value;
  clusterArrive();
  clusterWait();
}

// Each block fills a tile and copies it into the other's memory by one bulk copy.
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128) clusterExchange(const int *in, int *out) {
  __shared__ alignas(128) int sent[256], received[256];
  __shared__ alignas(8) uint64_t arrived;
  unsigned other = clusterRank() ^ 1;
  int t = threadIdx.x;
  if (t == 0) {
    initBarrier(sharedAddress(&arrived), 1);
    fenceBarrierInit();
    arriveExpecting(sharedAddress(&arrived), sizeof(received));
  }
  for (int i = t; i < 256; i += 128)
    sent[i] = in[blockIdx.x * 256 + i] + i;
  fenceAsyncProxy();
  __syncthreads();
  clusterArrive();
  clusterWait();
  if (t == 0)
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     mapToRank(sharedAddress(received), other)),
                 "r"(sharedAddress(sent)), "r"(unsigned(sizeof(sent))),
                 "r"(mapToRank(sharedAddress(&arrived), other))
                 : "memory");
  waitParityCluster(sharedAddress(&arrived), 0);
  for (int i = t; i < 256; i += 128)
    out[blockIdx.x * 256 + i] = received[255 - i];
  clusterArrive();
  clusterWait(); // the other block has what this one sent
}

// A histogram whose 256 bins are spread over the four blocks of a cluster.
extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(128)
    clusterHistogram(const unsigned char *in, unsigned *bins, int n) {
  __shared__ unsigned part[64];
  if (threadIdx.x < 64)
    part[threadIdx.x] = 0;
  __syncwarp();
  clusterArrive();
  clusterWait();
#pragma unroll 1
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128)
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], 1;" ::"r"(
                     mapToRank(sharedAddress(&part[in[i] % 64]), in[i] / 64))
                 : "memory");
  __syncwarp();
  clusterArrive();
  clusterWait();
  if (threadIdx.x < 64)
    atomicAdd(&bins[clusterRank() * 64 + threadIdx.x], part[threadIdx.x]);
}
