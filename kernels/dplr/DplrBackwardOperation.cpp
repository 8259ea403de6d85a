#include "kernels/dplr/DplrBackwardOperation.h"

#include "kernels/support/Grid.h"

namespace kiln::kernels {
namespace {

/// What every kind of arguments has under the same names.
template <typename Arguments> ChunkBackwardCall common(const Arguments &a, ChunkRule rule) {
  ChunkBackwardCall out;
  DplrInputs &in = out.in;
  in.q = a.q, in.k = a.k, in.v = a.v, in.g = a.g.value_or(Tensor());
  in.initialState = a.initialState, in.cuSeqlens = a.cuSeqlens, in.scale = a.scale;
  in.safeGate = a.safeGate, in.lowerBound = a.lowerBound, in.chunkSize = a.chunkSize, in.tiling = a.tiling;
  in.segmentSize = a.segmentSize;
  in.rule = rule;
  in.gate = gateOf(a.g);
  out.dO = a.dO, out.dq = a.dq, out.dk = a.dk, out.dv = a.dv, out.dg = a.dg;
  out.dFinal = a.dFinal, out.dInitial = a.dInitial, out.saved = a.saved;
  return out;
}

/// Gradients that a call writes, with what they are of.
struct Gradient {
  const char *name;
  const Tensor *tensor;
  const char *like;
  const Tensor *likeTensor;
};

} // namespace

ChunkBackwardCall backwardCallOf(const DplrBackwardArguments &a) {
  ChunkBackwardCall out = common(a, ChunkRule::Dplr);
  out.in.a = a.a, out.in.b = a.b, out.da = a.da, out.db = a.db;
  out.in.gate = a.g ? GateKind::Channel : GateKind::None;
  return out;
}
ChunkBackwardCall backwardCallOf(const DeltaRuleBackwardArguments &a) {
  ChunkBackwardCall out = common(a, ChunkRule::Delta);
  out.in.beta = a.beta, out.dBeta = a.dBeta;
  return out;
}
ChunkBackwardCall backwardCallOf(const LinearAttentionBackwardArguments &a) {
  return common(a, ChunkRule::Linear);
}

Status ChunkBackward::check(ChunkBackwardCall call) const {
  const Device &device = jit.device();
  const DplrInputs &in = call.in;
  KILN_TRY(checkInputs(device, words, in));
  KILN_TRY(checkChunks(jit, words, in, /*gradients=*/true, call.saved.has_value()));
  KILN_TRY(checkTensor("do", call.dO).on(device).dtypeOf("v", in.v).shapeOf("v", in.v).stride(3, 1).status());
  if (call.saved)
    KILN_TRY(checkSaved(device, words, in, *call.saved, /*isOutput=*/false));
  if (call.dFinal)
    KILN_TRY(checkState(device, words, in, "dht", *call.dFinal, {DType::F32, in.q.dtype}, false));
  const std::string dq = std::string("d") + words.q, dg = std::string("d") + words.g;
  if (call.dg.has_value() != (in.gate != GateKind::None))
    return Status::invalid(std::string(words.operation) + ": argument '" + dg +
                               (call.dg ? "' is given, but no gates are" : "' is missing, but gates are given"),
                           "give both or none");
  std::array<Gradient, 7> gradients;
  std::size_t count = 0;
  const auto add = [&](const char *name, const Tensor &tensor, const char *like, const Tensor &likeTensor) {
    gradients[count++] = {name, &tensor, like, &likeTensor};
  };
  add(dq.c_str(), call.dq, words.q, in.q), add("dk", call.dk, "k", in.k), add("dv", call.dv, "v", in.v);
  if (in.rule == ChunkRule::Dplr)
    add("da", call.da, "a", in.a), add("db", call.db, "b", in.b);
  if (in.rule == ChunkRule::Delta)
    add("dbeta", call.dBeta, "beta", in.beta);
  if (call.dg)
    add(dg.c_str(), *call.dg, words.g, in.g);
  for (std::size_t n = 0; n < count; ++n) {
    const Gradient &out = gradients[n];
    KILN_TRY(checkOutput(device, words, in, out.name, *out.tensor, out.like, *out.likeTensor));
    auto apart = checkTensor(out.name, *out.tensor).apartFrom("do", call.dO);
    for (std::size_t m = 0; m < n; ++m)
      apart.apartFrom(gradients[m].name, *gradients[m].tensor);
    if (call.saved)
      apart.apartFrom("saved", *call.saved);
    KILN_TRY(apart.status());
  }
  if (!call.dInitial)
    return {};
  KILN_TRY(checkState(device, words, in, "dh0", *call.dInitial, {DType::F32}, true));
  KILN_TRY(checkApart(words, in, "dh0", *call.dInitial));
  auto apart = checkTensor("dh0", *call.dInitial).apartFrom("do", call.dO);
  if (call.dFinal)
    apart.apartFrom("dht", *call.dFinal);
  if (in.initialState) // read by programs that walk the other way
    apart.apartFrom("initial_state", *in.initialState);
  if (call.saved)
    apart.apartFrom("saved", *call.saved);
  for (std::size_t n = 0; n < count; ++n)
    apart.apartFrom(gradients[n].name, *gradients[n].tensor);
  return apart.status();
}

Status ChunkBackward::plan(ChunkBackwardCall call, Plan &plan) const {
  DplrInputs &in = call.in;
  if (!in.scale)
    in.scale = scale;
  if (in.sequences() == 0 || in.heads() == 0)
    return {};
  DplrConfig c = untiled(jit.device(), in, /*gradients=*/true);
  c.final = call.dFinal.has_value();
  c.wantsFirst = call.dInitial.has_value();
  c.lastState = call.dFinal ? call.dFinal->dtype : DType::F32;
  c.saved = call.saved.has_value();
  if (c.saved) // no walk starts there
    c.initial = false, c.state = DType::F32;
  c = tiled(jit, words, in, c, tuned);
  const std::int64_t slots = slotsOf(in, c.chunk);
  const DType dtype = in.q.dtype;
  const auto element = dtype;
  const bool withY = reads(in.rule);
  Tensor rt, rht, dh, yRows, writtenRows;
  const std::array<SlotShape, 5> shapes{{{&rt, !c.saved, dtype, c.dimV, c.dim},
                                         {&rht, !c.saved, dtype, c.dimV, c.dim},
                                         {&dh, true, dtype, c.dimV, c.dim},
                                         {&yRows, withY, dtype, c.chunk, c.dimV},
                                         {&writtenRows, withY, dtype, c.chunk, c.dimV}}};
  const auto bytes = [&](unsigned n) { return bytesOfSlots(shapes[n], in.heads(), slots); };
  Segments segments(in, c);
  KeptChunks kept(in, c); // in the workspace, or where the forward call saved it
  KILN_ASSIGN(const auto parts, plan.workspace({{"r", bytes(0)},
                                                {"rh", bytes(1)},
                                                {"dh", bytes(2)},
                                                {"y", bytes(3)},
                                                {"written", bytes(4)},
                                                {"chunks", c.saved ? 0 : kept.bytes()},
                                                {"segments", segments.bytes()}}));
  for (std::size_t n = 0; n < shapes.size(); ++n)
    placeSlots({&shapes[n], 1}, in.heads(), slots, parts[n]);
  kept.place(c.saved ? call.saved->address : parts[5]);
  segments.place(parts[6]);
  const Tensor none, y = bySlot(yRows, slots), written = bySlot(writtenRows, slots), h = bySlot(kept.h, slots),
                     matrices = bySlot(kept.matrices, slots);
  const DplrConfig ofEach = ofChunks(c), walking = ofChain(c);
  KILN_ASSIGN(const Dim3 everyChunk, gridOf(words.operation, slots * in.heads()));
  KILN_ASSIGN(const Dim3 everySlice, gridOf(words.operation, slots * in.heads() * programsOfGradients(ofEach)));
  KILN_ASSIGN(const Dim3 everyPart, gridOf(words.operation, slots * in.heads() * programsOfValueGradients(ofEach)));
  if (slots && !c.saved) {
    KILN_ASSIGN(JitKernel * kernel,
                maps.get(jit, {element}, ofEach, [&] { return dplrMapsBackward(element, ofEach); }));
    KILN_TRY(launchOnChunks(plan, *kernel, everyChunk, in, named<"do">(call.dO), named<"f">(bySlot(kept.f, slots)),
                            named<"rt">(bySlot(rt, slots)), named<"rht">(bySlot(rht, slots)),
                            named<"decay">(kept.decay), named<"matrices">(matrices)));
  }
  const ChunkMaps walked{.f = kept.f,
                         .rt = rt,
                         .rht = rht,
                         .decay = kept.decay,
                         .qh = c.saved ? kept.qh : none,
                         .dO = c.saved ? call.dO : none};
  Tensor first = c.initial ? *in.initialState : none, dLast = call.dFinal.value_or(none),
         dFirst = call.dInitial.value_or(none);
  if (c.segment) {
    KILN_TRY(segmentKernels.launch(plan, jit, words.operation, in, c, segments, walked, dLast, none, dFirst));
    first = dLast = dFirst = none;
  }
  // Without a chunk anywhere the gradient of the first state is that of the last.
  if (slots || c.wantsFirst) {
    const std::int64_t walks = c.segment ? segments.slots : in.sequences();
    KILN_ASSIGN(JitKernel * kernel, chains.get(jit, {element}, walking, [&] { return dplrChains(element, walking); }));
    KILN_ASSIGN(const Dim3 grid, gridOf(words.operation, directionsOf(c) * walks * in.heads() * (c.dimV / c.blockV)));
    KILN_TRY(plan.launch(*kernel, grid, named<"h0">(first), named<"dht">(dLast), named<"f">(kept.f), named<"rt">(rt),
                         named<"rht">(rht), named<"qh">(walked.qh), named<"do">(walked.dO), named<"decay">(kept.decay),
                         named<"cu_seqlens">(in.cuSeqlens.value_or(none)), named<"starts">(segments.starts),
                         named<"ends">(segments.ends), named<"h">(c.saved ? none : kept.h), named<"dh">(dh),
                         named<"ht">(none), named<"dh0">(dFirst), named<"tokens">(in.tokens()),
                         named<"heads">(static_cast<std::int32_t>(in.heads())),
                         named<"sequences">(static_cast<std::int32_t>(in.sequences()))));
  }
  if (!slots)
    return {};
  KILN_ASSIGN(JitKernel * ofValuesKernel,
              valueGrads.get(jit, {element}, ofEach, [&] { return dplrValueGrads(element, ofEach); }));
  KILN_TRY(launchOnChunks(plan, *ofValuesKernel, everyPart, in, named<"do">(call.dO), named<"h">(h),
                          named<"dh">(bySlot(dh, slots)), named<"matrices">(matrices), named<"dv">(call.dv),
                          named<"y">(y), named<"written">(written)));
  KILN_ASSIGN(JitKernel * kernel, grads.get(jit, {element}, ofEach, [&] { return dplrGrads(element, ofEach); }));
  const Tensor dg = call.dg.value_or(none);
  return launchOnChunks(plan, *kernel, everySlice, in, named<"do">(call.dO), named<"h">(h),
                        named<"dh">(bySlot(dh, slots)), named<"y">(y), named<"written">(written), named<"dq">(call.dq),
                        named<"dk">(call.dk), named<"da">(call.da), named<"db">(call.db),
                        named<"dg">(in.gate == GateKind::Channel ? dg : none),
                        named<"dgate_of_head">(in.gate == GateKind::Head ? dg : none), named<"dbeta">(call.dBeta));
}

std::optional<std::string> ChunkBackward::callText(const ChunkBackwardCall &call, OptionValues options) const {
  std::vector<CallTensor> tensors{{"initial_state", call.in.initialState},
                                  {"cu_seqlens", call.in.cuSeqlens},
                                  {"do", call.dO},
                                  {"dht", call.dFinal},
                                  {"dh0", call.dInitial},
                                  {"saved", call.saved}};
  for (const NamedTensor &input : RuleTensorList(words, call.in))
    tensors.emplace_back(input.name, *input.tensor);
  return callWords(words.operation, tensors, std::move(options));
}

} // namespace kiln::kernels
