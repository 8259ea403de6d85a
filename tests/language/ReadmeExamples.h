// The programs of compiler/language/README.md, word for word (ReadmeTest checks that), and what they record.
// clang-format off: as the page has them
#include "compiler/language/Language.h"

using namespace kiln::language;

struct ScaleConfig {
  int block = 1024;
  int warps = 4;
};

// out = x * factor, block elements a program; grid [ceil(n / block)].
template <Element T> Kernel scale(const ScaleConfig &c) {
  return kernel("scale", {.warps = c.warps, .config = {{"block", c.block}}},
                [&](Arg<Pointer<T>, "x"> x, Arg<Pointer<T>, "out"> out, Arg<f32, "factor"> factor, Arg<i64, "n"> n) {
                  auto offset = cast<i64>(programId()) * c.block + cast<i64>(range(0, c.block));
                  auto mask = offset < n;
                  auto y = cast<f32>(load(x + offset, mask)) * factor;
                  store(out + offset, cast<T>(y), mask);
                });
}

// From a run-time element type.
Kernel scale(DType element, const ScaleConfig &c) {
  return withElement<f32, f16, bf16>(element, "scale", [&]<Element T>() { return scale<T>(c); });
}

bool show(const Kernel &k) {
  if (!k.ok()) {
    std::cerr << k.status().toString() << "\n"; // file:line:column: kernel 'scale': operation: values (remedy)
    return false;
  }
  std::cout << k.text();
  for (const KernelArgument &a : k.arguments())
    std::cout << "// " << a.name << ": " << a.typeText() << "\n";
  return true;
}

// out[r] = the largest element of row r, and where it is; one row a program.
Kernel rowMax(int block) {
  return kernel("row_max", {.config = {{"block", block}}},
                [&](Arg<Pointer<f32>, "x"> x, Arg<Pointer<f32>, "out"> out, Arg<Pointer<i32>, "at"> at,
                    Arg<Stride<f32>, "stride"> stride, Arg<i32, "columns"> columns) {
                  auto row = x + cast<i64>(programId()) * stride;
                  auto lowest = full<f32>({block}, -INFINITY);
                  auto nowhere = full<i32>({block}, -1);
                  auto [best, where] = loop(over(0, columns, block), lowest, nowhere, [&](auto i, auto best, auto where) {
                    auto j = i + range(0, block);
                    auto value = load(row + j, j < columns, -INFINITY);
                    auto better = value > best;
                    return std::tuple{select(better, value, best), select(better, j, where)};
                  });
                  auto [value, index] = reduce(std::tuple{best, where}, [](auto a, auto i, auto b, auto j) {
                    auto left = (a > b) | ((a == b) & (i < j));
                    return std::tuple{select(left, a, b), select(left, i, j)};
                  });
                  store(out + programId(), value);
                  when(index >= 0, [&] { store(at + programId(), index); });
                });
}

// root[i] = the root of x[i] by Newton's method, with as many steps as the slowest element of the block takes.
Kernel roots(int block) {
  return kernel("roots", {.config = {{"block", block}}}, [&](Arg<Pointer<f32>, "x"> x, Arg<Pointer<f32>, "root"> root, Arg<Pointer<i32>, "steps"> steps) {
    auto i = programId() * block + range(0, block);
    auto a = load(x + i);
    auto [guess, count] = whileLoop(a, constant<i32>(0),
                                    [&](auto guess, auto count) { return (max(abs(guess * guess - a)) > 1e-3f) & (count < 50); },
                                    [&](auto guess, auto count) { return std::tuple{(guess + a / guess) / 2, count + 1}; });
    store(root + i, guess);
    store(steps + programId(), count);
  });
}

