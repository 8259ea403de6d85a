// wgmma: operands in shared memory tiles, and the instruction sequences.
//
// Each sequence is one asm statement from wgmma.fence to wgmma.wait_group: debug builds keep variables in local memory,
// so nothing of the compiler may come between.
#pragma once
#include "Tensor.cuh"

/// A tile whose contiguous dimension goes along k or along m (n).  Slabs of 64 rows of `Swizzle` bytes (without
/// swizzle: 16 bytes), slab after slab.
template <int Swizzle> struct Tile {
  static constexpr int rowBytes = Swizzle ? Swizzle : 16, slabBytes = 64 * rowBytes;
  static constexpr uint64_t mode = Swizzle == 128 ? 1 : Swizzle == 64 ? 2 : Swizzle == 32 ? 3 : 0;

  static __device__ __forceinline__ uint64_t descriptor(uint32_t address, uint32_t leading, uint32_t stride) {
    return uint64_t((address & 0x3ffff) >> 4) | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 | mode << 62;
  }
  /// Rows are m (or n); `step`: which 32 bytes of k.
  static __device__ __forceinline__ uint64_t alongK(uint32_t base, int step) {
    if constexpr (Swizzle == 0)
      return descriptor(base + step * 2 * slabBytes, slabBytes, 128);
    constexpr int perSlab = rowBytes / 32 ? rowBytes / 32 : 1;
    return descriptor(base + step / perSlab * slabBytes + step % perSlab * 32, 16, 8 * Swizzle);
  }
  /// Rows are k, 16-bit elements; `step`: which 16 rows.
  static __device__ __forceinline__ uint64_t acrossK(uint32_t base, int step) {
    if constexpr (Swizzle == 0)
      return descriptor(base + step * 256, 128, slabBytes);
    return descriptor(base + step * 16 * Swizzle, slabBytes, 8 * Swizzle);
  }
};

#define KILN_ACC16 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define KILN_ACC32 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define KILN_OUT4(C, d, i) C(d[i]), C(d[i + 1]), C(d[i + 2]), C(d[i + 3])
#define KILN_OUT16(C, d, i) \
  KILN_OUT4(C, d, i), KILN_OUT4(C, d, i + 4), KILN_OUT4(C, d, i + 8), KILN_OUT4(C, d, i + 12)
#define KILN_OUT32(C, d) KILN_OUT16(C, d, 0), KILN_OUT16(C, d, 16)
#define KILN_F32(x) "+f"(x)
#define KILN_B32(x) "+r"(x)

// From shared memory, four steps of k: operands of 16 bits (signs, transpositions), of other floats (signs), integers.
#define KILN_SS16(TYPES, OUT, a, b, accumulate, ...) \
  asm volatile("{\n .reg .pred p, always;\n setp.ne.b32 p, %40, 0;\n setp.eq.b32 always, 0, 0;\n" \
               " wgmma.fence.sync.aligned;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", %32, %36, p, %41, %42, %43, %44;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", %33, %37, always, %41, %42, %43, %44;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", %34, %38, always, %41, %42, %43, %44;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", %35, %39, always, %41, %42, %43, %44;\n" \
               " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n}" \
               : OUT \
               : "l"(a[0]), "l"(a[1]), "l"(a[2]), "l"(a[3]), "l"(b[0]), "l"(b[1]), "l"(b[2]), "l"(b[3]), \
                 "r"(accumulate) __VA_OPT__(,) __VA_ARGS__ \
               : "memory")
#define KILN_SS16_HALF(TYPES, OUT, a, b, accumulate, ...) \
  asm volatile("{\n .reg .pred p, always;\n setp.ne.b32 p, %24, 0;\n setp.eq.b32 always, 0, 0;\n" \
               " wgmma.fence.sync.aligned;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC16 ", %16, %20, p, %25, %26, %27, %28;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC16 ", %17, %21, always, %25, %26, %27, %28;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC16 ", %18, %22, always, %25, %26, %27, %28;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC16 ", %19, %23, always, %25, %26, %27, %28;\n" \
               " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n}" \
               : OUT \
               : "l"(a[0]), "l"(a[1]), "l"(a[2]), "l"(a[3]), "l"(b[0]), "l"(b[1]), "l"(b[2]), "l"(b[3]), \
                 "r"(accumulate) __VA_OPT__(,) __VA_ARGS__ \
               : "memory")
