#include "kernels/dplr/Segments.h"

#include "kernels/support/Grid.h"

namespace kiln::kernels {
namespace {

/// Chunks of segments, and of sequences from which on the long ones pay (measured at 64 to 2,048 chunks, H200).  Few
/// sizes: each has kernels of its own.
constexpr int shortSegment = 8, longSegment = 32, longSequence = 256;

} // namespace

int segmentOf(const Device &device, const DplrInputs &in, const DplrConfig &c) {
  const std::int64_t chunks = ceilDiv(in.tokens(), c.chunk); // of the longest sequence there can be
  if (isThin(c) || chunks < 2)
    return 0;
  if (in.segmentSize)
    return in.segmentSize < chunks ? static_cast<int>(in.segmentSize) : 0;
  // Programs of 32 columns that fill half of the device have more to lose by reading all maps twice than to gain; those
  // of gradients are twice as many.
  const std::int64_t programs = in.sequences() * in.heads() * ceilDiv(in.dimV(), 32) * (c.gradients ? 2 : 1);
  if (2 * programs > device.info().multiprocessors || chunks <= 3 * shortSegment)
    return 0;
  return chunks <= longSequence ? shortSegment : longSegment;
}

Segments::Segments(const DplrInputs &in, const DplrConfig &c)
    : slots(c.segment ? slotsOf(in, c.chunk * c.segment) : 0), in(in), c(c) {}

std::array<SlotShape, 6> Segments::shapes() {
  return {{{&f, reads(in.rule), in.q.dtype, c.dim, c.dim},
           {&rt, walksForward(c), DType::F32, c.dimV, c.dim},
           {&rht, c.gradients, DType::F32, c.dimV, c.dim},
           {&decay, in.gate != GateKind::None, DType::F32, 1, c.dim},
           {&starts, walksForward(c), DType::F32, c.dimV, c.dim},
           {&ends, c.gradients, DType::F32, c.dimV, c.dim}}};
}

Status SegmentKernels::launch(Plan &plan, Jit &jit, const char *operation, const DplrInputs &in, const DplrConfig &c,
                              const Segments &segments, const ChunkMaps &chunks, const Tensor &dLast,
                              const Tensor &last, const Tensor &dFirst) {
  const auto element = kernelElement(in.q.dtype);
  const Tensor none;
  const Tensor cu = in.cuSeqlens.value_or(none);
  const auto sequences = static_cast<std::int32_t>(in.sequences()), heads = static_cast<std::int32_t>(in.heads());
  const DplrConfig composing = ofComposition(c), walking = ofWalkOfSegments(c);
  KILN_ASSIGN(JitKernel * kernel,
              compose.get(jit, {element}, composing, [&] { return dplrCompose(element, composing); }));
  KILN_ASSIGN(const Dim3 everyPart, gridOf(operation, segments.slots * in.heads() * programsOfComposition(composing)));
  KILN_TRY(plan.launch(*kernel, everyPart, named<"f">(chunks.f), named<"rt">(chunks.rt), named<"rht">(chunks.rht),
                       named<"qh">(chunks.qh), named<"do">(chunks.dO), named<"decay">(chunks.decay),
                       named<"cu_seqlens">(cu), named<"fs">(segments.f), named<"rts">(segments.rt),
                       named<"rhts">(segments.rht), named<"decays">(segments.decay), named<"tokens">(in.tokens()),
                       named<"heads">(heads), named<"sequences">(sequences)));
  KILN_ASSIGN(kernel, chains.get(jit, {element}, walking, [&] { return dplrChains(element, walking); }));
  KILN_ASSIGN(const Dim3 everyWalk,
              gridOf(operation, directionsOf(c) * in.sequences() * in.heads() * (c.dimV / c.blockV)));
  return plan.launch(*kernel, everyWalk, named<"h0">(c.initial ? *in.initialState : none), named<"dht">(dLast),
                     named<"f">(segments.f), named<"rt">(segments.rt), named<"rht">(segments.rht), named<"qh">(none),
                     named<"do">(none), named<"decay">(segments.decay), named<"cu_seqlens">(cu), named<"starts">(none),
                     named<"ends">(none), named<"h">(segments.starts), named<"dh">(segments.ends), named<"ht">(last),
                     named<"dh0">(dFirst), named<"tokens">(in.tokens()), named<"heads">(heads),
                     named<"sequences">(sequences));
}

} // namespace kiln::kernels
