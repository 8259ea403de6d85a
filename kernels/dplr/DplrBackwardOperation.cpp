#include "kernels/dplr/DplrBackwardOperation.h"

#include "kernels/support/Grid.h"
#include "kernels/support/KernelSlots.h"

namespace kiln::kernels {

DplrInputs DplrBackwardOperation::inputsOf(const DplrBackwardArguments &a) const {
  const std::optional<float> scale = rwkv7 ? a.scale.value_or(1.0f) : a.scale;
  return {a.q, a.k, a.v, a.a, a.b, a.g, a.initialState, a.cuSeqlens, scale, a.safeGate, a.lowerBound, a.chunkSize};
}

Status DplrBackwardOperation::check(const DplrBackwardArguments &a) const {
  const Device &device = jit().device();
  const DplrInputs in = inputsOf(a);
  KILN_TRY(checkInputs(device, words, in));
  KILN_TRY(checkTensor("do", a.dO).on(device).dtypeOf("v", a.v).shapeOf("v", a.v).stride(3, 1).status());
  if (a.dFinal)
    KILN_TRY(checkState(device, words, in, "dht", *a.dFinal, {DType::F32, a.q.dtype}, false));
  const std::string dq = std::string("d") + words.q, dg = std::string("d") + words.g;
  struct Output {
    const char *name;
    const Tensor *tensor;
    const char *like;
    const Tensor *likeTensor;
  };
  const std::array<Output, 6> outputs{{{dq.c_str(), &a.dq, words.q, &a.q},
                                       {"dk", &a.dk, "k", &a.k},
                                       {"dv", &a.dv, "v", &a.v},
                                       {"da", &a.da, "a", &a.a},
                                       {"db", &a.db, "b", &a.b},
                                       {dg.c_str(), &a.dg, words.g, &a.g}}};
  for (std::size_t n = 0; n < outputs.size(); ++n) {
    const Output &out = outputs[n];
    KILN_TRY(checkOutput(device, words, in, out.name, *out.tensor, out.like, *out.likeTensor));
    auto apart = checkTensor(out.name, *out.tensor).notOverlapping("do", a.dO);
    for (std::size_t m = 0; m < n; ++m)
      apart.notOverlapping(outputs[m].name, *outputs[m].tensor);
    KILN_TRY(apart.status());
  }
  if (!a.dInitial)
    return {};
  KILN_TRY(checkState(device, words, in, "dh0", *a.dInitial, {DType::F32}, true));
  auto apart = checkTensor("dh0", *a.dInitial);
  if (a.dFinal)
    apart.notOverlapping("dht", *a.dFinal);
  for (const Output &out : outputs)
    apart.notOverlapping(out.name, *out.tensor);
  return apart.status();
}

Status DplrBackwardOperation::plan(const DplrBackwardArguments &a, Plan &plan) const {
  const DplrInputs in = inputsOf(a);
  if (in.sequences() == 0 || in.heads() == 0)
    return {};
  DplrConfig c = configOf(jit().device(), in);
  c.final = a.dFinal.has_value();
  c.wantsFirst = a.dInitial.has_value();
  c.lastState = a.dFinal ? elementOf(a.dFinal->dtype) : language::ElementType::F32;
  const std::int64_t slots = slotsOf(in, c.chunk);
  const DType dtype = a.q.dtype;
  const auto element = elementOf(dtype);
  const auto bytes = [&](std::int64_t elements, std::int64_t size) {
    return static_cast<std::size_t>(in.heads() * slots * elements * size);
  };
  const std::size_t state = bytes(c.dimV * c.dim, 2);
  KILN_ASSIGN(const auto parts, plan.workspace({{"f", bytes(c.dim * c.dim, 2)},
                                                {"r", state},
                                                {"rh", state},
                                                {"h", state},
                                                {"dh", state},
                                                {"decay", bytes(c.dim, 4)}}));
  const auto stateAt = [&](unsigned n) {
    return workspaceTensor(parts[n], dtype, in.heads(), slots * c.dimV, c.dim);
  };
  const Tensor f = workspaceTensor(parts[0], dtype, in.heads(), slots * c.dim, c.dim), rt = stateAt(1),
               rht = stateAt(2), h = stateAt(3), dh = stateAt(4),
               decay = workspaceTensor(parts[5], DType::F32, in.heads(), slots, c.dim);
  const Tensor cu = a.cuSeqlens.value_or(Tensor());
  const auto sequences = static_cast<std::int32_t>(in.sequences());
  const DplrConfig ofEach = ofChunks(c), walking = ofChain(c);
  KILN_ASSIGN(const Dim3 everyChunk, gridOf(words.operation, slots * in.heads()));
  if (slots) {
    KILN_ASSIGN(JitKernel * kernel, maps.get(jit(), {dtype, ofEach}, [&] { return dplrMapsBackward(element, ofEach); }));
    KILN_TRY(plan.launch(*kernel, everyChunk, named<"q">(a.q), named<"k">(a.k), named<"v">(a.v), named<"a">(a.a),
                         named<"b">(a.b), named<"g">(a.g), named<"do">(a.dO), named<"cu_seqlens">(cu), 
                         named<"f">(bySlot(f, slots)), named<"rt">(bySlot(rt, slots)), named<"rht">(bySlot(rht, slots)),
                         named<"decay">(decay), named<"sequences">(sequences),
                         named<"scale">(scaleOf(in))));
  }
  // Without a chunk anywhere the gradient of the first state is that of the last.
  if (slots || c.wantsFirst) {
    KILN_ASSIGN(JitKernel * kernel, chains.get(jit(), {dtype, walking}, [&] { return dplrChains(element, walking); }));
    KILN_ASSIGN(const Dim3 grid,
                gridOf(words.operation, 2 * in.sequences() * in.heads() * (c.dimV / c.blockV)));
    KILN_TRY(plan.launch(*kernel, grid, named<"h0">(a.initialState.value_or(Tensor())),
                         named<"dht">(a.dFinal.value_or(Tensor())), named<"f">(f), named<"rt">(rt), named<"rht">(rht),
                         named<"decay">(decay), named<"cu_seqlens">(cu), named<"h">(h), named<"dh">(dh),
                         named<"dh0">(a.dInitial.value_or(Tensor())), named<"tokens">(in.tokens()),
                         named<"heads">(static_cast<std::int32_t>(in.heads()))));
  }
  if (!slots)
    return {};
  KILN_ASSIGN(JitKernel * kernel, grads.get(jit(), {dtype, ofEach}, [&] { return dplrGrads(element, ofEach); }));
  return plan.launch(*kernel, everyChunk, named<"q">(a.q), named<"k">(a.k), named<"v">(a.v), named<"a">(a.a),
                     named<"b">(a.b), named<"g">(a.g), named<"do">(a.dO), named<"cu_seqlens">(cu), 
                     named<"h">(bySlot(h, slots)), named<"dh">(bySlot(dh, slots)), named<"dq">(a.dq), named<"dk">(a.dk), named<"dv">(a.dv), named<"da">(a.da),
                     named<"db">(a.db), named<"dg">(a.dg), named<"sequences">(sequences),
                     named<"scale">(scaleOf(in)));
}

} // namespace kiln::kernels