#define KILN_SSFLOAT(TYPES, OUT, a, b, accumulate, ...) \
  asm volatile("{\n .reg .pred p, always;\n setp.ne.b32 p, %40, 0;\n setp.eq.b32 always, 0, 0;\n" \
               " wgmma.fence.sync.aligned;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", %32, %36, p, %41, %42;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", %33, %37, always, %41, %42;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", %34, %38, always, %41, %42;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", %35, %39, always, %41, %42;\n" \
               " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n}" \
               : OUT \
               : "l"(a[0]), "l"(a[1]), "l"(a[2]), "l"(a[3]), "l"(b[0]), "l"(b[1]), "l"(b[2]), "l"(b[3]), \
                 "r"(accumulate) __VA_OPT__(,) __VA_ARGS__ \
               : "memory")
#define KILN_SSINT(TYPES, OUT, a, b, accumulate, ...) \
  asm volatile("{\n .reg .pred p, always;\n setp.ne.b32 p, %40, 0;\n setp.eq.b32 always, 0, 0;\n" \
               " wgmma.fence.sync.aligned;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", %32, %36, p;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", %33, %37, always;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", %34, %38, always;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", %35, %39, always;\n" \
               " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n}" \
               : OUT \
               : "l"(a[0]), "l"(a[1]), "l"(a[2]), "l"(a[3]), "l"(b[0]), "l"(b[1]), "l"(b[2]), "l"(b[3]), \
                 "r"(accumulate) __VA_OPT__(,) __VA_ARGS__ \
               : "memory")

// The same with a in registers, 16 for the four steps.
#define KILN_RS16(TYPES, OUT, a, b, accumulate, ...) \
  asm volatile("{\n .reg .pred p, always;\n setp.ne.b32 p, %52, 0;\n setp.eq.b32 always, 0, 0;\n" \
               " wgmma.fence.sync.aligned;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", {%32, %33, %34, %35}, %48, p, %53, %54, %55;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", {%36, %37, %38, %39}, %49, always, %53, %54, %55;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", {%40, %41, %42, %43}, %50, always, %53, %54, %55;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", {%44, %45, %46, %47}, %51, always, %53, %54, %55;\n" \
               " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n}" \
               : OUT \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), \
                 "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(a[12]), "r"(a[13]), "r"(a[14]), "r"(a[15]), "l"(b[0]), "l"(b[1]), "l"(b[2]), "l"(b[3]), \
                 "r"(accumulate) __VA_OPT__(,) __VA_ARGS__ \
               : "memory")
#define KILN_RSFLOAT(TYPES, OUT, a, b, accumulate, ...) \
  asm volatile("{\n .reg .pred p, always;\n setp.ne.b32 p, %52, 0;\n setp.eq.b32 always, 0, 0;\n" \
               " wgmma.fence.sync.aligned;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", {%32, %33, %34, %35}, %48, p, %53, %54;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", {%36, %37, %38, %39}, %49, always, %53, %54;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", {%40, %41, %42, %43}, %50, always, %53, %54;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", {%44, %45, %46, %47}, %51, always, %53, %54;\n" \
               " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n}" \
               : OUT \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), \
                 "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(a[12]), "r"(a[13]), "r"(a[14]), "r"(a[15]), "l"(b[0]), "l"(b[1]), "l"(b[2]), "l"(b[3]), \
                 "r"(accumulate) __VA_OPT__(,) __VA_ARGS__ \
               : "memory")