// out[b, j, i] = x[b, i, j], tiles of 32 x 64, any strides of x, rows of out adjacent.
Kernel flip() {
  return kernel("flip", {}, [&](TensorArg<f16, 3, "x"> x, TensorArg<f16, 3, "out"> out) {
    auto i = programId(Axis::X) * 32, j = programId(Axis::Y) * 64, b = programId(Axis::Z);
    auto from = x.at(b, all, all).tiles({32, 64}, Unit::None);
    auto to = out.at(b, all, all).tiles({64, 32});
    storeView(to, {j, i}, transpose(loadView(from, {i, j})));
  });
}

// y[i] = x[i] with its bytes turned round, several elements a round.
Kernel turnBytes(int block) {
  return kernel("turn_bytes", {.config = {{"block", block}}},
                [&](Arg<Pointer<u32>, "x"> x, Arg<Pointer<u32>, "y"> y, Arg<i32, "n"> n) {
                  loop(over(0, n, block).unroll(4), [&](auto i) {
                    auto j = i + range(0, block);
                    auto turned = inlinePtx<u32(u32)>("prmt.b32 $0, $1, 0, 0x0123;", load(x + j, j < n));
                    store(y + j, turned, j < n);
                  });
                });
}

// out = the sum of the n tiles of 64 rows and 32 columns of x; the next two are copied while one is added.
Kernel sumOfTiles() {
  return kernel("sum_of_tiles", {}, [&](TensorArg<f32, 2, "x"> x, TensorArg<f32, 2, "out"> out, Arg<i32, "n"> n) {
    auto tiles = x.tiles({64, 32});
    auto ring = pipeline<f32, "x">({64, 32}, {.stages = 3});
    ring = fill(fill(ring, tiles, {0, 0}), tiles, {64, 0});
    auto [sum, last] = loop(over(0, n), zeros<f32>({64, 32}), ring, [&](auto i, auto sum, auto ring) {
      auto [taken, tile] = take(ring);
      ring = fill(taken, tiles, {(i + 2) * 64, 0}); // zeros after the last row
      return std::tuple{sum + tile, release(ring)};
    });
    drain(last);
    storeView(out.tiles({64, 32}), {0, 0}, sum);
  });
}

// The eight largest logits of each row, the largest first, and their columns; one row a program.
Kernel bestEight(int columns) {
  return kernel("best_eight", {.config = {{"columns", columns}}},
                [&](Arg<Pointer<f32>, "logits"> logits, Arg<Pointer<f32>, "best"> best, Arg<Pointer<i32>, "at"> at) {
                  auto [value, column] = topK(load(logits + (programId() * columns + range(0, columns))), 8, along(0));
                  store(best + (programId() * 8 + range(0, 8)), value);
                  store(at + (programId() * 8 + range(0, 8)), column);
                });
}

// out[i] = x[i] / (1 - p) with probability 1 - p, else 0; block elements a program.
Kernel dropout(int block) {
  return kernel("dropout", {.config = {{"block", block}}},
                [&](Arg<Pointer<f32>, "x"> x, Arg<Pointer<f32>, "out"> out, Arg<f32, "p"> p, Arg<i64, "seed"> seed, Arg<i64, "n"> n) {
                  auto i = cast<i64>(programId()) * block + cast<i64>(range(0, block));
                  auto kept = rand(seed, i) >= p;
                  store(out + i, select(kept, load(x + i, i < n) / (1 - p), 0), i < n);
                });
}

// y = 30 tanh(x / 30), and its derivative.
Kernel cappedAndSlope(int block) {
  return kernel("capped_and_slope", {.config = {{"block", block}}},
                [&](Arg<Pointer<f32>, "x"> x, Arg<Pointer<f32>, "y"> y, Arg<Pointer<f32>, "slope"> slope) {
                  auto capped = [](const auto &x) { return 30 * tanh(x / 30); };
                  auto i = programId() * block + range(0, block);
                  auto result = capped(variable(load(x + i)));
                  store(y + i, result.value);
                  store(slope + i, slopeOf(result));
                });
}

// clang-format on
