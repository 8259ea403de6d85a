#include "kernels/dplr/DplrBackwardOperation.h"

#include "kernels/support/Grid.h"
#include "kernels/support/KernelSlots.h"

namespace kiln::kernels {
namespace {

/// What every kind of arguments has under the same names.
template <typename Arguments> ChunkBackwardCall common(const Arguments &a, ChunkRule rule) {
  ChunkBackwardCall out;
  DplrInputs &in = out.in;
  in.q = a.q, in.k = a.k, in.v = a.v, in.g = a.g.value_or(Tensor());
  in.initialState = a.initialState, in.cuSeqlens = a.cuSeqlens, in.scale = a.scale;
  in.safeGate = a.safeGate, in.lowerBound = a.lowerBound, in.chunkSize = a.chunkSize, in.warps = a.warps;
  in.segmentSize = a.segmentSize;
  in.rule = rule;
  in.gate = gateOf(a.g);
  out.dO = a.dO, out.dq = a.dq, out.dk = a.dk, out.dv = a.dv, out.dg = a.dg;
  out.dFinal = a.dFinal, out.dInitial = a.dInitial;
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
  KILN_TRY(checkChunks(device, words, in));
  KILN_TRY(checkTensor("do", call.dO).on(device).dtypeOf("v", in.v).shapeOf("v", in.v).stride(3, 1).status());
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
  DplrConfig c = configOf(jit.device(), in, /*gradients=*/true);
  c.final = call.dFinal.has_value();
  c.wantsFirst = call.dInitial.has_value();
  c.lastState = call.dFinal ? elementOf(call.dFinal->dtype) : language::ElementType::F32;
  const bool hasF = reads(in.rule), decays = in.gate != GateKind::None;
  const std::int64_t slots = slotsOf(in, c.chunk);
  const DType dtype = in.q.dtype;
  const auto element = elementOf(dtype);
  const auto bytes = [&](std::int64_t elements, std::int64_t size) {
    return static_cast<std::size_t>(in.heads() * slots * elements * size);
  };
  const std::size_t state = bytes(c.dimV * c.dim, 2);
  Segments segments(in, c);
  KILN_ASSIGN(const auto parts, plan.workspace({{"f", hasF ? bytes(rowsOfF(c) * c.dim, 2) : 0},
                                                {"r", state},
                                                {"rh", state},
                                                {"h", state},
                                                {"dh", state},
                                                {"decay", decays ? bytes(c.dim, 4) : 0},
                                                {"y", hasF ? bytes(c.chunk * c.dimV, 2) : 0},
                                                {"written", hasF ? bytes(c.chunk * c.dimV, 2) : 0},
                                                {"matrices", bytes(keptMatrices(in.rule) * c.chunk * c.chunk, 2)},
                                                {"segments", segments.bytes()}}));
  segments.place(parts[9]);
  const auto stateAt = [&](unsigned n) { return workspaceTensor(parts[n], dtype, in.heads(), slots * c.dimV, c.dim); };
  const Tensor none;
  const Tensor f = hasF ? workspaceTensor(parts[0], dtype, in.heads(), slots * rowsOfF(c), c.dim) : none,
               rt = stateAt(1), rht = stateAt(2), h = stateAt(3), dh = stateAt(4),
               decay = decays ? workspaceTensor(parts[5], DType::F32, in.heads(), slots, c.dim) : none;
  const auto ofValues = [&](unsigned n) {
    return hasF ? bySlot(workspaceTensor(parts[n], dtype, in.heads(), slots * c.chunk, c.dimV), slots) : none;
  };
  const Tensor matrices =
      bySlot(workspaceTensor(parts[8], dtype, in.heads(), slots * keptMatrices(in.rule) * c.chunk, c.chunk), slots);
  const DplrConfig ofEach = ofChunks(c), walking = ofChain(c);
  KILN_ASSIGN(const Dim3 everyChunk, gridOf(words.operation, slots * in.heads()));
  KILN_ASSIGN(const Dim3 everySlice, gridOf(words.operation, slots * in.heads() * programsOfGradients(ofEach)));
  KILN_ASSIGN(const Dim3 everyPart, gridOf(words.operation, slots * in.heads() * programsOfValueGradients(ofEach)));
  if (slots) {
    KILN_ASSIGN(JitKernel * kernel, maps.get(jit, {dtype, ofEach}, [&] { return dplrMapsBackward(element, ofEach); }));
    KILN_TRY(launchOnChunks(plan, *kernel, everyChunk, in, named<"do">(call.dO),
                            named<"f">(hasF ? bySlot(f, slots) : none), named<"rt">(bySlot(rt, slots)),
                            named<"rht">(bySlot(rht, slots)), named<"decay">(decay), named<"matrices">(matrices)));
  }
  Tensor first = in.initialState.value_or(none), dLast = call.dFinal.value_or(none),
         dFirst = call.dInitial.value_or(none);
  if (c.segment) {
    KILN_TRY(
        segmentKernels.launch(plan, jit, words.operation, in, c, segments, {f, rt, rht, decay}, dLast, none, dFirst));
    first = dLast = dFirst = none;
  }
  // Without a chunk anywhere the gradient of the first state is that of the last.
  if (slots || c.wantsFirst) {
    const std::int64_t walks = c.segment ? segments.slots : in.sequences();
    KILN_ASSIGN(JitKernel * kernel, chains.get(jit, {dtype, walking}, [&] { return dplrChains(element, walking); }));
    KILN_ASSIGN(const Dim3 grid, gridOf(words.operation, 2 * walks * in.heads() * (c.dimV / c.blockV)));
    KILN_TRY(plan.launch(*kernel, grid, named<"h0">(first), named<"dht">(dLast), named<"f">(f), named<"rt">(rt),
                         named<"rht">(rht), named<"decay">(decay), named<"cu_seqlens">(in.cuSeqlens.value_or(none)),
                         named<"starts">(segments.starts), named<"ends">(segments.ends), named<"h">(h), named<"dh">(dh),
                         named<"ht">(none), named<"dh0">(dFirst), named<"tokens">(in.tokens()),
                         named<"heads">(static_cast<std::int32_t>(in.heads())),
                         named<"sequences">(static_cast<std::int32_t>(in.sequences()))));
  }
  if (!slots)
    return {};
  KILN_ASSIGN(JitKernel * ofValuesKernel,
              valueGrads.get(jit, {dtype, ofEach}, [&] { return dplrValueGrads(element, ofEach); }));
  KILN_TRY(launchOnChunks(plan, *ofValuesKernel, everyPart, in, named<"do">(call.dO), named<"h">(bySlot(h, slots)),
                          named<"dh">(bySlot(dh, slots)), named<"matrices">(matrices), named<"dv">(call.dv),
                          named<"y">(ofValues(6)), named<"written">(ofValues(7))));
  KILN_ASSIGN(JitKernel * kernel, grads.get(jit, {dtype, ofEach}, [&] { return dplrGrads(element, ofEach); }));
  const Tensor dg = call.dg.value_or(none);
  return launchOnChunks(plan, *kernel, everySlice, in, named<"do">(call.dO), named<"h">(bySlot(h, slots)),
                        named<"dh">(bySlot(dh, slots)), named<"y">(ofValues(6)), named<"written">(ofValues(7)),
                        named<"dq">(call.dq), named<"dk">(call.dk), named<"da">(call.da), named<"db">(call.db),
                        named<"dg">(in.gate == GateKind::Channel ? dg : none),
                        named<"dgate_of_head">(in.gate == GateKind::Head ? dg : none), named<"dbeta">(call.dBeta));
}

} // namespace kiln::kernels
