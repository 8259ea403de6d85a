#include "kernels/matmul/Matmul.h"

#include "compiler/language/Language.h"

namespace kiln::kernels {

using namespace language;

namespace {

/// Where a program's tile lies; `slot`: which product, and part of it.
struct TilePlace {
  Scalar<i32> slot;
  Scalar<i64> row, column;
};

/// Numbers of tiles fit 32 bits, as those of programs do.  Dividing 64-bit ones calls subroutines of the assembler, in
/// whose presence it does not let products of warpgroups overlap.
TilePlace placeOf(const Scalar<i32> &program, const Scalar<i64> &m, const Scalar<i64> &n, const MatmulConfig &c) {
  const auto down = cast<i32>(ceilDiv(m, c.blockM)), across = cast<i32>(ceilDiv(n, c.blockN)), tiles = down * across;
  const auto slot = program / tiles, tile = program % tiles;
  const auto tall = min(down, c.groupM), inGroup = across * tall;
  const auto group = tile / inGroup, first = group * tall;
  const auto rows = min(down - first, tall); // the last group may be smaller
  const auto rest = tile % inGroup;
  return {slot, cast<i64>(first + rest % rows) * c.blockM, cast<i64>(rest / rows) * c.blockN};
}

/// out, and what the epilogue reads.
template <Element O> struct Destination {
  TensorView<O, 3> out;
  TensorView<O, 1> bias;
  TensorView<O, 3> other;
  Scalar<f32> scale;
  Scalar<i64> m, n;
  Status *problem; ///< of the recording

  View<O> view(const TensorView<O, 3> &tensor, const Scalar<i64> &batch, const MatmulConfig &c, int unit) const {
    return tensor.at(batch, all, all).withExtents(m, n).tiles({c.blockM, c.blockN}, unitDim(unit));
  }

  /// The epilogue asks for what the call does not give.
  Tile<f32> missing(const char *name) const {
    *problem =
        Status::invalid(std::string("matmul: the epilogue calls ") + name + "(), and the call has no '" + name + "'",
                        std::string("give the argument ") + name);
    return zeros<f32>({1, 1});
  }

  /// The epilogue of the configuration, and the store.
  void finish(const Tile<f32> &sums, const Scalar<i64> &batch, const TilePlace &at, const MatmulConfig &c) const {
    EpilogueTile tile{batch, at.row, at.column, c.blockM, c.blockN, scale, {}, {}};
    tile.bias = [&] {
      if (!c.bias)
        return missing("bias");
      const auto of = bias.withExtents(n).tiles({c.blockN}, Unit::None);
      return expandDims(cast<f32>(loadView(of, {at.column})), 0);
    };
    tile.other = [&] {
      if (!c.other)
        return missing("other");
      return cast<f32>(loadView(view(other, batch, c, c.otherUnit), {at.row, at.column}));
    };
    const Epilogue epilogue = inOrder({c.scaled ? scaled() : Epilogue(), c.bias ? biased() : Epilogue(),
                                       activated(c.activation), c.epilogue ? *c.epilogue : Epilogue()});
    storeView(view(out, batch, c, c.outUnit), {at.row, at.column}, cast<O>(epilogue ? epilogue(sums, tile) : sums));
  }
};

template <Element T, Element O> Kernel matmulOf(const MatmulConfig &c) {
  Status problem;
  if (c.persistent && c.sums != Sums::Finish)
    return Kernel::failed(Status::invalid("matmul: persistent programs with sums that another launch finishes",
                                          "leave persistent out: each program of a split product takes one tile"));
  Kernel recorded = kernel(
      "matmul", {.warps = c.warps, .stages = c.stages, .config = entriesOf(c)},
      [&](TensorArg<T, 3, "a"> a, TensorArg<T, 3, "b"> b, TensorArg<O, 3, "out"> out,
          TensorArg<O, 1, "bias", maybe> bias, TensorArg<O, 3, "other", maybe> other, Arg<f32, "scale"> scale,
          Arg<i64, "splits"> splits) {
        const auto m = out.extent(1), n = out.extent(2), k = a.extent(2);
        using S = Sum<T, T>;
        const auto takeTile = [&](const Scalar<i32> &program) {
          const TilePlace at = placeOf(program, m, n, c);
          Scalar<i64> batch = cast<i64>(at.slot), begin = k * 0, end = k;
          if (c.sums != Sums::Finish) {
            const auto parts = cast<i32>(splits), steps = cast<i32>(ceilDiv(k, c.blockK));
            batch = cast<i64>(at.slot / parts);
            const auto length = cast<i64>(ceilDiv(steps, parts)) * c.blockK; // whole steps
            begin = min(k, cast<i64>(at.slot % parts) * length);
            end = min(k, begin + length);
          }
          const auto left = a.at(batch, all, all).withExtents(m, k).tiles({c.blockM, c.blockK}, unitDim(c.aUnit));
          const auto right = b.at(batch, all, all).withExtents(k, n).tiles({c.blockK, c.blockN}, unitDim(c.bUnit));
          const auto total = loop(over(begin, end, c.blockK), zeros<S>({c.blockM, c.blockN}), [&](auto i, auto sum) {
            const auto x = loadView(left, {at.row, i}), y = loadView(right, {i, at.column});
            if constexpr (std::same_as<T, f32>)
              return dot(x, y, sum, c.precision);
            else
              return dot(x, y, sum);
          });
          const Destination<O> to{out, bias, other, scale, m, n, &problem};
          if (c.sums == Sums::Finish) {
            if constexpr (std::same_as<S, f32>)
              to.finish(total, batch, at, c);
          }
          if constexpr (std::same_as<O, S>) {
            if (c.sums == Sums::Part || (c.sums == Sums::Finish && std::same_as<S, i32>)) {
              storeView(to.view(out, cast<i64>(at.slot), c, c.outUnit), {at.row, at.column}, total);
            } else if (c.sums == Sums::Atomic) {
              const auto rows = expandDims(at.row + range<i64>(0, c.blockM), 1),
                         columns = expandDims(at.column + range<i64>(0, c.blockN), 0);
              atomicAdd(out.at(batch, all, all).pointer() + (rows * out.stride(1) + columns * out.stride(2)), total,
                        (rows < m) & (columns < n));
            }
          }
        };
        if (!c.persistent)
          return takeTile(programId());
        const auto tiles = cast<i32>(out.extent(0)) * cast<i32>(ceilDiv(m, c.blockM)) * cast<i32>(ceilDiv(n, c.blockN));
        loop(over(programId(), tiles, numPrograms()).stages(1), takeTile);
      });
  return problem.ok() ? recorded : Kernel::failed(problem);
}

template <Element S, Element O> Kernel finishOf(const MatmulConfig &c) {
  Status problem;
  Kernel recorded =
      kernel("matmul_finish", {.warps = c.warps, .config = entriesOf(c)},
             [&](TensorArg<S, 4, "parts"> parts, TensorArg<O, 3, "out"> out, TensorArg<O, 1, "bias", maybe> bias,
                 TensorArg<O, 3, "other", maybe> other, Arg<f32, "scale"> scale) {
               const auto m = out.extent(1), n = out.extent(2), splits = parts.extent(1);
               const TilePlace at = placeOf(programId(), m, n, c);
               const auto batch = cast<i64>(at.slot);
               const auto total = loop(over(0, splits), zeros<S>({c.blockM, c.blockN}), [&](auto split, auto sum) {
                 const auto part = parts.at(batch, split, all, all).withExtents(m, n).tiles({c.blockM, c.blockN});
                 return sum + loadView(part, {at.row, at.column});
               });
               const Destination<O> to{out, bias, other, scale, m, n, &problem};
               if constexpr (std::same_as<S, f32>)
                 to.finish(total, batch, at, c);
               else
                 storeView(to.view(out, batch, c, c.outUnit), {at.row, at.column}, total);
             });
  return problem.ok() ? recorded : Kernel::failed(problem);
}

template <Element T> Kernel zeroOf() {
  constexpr int block = 1024;
  return kernel("matmul_zero", {.warps = 4}, [&](TensorArg<T, 1, "out"> out) {
    storeView(out.tiles({block}), {cast<i64>(programId()) * block}, zeros<T>({block}));
  });
}

} // namespace

Kernel matmul(DType element, DType out, const MatmulConfig &config) {
  if (element == DType::I8)
    return withElement<i32>(out, "matmul of i8", [&]<Element O>() { return matmulOf<i8, O>(config); });
  return withElement<f16, bf16, f8e4m3, f8e5m2, f32>(element, "matmul", [&]<Element T>() {
    return withElement<f32, f16, bf16>(out, "matmul", [&]<Element O>() { return matmulOf<T, O>(config); });
  });
}

Kernel matmulFinish(DType sums, DType out, const MatmulConfig &config) {
  if (sums == DType::I32)
    return withElement<i32>(out, "matmul_finish of i32", [&]<Element O>() { return finishOf<i32, O>(config); });
  return withElement<f32, f16, bf16>(out, "matmul_finish", [&]<Element O>() { return finishOf<f32, O>(config); });
}

Kernel matmulZero(DType element) {
  return withElement<f32, i32>(element, "matmul_zero", [&]<Element T>() { return zeroOf<T>(); });
}

} // namespace kiln::kernels
