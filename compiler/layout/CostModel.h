//===- CostModel.h - The weights of the planner's cost ---------------------===//
//
// SM cycles for one block.  Throughput weights count warp instructions on one SM, latencies are exposed once a pass.
// They come from published throughputs and rank plans; they predict no times.  All are dyadic, so sums are exact.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_COSTMODEL_H
#define KILN_LAYOUT_COSTMODEL_H

namespace kiln::layout::costs {

constexpr double wavefront = 1.0;
constexpr double issue = 0.25;
constexpr double alu = 0.5;
constexpr double shuffle = 1.0;
constexpr double shuffleLatency = 24;
constexpr double selectLatency = 5;
constexpr double storeLatency = 12;
constexpr double loadLatency = 30;
constexpr double addressSetup = 12; ///< instructions that form the addresses of one warp
constexpr double warpBarrier = 4;
constexpr double ctaBarrier = 20;
constexpr double ctaBarrierPerWarp = 1.0;
constexpr double clusterBarrier = 200;
constexpr double remote = 4.0; ///< a load from another block's shared memory against one from the own

} // namespace kiln::layout::costs

#endif // KILN_LAYOUT_COSTMODEL_H
