#include "kernels/dplr/DplrOperation.h"

#include "kernels/support/Grid.h"

namespace kiln::kernels {
namespace {

/// What every kind of arguments has under the same names.
template <typename Arguments> ChunkForwardCall common(const Arguments &a, ChunkRule rule) {
  ChunkForwardCall out;
  DplrInputs &in = out.in;
  in.k = a.k, in.v = a.v;
  in.initialState = a.initialState, in.cuSeqlens = a.cuSeqlens, in.scale = a.scale;
  in.safeGate = a.safeGate, in.lowerBound = a.lowerBound, in.chunkSize = a.chunkSize, in.tiling = a.tiling;
  in.segmentSize = a.segmentSize;
  in.rule = rule;
  out.o = a.o, out.finalState = a.finalState, out.saved = a.saved;
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
  KILN_TRY(checkChunks(jit, words, call.in));
  KILN_TRY(checkOutput(device, words, call.in, "o", call.o, "v", call.in.v));
  if (call.in.initialState)
    KILN_TRY(checkTensor("o", call.o).apartFrom("initial_state", *call.in.initialState).status());
  if (call.finalState) {
    KILN_TRY(checkState(device, words, call.in, "final_state", *call.finalState, {DType::F32}, true));
    KILN_TRY(checkApart(words, call.in, "final_state", *call.finalState));
    KILN_TRY(checkTensor("final_state", *call.finalState).apartFrom("o", call.o).status());
  }
  if (!call.saved)
    return {};
  KILN_TRY(checkSaved(device, words, call.in, *call.saved, /*isOutput=*/true));
  auto apart = checkTensor("saved", *call.saved).apartFrom("o", call.o);
  if (call.in.initialState)
    apart.apartFrom("initial_state", *call.in.initialState);
  if (call.finalState)
    apart.apartFrom("final_state", *call.finalState);
  return apart.status();
}

Status ChunkForward::plan(const ChunkForwardCall &call, Plan &plan) const {
  const DplrInputs &in = call.in;
  if (in.sequences() == 0 || in.heads() == 0)
    return {};
  DplrConfig c = untiled(jit.device(), in);
  c.final = call.finalState.has_value();
  c.saved = call.saved.has_value();
  c = tiled(jit, words, in, c, tuned);
  const std::int64_t slots = slotsOf(in, c.chunk);
  const DType dtype = in.q.dtype;
  const auto element = dtype;
  Tensor rt, oht;
  const std::array<SlotShape, 2> shapes{{{&rt, true, dtype, c.dimV, c.dim}, {&oht, true, dtype, c.dimV, c.chunk}}};
  const auto bytes = [&](unsigned n) { return bytesOfSlots(shapes[n], in.heads(), slots); };
  Segments segments(in, c);
  KeptChunks kept(in, c); // in the workspace, or where the caller wants it saved
  KILN_ASSIGN(
      const auto parts,
      plan.workspace(
          {{"r", bytes(0)}, {"oh", bytes(1)}, {"chunks", c.saved ? 0 : kept.bytes()}, {"segments", segments.bytes()}}));
  for (std::size_t n = 0; n < shapes.size(); ++n)
    placeSlots({&shapes[n], 1}, in.heads(), slots, parts[n]);
  kept.place(c.saved ? call.saved->address : parts[2]);
  segments.place(parts[3]);
  const Tensor none;
  if (slots) {
    const DplrConfig mine = ofChunks(c);
    KILN_ASSIGN(JitKernel * kernel, maps.get(jit, {element}, mine, [&] { return dplrMaps(element, mine); }));
    KILN_ASSIGN(const Dim3 grid, gridOf(words.operation, slots * in.heads()));
    KILN_TRY(launchOnChunks(plan, *kernel, grid, in, named<"f">(bySlot(kept.f, slots)), named<"rt">(bySlot(rt, slots)),
                            named<"qh">(bySlot(kept.qh, slots)), named<"oht">(bySlot(oht, slots)),
                            named<"decay">(kept.decay), named<"matrices">(bySlot(kept.matrices, slots))));
  }
  Tensor first = in.initialState.value_or(none), last = call.finalState.value_or(none);
  if (c.segment) {
    KILN_TRY(segmentKernels.launch(plan, jit, words.operation, in, c, segments,
                                   {.f = kept.f, .rt = rt, .decay = kept.decay}, none, last, none));
    first = last = none;
  }
  const std::int64_t walks = c.segment ? segments.slots : in.sequences();
  const DplrConfig mine = ofChain(c);
  KILN_ASSIGN(JitKernel * kernel, outs.get(jit, {element}, mine, [&] { return dplrOut(element, mine); }));
  KILN_ASSIGN(const Dim3 grid, gridOf(words.operation, walks * in.heads() * ceilDiv(in.dimV(), c.blockV)));
  return plan.launch(*kernel, grid, named<"h0">(first), named<"f">(kept.f), named<"rt">(rt), named<"qh">(kept.qh),
                     named<"oht">(oht), named<"decay">(kept.decay), named<"cu_seqlens">(in.cuSeqlens.value_or(none)),
                     named<"starts">(segments.starts), named<"o">(call.o), named<"ht">(last), named<"h">(kept.h),
                     named<"sequences">(static_cast<std::int32_t>(in.sequences())));
}

std::optional<std::string> ChunkForward::callText(const ChunkForwardCall &call, OptionValues options) const {
  std::vector<CallTensor> tensors{{"initial_state", call.in.initialState},
                                  {"cu_seqlens", call.in.cuSeqlens},
                                  {"final_state", call.finalState},
                                  {"saved", call.saved}};
  for (const NamedTensor &input : RuleTensorList(words, call.in))
    tensors.emplace_back(input.name, *input.tensor);
  return callWords(words.operation, tensors, std::move(options));
}

} // namespace kiln::kernels