#define KILN_RSINT(TYPES, OUT, a, b, accumulate, ...) \
  asm volatile("{\n .reg .pred p, always;\n setp.ne.b32 p, %52, 0;\n setp.eq.b32 always, 0, 0;\n" \
               " wgmma.fence.sync.aligned;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", {%32, %33, %34, %35}, %48, p;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", {%36, %37, %38, %39}, %49, always;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", {%40, %41, %42, %43}, %50, always;\n" \
               " wgmma.mma_async.sync.aligned." TYPES " " KILN_ACC32 ", {%44, %45, %46, %47}, %51, always;\n" \
               " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n}" \
               : OUT \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), \
                 "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(a[12]), "r"(a[13]), "r"(a[14]), "r"(a[15]), "l"(b[0]), "l"(b[1]), "l"(b[2]), "l"(b[3]), \
                 "r"(accumulate) __VA_OPT__(,) __VA_ARGS__ \
               : "memory")

/// Block (x, y) of C = A B, 64 x 64, one warpgroup, two stages of 128 bytes of k.  `Multiply(acc, descriptors of A, of
/// B, accumulate)`.  Tensors are [m][k] or, across k, [k][m]; boxes are a slab each.
template <typename Accumulator, int Registers, int Swizzle, bool AcrossA, bool AcrossB, typename Multiply>
__device__ __forceinline__ void product(Accumulator (&acc)[Registers], const TensorMap *mapA, const TensorMap *mapB,
                                        int elementBytes, int k, Multiply multiply) {
  using Tile = Tile<Swizzle>;
  constexpr int tileBytes = 64 * 128, slabs = 128 / Tile::rowBytes;
  __shared__ alignas(1024) unsigned char stage[2][2][tileBytes];
  __shared__ alignas(8) uint64_t full[2];
  int perStage = 128 / elementBytes, perSlab = Tile::rowBytes / elementBytes, steps = (k + perStage - 1) / perStage;
  auto load = [&](int step) {
    uint32_t barrier = sharedAddress(&full[step % 2]);
    arriveExpecting(barrier, 2 * tileBytes);
    for (int i = 0; i < slabs; i++) {
      uint32_t a = sharedAddress(stage[step % 2][0]) + i * Tile::slabBytes, b = a + tileBytes;
      int along = step * perStage + i * perSlab;
      if (AcrossA)
        loadTile(a, mapA, blockIdx.y * 64 + i * perSlab, step * perStage, barrier);
      else
        loadTile(a, mapA, along, blockIdx.y * 64, barrier);
      if (AcrossB)
        loadTile(b, mapB, blockIdx.x * 64 + i * perSlab, step * perStage, barrier);
      else
        loadTile(b, mapB, along, blockIdx.x * 64, barrier);
    }
  };
  if (threadIdx.x == 0) {
    initBarrier(sharedAddress(&full[0]), 1);
    initBarrier(sharedAddress(&full[1]), 1);
    fenceBarrierInit();
    for (int i = 0; i < 2 && i < steps; i++)
      load(i);
  }
  __syncthreads();
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    waitParity(sharedAddress(&full[step % 2]), step / 2 & 1);
    uint32_t baseA = sharedAddress(stage[step % 2][0]), baseB = baseA + tileBytes;
    uint64_t a[4], b[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      a[i] = AcrossA ? Tile::acrossK(baseA, i) : Tile::alongK(baseA, i);
      b[i] = AcrossB ? Tile::acrossK(baseB, i) : Tile::alongK(baseB, i);
    }
    multiply(acc, a, b, step != 0);
    __syncthreads();
    if (threadIdx.x == 0 && step + 2 < steps)
      load(step + 2);
  }
}

/// Accumulators of 64 x 64 to rows of n elements, n even.
template <typename T> __device__ __forceinline__ void storeAccumulators(const T (&acc)[32], T *c, int m, int n) {
  struct alignas(2 * sizeof(T)) Pair {
    T low, high;
  };
  int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < 32; i += 2) {
    int r = blockIdx.y * 64 + warp * 16 + i / 2 % 2 * 8 + lane / 4, x = blockIdx.x * 64 + i / 4 * 8 + lane % 4 * 2;
    if (r < m && x < n)
      *reinterpret_cast<Pair *>(c + r * n + x) = {acc[i], acc[i + 1]};
  }
}
