#include "kernels/dplr/DplrOperation.h"

#include "kernels/support/Grid.h"
#include "kernels/support/KernelSlots.h"

namespace kiln::kernels {
namespace {

/// What every kind of arguments has under the same names.
template <typename Arguments> ChunkForwardCall common(const Arguments &a, ChunkRule rule) {
  ChunkForwardCall out;
  DplrInputs &in = out.in;
  in.k = a.k, in.v = a.v;
  in.initialState = a.initialState, in.cuSeqlens = a.cuSeqlens, in.scale = a.scale;
  in.safeGate = a.safeGate, in.lowerBound = a.lowerBound, in.chunkSize = a.chunkSize, in.warps = a.warps;
  in.segmentSize = a.segmentSize;
  in.rule = rule;
  out.o = a.o, out.finalState = a.finalState;
  return out;
}

} // namespace

ChunkForwardCall forwardCallOf(const DplrArguments &a) {
  ChunkForwardCall out = common(a, ChunkRule::Dplr);
  out.in.q = a.q, out.in.a = a.a, out.in.b = a.b, out.in.g = a.g.value_or(Tensor());
  out.in.gate = a.g ? GateKind::Channel : GateKind::None;
  return out;
}

ChunkForwardCall forwardCallOf(const Rwkv7Arguments &a) {
  ChunkForwardCall out = common(a, ChunkRule::Dplr);
  out.in.q = a.r, out.in.a = a.a, out.in.b = a.b, out.in.g = a.w;
  out.in.scale = a.scale.value_or(1.0f);
  return out;
}

ChunkForwardCall forwardCallOf(const DeltaRuleArguments &a) {
  ChunkForwardCall out = common(a, ChunkRule::Delta);
  out.in.q = a.q, out.in.beta = a.beta, out.in.g = a.g.value_or(Tensor());
  out.in.gate = gateOf(a.g);
  return out;
}

ChunkForwardCall forwardCallOf(const LinearAttentionArguments &a) {
  ChunkForwardCall out = common(a, ChunkRule::Linear);
  out.in.q = a.q, out.in.g = a.g.value_or(Tensor());
  out.in.gate = gateOf(a.g);
  return out;
}

Status ChunkForward::check(const ChunkForwardCall &call) const {
  const Device &device = jit.device();
  KILN_TRY(checkInputs(device, words, call.in));
  KILN_TRY(checkChunks(device, words, call.in));
  KILN_TRY(checkOutput(device, words, call.in, "o", call.o, "v", call.in.v));
  if (call.in.initialState)
    KILN_TRY(checkTensor("o", call.o).apartFrom("initial_state", *call.in.initialState).status());
  if (!call.finalState)
    return {};
  KILN_TRY(checkState(device, words, call.in, "final_state", *call.finalState, {DType::F32}, true));
  KILN_TRY(checkApart(words, call.in, "final_state", *call.finalState));
  return checkTensor("final_state", *call.finalState).apartFrom("o", call.o).status();
}

Status ChunkForward::plan(const ChunkForwardCall &call, Plan &plan) const {
  const DplrInputs &in = call.in;
  if (in.sequences() == 0 || in.heads() == 0)
    return {};
  DplrConfig c = configOf(jit.device(), in);
  c.final = call.finalState.has_value();
  const std::int64_t slots = slotsOf(in, c.chunk);
  const DType dtype = in.q.dtype;
  const auto element = elementOf(dtype);
  const auto bytes = [&](bool exists, std::int64_t elements, std::int64_t size) {
    return exists ? static_cast<std::size_t>(in.heads() * slots * elements * size) : 0;
  };
  Segments segments(in, c);
  KILN_ASSIGN(const auto parts, plan.workspace({{"f", bytes(reads(in.rule), rowsOfF(c) * c.dim, 2)},
                                                {"r", bytes(true, c.dimV * c.dim, 2)},
                                                {"qh", bytes(true, c.chunk * c.dim, 2)},
                                                {"oh", bytes(true, c.dimV * c.chunk, 2)},
                                                {"decay", bytes(in.gate != GateKind::None, c.dim, 4)},
                                                {"segments", segments.bytes()}}));
  segments.place(parts[5]);
  const auto part = [&](unsigned n, std::int64_t rows, std::int64_t columns, DType type) {
    return workspaceTensor(parts[n], type, in.heads(), slots * rows, columns);
  };
  const Tensor none;
  const Tensor f = reads(in.rule) ? part(0, rowsOfF(c), c.dim, dtype) : none, rt = part(1, c.dimV, c.dim, dtype),
               qh = part(2, c.chunk, c.dim, dtype), oht = part(3, c.dimV, c.chunk, dtype),
               decay = in.gate != GateKind::None ? part(4, 1, c.dim, DType::F32) : none;
  if (slots) {
    const DplrConfig mine = ofChunks(c);
    KILN_ASSIGN(JitKernel * kernel, maps.get(jit, {dtype, mine}, [&] { return dplrMaps(element, mine); }));
    KILN_ASSIGN(const Dim3 grid, gridOf(words.operation, slots * in.heads()));
    KILN_TRY(launchOnChunks(plan, *kernel, grid, in, named<"f">(reads(in.rule) ? bySlot(f, slots) : none),
                            named<"rt">(bySlot(rt, slots)), named<"qh">(bySlot(qh, slots)),
                            named<"oht">(bySlot(oht, slots)), named<"decay">(decay)));
  }
  Tensor first = in.initialState.value_or(none), last = call.finalState.value_or(none);
  if (c.segment) {
    KILN_TRY(
        segmentKernels.launch(plan, jit, words.operation, in, c, segments, {f, rt, none, decay}, none, last, none));
    first = last = none;
  }
  const std::int64_t walks = c.segment ? segments.slots : in.sequences();
  const DplrConfig mine = ofChain(c);
  KILN_ASSIGN(JitKernel * kernel, outs.get(jit, {dtype, mine}, [&] { return dplrOut(element, mine); }));
  KILN_ASSIGN(const Dim3 grid, gridOf(words.operation, walks * in.heads() * ceilDiv(in.dimV(), c.blockV)));
  return plan.launch(*kernel, grid, named<"h0">(first), named<"f">(f), named<"rt">(rt), named<"qh">(qh),
                     named<"oht">(oht), named<"decay">(decay), named<"cu_seqlens">(in.cuSeqlens.value_or(none)),
                     named<"starts">(segments.starts), named<"o">(call.o), named<"ht">(last),
                     named<"sequences">(static_cast<std::int32_t>(in.sequences())));
}

} // namespace kiln::kernels
