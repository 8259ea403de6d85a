#include "kernels/dplr/DplrStep.h"

#include "kernels/dplr/Chunks.h"

namespace kiln::kernels {

using namespace language;

namespace {

/// Rows are read and written in vectors if they are whole ones.
constexpr TensorTraits rows{.wholeRows = true}, maybeRows{.wholeRows = true, .optional = true};

template <Element T> Tile<f32> wide(const Tile<T> &x) {
  if constexpr (std::same_as<T, f32>)
    return x;
  else
    return cast<f32>(x);
}
template <Element T> Tile<T> narrowed(const Tile<f32> &x) {
  if constexpr (std::same_as<T, f32>)
    return x;
  else
    return cast<T>(x);
}

/// `x`, computed from `other` so that it lies in threads as that does: a product of two rows by themselves would be
/// made in the rows' own layout and then brought to the state's, K x V numbers instead of V.
Tile<f32> placedAs(const Tile<f32> &other, const Tile<f32> &x) {
  return max(min(other, 0.0f), 0.0f) + x; // 0 + x, whatever `other` holds
}

/// T: of activations and o; G: of gates; H, L: of the first and the last state; I: of offsets.
template <Element T, Element G, Element H, Element L, Element I> Kernel stepOf(const DplrStepConfig &c) {
  const KernelOptions options{.warps = 1,
                              .stages = c.stages,
                              // Of decays alone; their errors are far below those of the sums that they are in.
                              .grade = approx,
                              .config = entriesOf(c)};
  return kernel("dplr_step", options,
                [&](TensorArg<T, 4, "q", rows> q, TensorArg<T, 4, "k", rows> k, TensorArg<T, 4, "v", rows> v,
                    TensorArg<T, 4, "a", rows> a, TensorArg<T, 4, "b", rows> b, TensorArg<G, 4, "g", rows> g,
                    TensorArg<H, 4, "h0", maybeRows> h0, TensorArg<I, 1, "cu_seqlens", maybe> cu,
                    TensorArg<T, 4, "o", rows> o, TensorArg<L, 4, "ht", maybeRows> ht, Arg<f32, "scale"> scale) {
                  const auto heads = cast<i32>(q.extent(2)), parts = ceilDiv(cast<i32>(v.extent(3)), c.blockV);
                  const auto column = programId() % parts * c.blockV, rest = programId() / parts;
                  const auto head = rest % heads, n = rest / heads;
                  const SequenceOfTokens here = sequenceAt(n, q.extent(1), offsetsOf<I>(cu), c.packed, 1);

                  const auto qs = here.of(q, head).tiles({1, c.dim}), ks = here.of(k, head).tiles({1, c.dim}),
                             as = here.of(a, head).tiles({1, c.dim}), bs = here.of(b, head).tiles({1, c.dim});
                  const auto gs = here.of(g, head).tiles({1, c.dim});
                  const auto vs = here.of(v, head).tiles({1, c.blockV}), out = here.of(o, head).tiles({1, c.blockV});

                  // The state lies transposed, [blockV, K], so that rows of tokens meet it as they are.  A state that
                  // is not there has no elements: it reads as zeros and is not written.
                  const auto stateAt = [&](const auto &states) {
                    return states.at(n, head, all, all).tiles({c.dim, c.blockV});
                  };
                  const auto first = transpose(wide<H>(loadView(stateAt(h0), {0, column})));

                  // Tokens depend on each other: the time of one is that of two sums over K, each a row of additions
                  // and some shuffles, and nothing but tokens of other programs runs meanwhile.  Rows of later tokens
                  // are on their way meanwhile (`stages`), where their addresses are whole words; if not, each token
                  // waits for its own.
                  const auto last = loop(over(0, here.rows), first, [&](auto t, auto state) {
                    const auto ra = loadView(as, {t, 0}), rb = loadView(bs, {t, 0}), rk = loadView(ks, {t, 0}),
                               rq = loadView(qs, {t, 0});
                    const auto rg = loadView(gs, {t, 0});
                    const auto rv = loadView(vs, {t, column});
                    const auto read = expandDims(sum(state * wide<T>(ra), along(1)), 1);
                    // A gate of minus infinity: e^g is 0, and nothing is left of the state.
                    const auto next = state * exp(wide<G>(rg)) + read * wide<T>(rb) +
                                      placedAs(read, transpose(wide<T>(rv))) * wide<T>(rk);
                    const auto result = sum(next * wide<T>(rq), along(1)) * scale;
                    storeView(out, {t, column}, narrowed<T>(expandDims(result, 0)));
                    return next;
                  });
                  storeView(stateAt(ht), {0, column}, narrowed<L>(transpose(last)));
                });
}

template <Element T, Element G, Element I> Kernel withStates(const DplrStepConfig &c) {
  return withElement<f32, f16, bf16>(c.state, "dplr_step", [&]<Element H>() {
    if constexpr (std::same_as<H, f32>)
      return withElement<f32>(c.lastState, "dplr_step", [&]<Element L>() { return stepOf<T, G, H, L, I>(c); });
    else
      return withElement<f32, H>(c.lastState, "dplr_step", [&]<Element L>() { return stepOf<T, G, H, L, I>(c); });
  });
}

template <Element T, Element I> Kernel withGates(const DplrStepConfig &c) {
  if constexpr (std::same_as<T, f32>)
    return withElement<f32>(c.gates, "dplr_step", [&]<Element G>() { return withStates<T, G, I>(c); });
  else
    return withElement<f32, T>(c.gates, "dplr_step", [&]<Element G>() { return withStates<T, G, I>(c); });
}

} // namespace

Kernel dplrStep(DType element, const DplrStepConfig &c) {
  return withElement<f32, f16, bf16>(element, "dplr_step", [&]<Element T>() {
    return withElement<i32, i64>(c.offsets, "dplr_step", [&]<Element I>() { return withGates<T, I>(c); });
  });
}

} // namespace kiln::kernels
