// The text of small kernels, without locations.  It is what a user reads and what the keys hold: changes are
// deliberate.
#include "tests/language/LanguageTesting.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace kiln::language;
using kiln::test::bodyOf;
using kiln::test::withoutLocations;

namespace {

TEST(Golden, Add) {
  const Kernel k =
      kernel("add", {.warps = 8, .config = {{"block", 256}, {"fast", false}, {"scale", 0.5}}},
             [&](Arg<Pointer<f32>, "x"> x, Arg<Pointer<f32>, "y"> y,
                 Arg<Pointer<f32>, "out", ArgTraits{.noalias = true, .divisibility = 16}> out, Arg<i64, "n"> n) {
               auto offset = cast<i64>(programId()) * 256 + cast<i64>(range(0, 256));
               auto mask = offset < n;
               store(out + offset, load(x + offset, mask) + load(y + offset, mask), mask);
             });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  EXPECT_EQ(withoutLocations(k.text()), R"(// add: block = 256, fast = false, scale = 0.5, warps = 8
module {
  func.func @add(%x: !tile.ptr<f32> {tile.name = "x"},
      %y: !tile.ptr<f32> {tile.name = "y"},
      %out: !tile.ptr<f32> {tile.divisibility = 16 : i32, tile.name = "out", tile.noalias},
      %n: i64 {tile.name = "n"}) attributes {tile.kernel, tile.num_warps = 8 : i32} {
    %0 = tile.program_id x
    %1 = arith.extsi %0 : i32 to i64
    %2 = arith.constant 256 : i64
    %3 = arith.muli %1, %2 : i64
    %4 = tile.range 0 to 256 : tensor<256xi32>
    %5 = arith.extsi %4 : tensor<256xi32> to tensor<256xi64>
    %6 = tile.splat %3 : i64 to tensor<256xi64>
    %7 = arith.addi %6, %5 : tensor<256xi64>
    %8 = tile.splat %n : i64 to tensor<256xi64>
    %9 = arith.cmpi slt, %7, %8 : tensor<256xi64>
    %10 = tile.splat %out : !tile.ptr<f32> to tensor<256x!tile.ptr<f32>>
    %11 = tile.addptr %10, %7 : tensor<256x!tile.ptr<f32>>, tensor<256xi64>
    %12 = tile.splat %x : !tile.ptr<f32> to tensor<256x!tile.ptr<f32>>
    %13 = tile.addptr %12, %7 : tensor<256x!tile.ptr<f32>>, tensor<256xi64>
    %14 = tile.load %13 mask %9 : tensor<256x!tile.ptr<f32>>
    %15 = tile.splat %y : !tile.ptr<f32> to tensor<256x!tile.ptr<f32>>
    %16 = tile.addptr %15, %7 : tensor<256x!tile.ptr<f32>>, tensor<256xi64>
    %17 = tile.load %16 mask %9 : tensor<256x!tile.ptr<f32>>
    %18 = arith.addf %14, %17 fastmath<contract> : tensor<256xf32>
    tile.store %11, %18 mask %9 : tensor<256x!tile.ptr<f32>>
    return
  }
}
)");
  EXPECT_EQ(k.name(), "add");
  EXPECT_EQ(k.warps(), 8);
  EXPECT_EQ(k.configText(), "block = 256, fast = false, scale = 0.5, warps = 8");
  ASSERT_EQ(k.arguments().size(), 4u);
  EXPECT_EQ(k.arguments()[2].name, "out");
  EXPECT_EQ(k.arguments()[2].typeText(), "ptr<f32>");
  EXPECT_TRUE(k.arguments()[2].traits.noalias);
  EXPECT_EQ(k.arguments()[2].traits.divisibility, 16);
  EXPECT_EQ(k.arguments()[3].typeText(), "i64");
  EXPECT_FALSE(k.arguments()[3].isPointer);
}

TEST(Golden, SoftmaxRow) {
  const Kernel k =
      kernel("softmax", {}, [&](Arg<Pointer<bf16>, "x"> x, Arg<Pointer<bf16>, "out"> out, Arg<i32, "n"> n) {
        auto column = range(0, 64);
        auto value = select(column < n, cast<f32>(load(x + column, column < n)), -INFINITY);
        auto power = exp(value - max(value), approx);
        store(out + column, cast<bf16>(power / sum(power)), column < n);
      });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  EXPECT_EQ(bodyOf(k), R"(%0 = tile.range 0 to 64 : tensor<64xi32>
%1 = tile.splat %n : i32 to tensor<64xi32>
%2 = arith.cmpi slt, %0, %1 : tensor<64xi32>
%3 = tile.splat %x : !tile.ptr<bf16> to tensor<64x!tile.ptr<bf16>>
%4 = tile.addptr %3, %0 : tensor<64x!tile.ptr<bf16>>, tensor<64xi32>
%5 = tile.splat %n : i32 to tensor<64xi32>
%6 = arith.cmpi slt, %0, %5 : tensor<64xi32>
%7 = tile.load %4 mask %6 : tensor<64x!tile.ptr<bf16>>
%8 = arith.extf %7 : tensor<64xbf16> to tensor<64xf32>
%9 = arith.constant dense<0xFF800000> : tensor<64xf32>
%10 = arith.select %2, %8, %9 : tensor<64xi1>, tensor<64xf32>
%11 = tile.reduce(%10) {axis = 0 : i32} : tensor<64xf32> to f32 {
^bb0(%12: f32, %13: f32):
  %14 = arith.maxnumf %12, %13 : f32
  tile.yield %14 : f32
}
%15 = tile.splat %11 : f32 to tensor<64xf32>
%16 = arith.subf %10, %15 fastmath<contract> : tensor<64xf32>
%17 = math.exp %16 fastmath<afn> : tensor<64xf32>
%18 = tile.splat %out : !tile.ptr<bf16> to tensor<64x!tile.ptr<bf16>>
%19 = tile.addptr %18, %0 : tensor<64x!tile.ptr<bf16>>, tensor<64xi32>
%20 = tile.reduce(%17) {axis = 0 : i32} : tensor<64xf32> to f32 {
^bb0(%21: f32, %22: f32):
  %23 = arith.addf %21, %22 fastmath<contract> : f32
  tile.yield %23 : f32
}
%24 = tile.splat %20 : f32 to tensor<64xf32>
%25 = arith.divf %17, %24 : tensor<64xf32>
%26 = arith.truncf %25 : tensor<64xf32> to tensor<64xbf16>
%27 = tile.splat %n : i32 to tensor<64xi32>
%28 = arith.cmpi slt, %0, %27 : tensor<64xi32>
tile.store %19, %26 mask %28 : tensor<64x!tile.ptr<bf16>>
)");
}

TEST(Golden, LoopsAndConditionsNest) {
  const Kernel k = kernel("nest", {}, [&](Arg<Pointer<f32>, "x"> x, Arg<i64, "n"> n, Arg<i32, "flag"> flag) {
    auto zero = zeros<f32>({32});
    auto [total, last] = loop(over(0, n, 32), zero, x, [&](auto i, auto total, auto p) {
      auto next = when(flag != 0, [&] { return total + load(p + range(0, 32)); }, [&] { return total; });
      when(i == 64, [&] { store(p, 1); });
      return std::tuple{next, p + i};
    });
    loop(over(0, 2), [&](Scalar<i32> i) { store(last + i, 0.5); });
    store(x + range(0, 32), total);
  });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  EXPECT_EQ(bodyOf(k), R"(%0 = arith.constant dense<0.0> : tensor<32xf32>
%1 = arith.constant 0 : i64
%2 = arith.constant 32 : i64
%3:2 = scf.for %4 = %1 to %n step %2 iter_args(%5 = %0, %6 = %x) -> (tensor<32xf32>, !tile.ptr<f32>) : i64 {
  %7 = arith.constant 0 : i32
  %8 = arith.cmpi ne, %flag, %7 : i32
  %9 = scf.if %8 -> (tensor<32xf32>) {
    %10 = tile.range 0 to 32 : tensor<32xi32>
    %11 = tile.splat %6 : !tile.ptr<f32> to tensor<32x!tile.ptr<f32>>
    %12 = tile.addptr %11, %10 : tensor<32x!tile.ptr<f32>>, tensor<32xi32>
    %13 = tile.load %12 : tensor<32x!tile.ptr<f32>>
    %14 = arith.addf %5, %13 fastmath<contract> : tensor<32xf32>
    scf.yield %14 : tensor<32xf32>
  } else {
    scf.yield %5 : tensor<32xf32>
  }
  %15 = arith.constant 64 : i64
  %16 = arith.cmpi eq, %4, %15 : i64
  scf.if %16 {
    %18 = arith.constant 1.0 : f32
    tile.store %6, %18 : !tile.ptr<f32>
    scf.yield
  }
  %19 = tile.addptr %6, %4 : !tile.ptr<f32>, i64
  scf.yield %9, %19 : tensor<32xf32>, !tile.ptr<f32>
}
%20 = arith.constant 0 : i32
%21 = arith.constant 2 : i32
%22 = arith.constant 1 : i32
scf.for %24 = %20 to %21 step %22 : i32 {
  %25 = tile.addptr %3#1, %24 : !tile.ptr<f32>, i32
  %26 = arith.constant 0.5 : f32
  tile.store %25, %26 : !tile.ptr<f32>
  scf.yield
}
%27 = tile.range 0 to 32 : tensor<32xi32>
%28 = tile.splat %x : !tile.ptr<f32> to tensor<32x!tile.ptr<f32>>
%29 = tile.addptr %28, %27 : tensor<32x!tile.ptr<f32>>, tensor<32xi32>
tile.store %29, %3#0 : tensor<32x!tile.ptr<f32>>
)");
}

TEST(Golden, WhileLoops) {
  const Kernel k = kernel("k", {}, [&](Arg<Pointer<i32>, "x"> x, Arg<i32, "n"> n) {
    const auto [left, p] =
        whileLoop(n, x, [](auto n, auto) { return n > 1; }, [](auto n, auto p) { return std::tuple{n - 2, p + n}; });
    whileLoop([&] { return left > 0; }, [&] { store(p, 1); });
  });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  EXPECT_EQ(bodyOf(k),
            R"(%0:2 = scf.while (%1 = %n, %2 = %x) : (i32, !tile.ptr<i32>) -> (i32, !tile.ptr<i32>) {
  %3 = arith.constant 1 : i32
  %4 = arith.cmpi sgt, %1, %3 : i32
  scf.condition(%4) %1, %2 : i32, !tile.ptr<i32>
} do {
^bb0(%5: i32, %6: !tile.ptr<i32>):
  %7 = arith.constant 2 : i32
  %8 = arith.subi %5, %7 : i32
  %9 = tile.addptr %6, %5 : !tile.ptr<i32>, i32
  scf.yield %8, %9 : i32, !tile.ptr<i32>
}
scf.while : () -> () {
  %11 = arith.constant 0 : i32
  %12 = arith.cmpi sgt, %0#0, %11 : i32
  scf.condition(%12)
} do {
  %13 = arith.constant 1 : i32
  tile.store %0#1, %13 : !tile.ptr<i32>
  scf.yield
}
)");
}

TEST(Golden, ReduceTwoOperandsAndScan) {
  const Kernel k = kernel("best", {}, [&](Arg<Pointer<i32>, "x"> x) {
    auto i = reshape(range(0, 64), {4, 16});
    auto value = load(x + i);
    auto [best, at] = reduce(std::tuple{value, i}, along(1), [](auto a, auto i, auto b, auto j) {
      auto left = a > b;
      return std::tuple{select(left, a, b), select(left, i, j)};
    });
    store(x + at, best);
    store(x + i, cumsum(value, along(0), Direction::Reverse));
  });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  EXPECT_EQ(bodyOf(k), R"(%0 = tile.range 0 to 64 : tensor<64xi32>
%1 = tile.reshape %0 : tensor<64xi32> to tensor<4x16xi32>
%2 = tile.splat %x : !tile.ptr<i32> to tensor<4x16x!tile.ptr<i32>>
%3 = tile.addptr %2, %1 : tensor<4x16x!tile.ptr<i32>>, tensor<4x16xi32>
%4 = tile.load %3 : tensor<4x16x!tile.ptr<i32>>
%5:2 = tile.reduce(%4, %1) {axis = 1 : i32} : tensor<4x16xi32>, tensor<4x16xi32> to tensor<4xi32>, tensor<4xi32> {
^bb0(%6: i32, %7: i32, %8: i32, %9: i32):
  %10 = arith.cmpi sgt, %6, %8 : i32
  %11 = arith.select %10, %6, %8 : i32
  %12 = arith.select %10, %7, %9 : i32
  tile.yield %11, %12 : i32, i32
}
%13 = tile.splat %x : !tile.ptr<i32> to tensor<4x!tile.ptr<i32>>
%14 = tile.addptr %13, %5#1 : tensor<4x!tile.ptr<i32>>, tensor<4xi32>
tile.store %14, %5#0 : tensor<4x!tile.ptr<i32>>
%15 = tile.splat %x : !tile.ptr<i32> to tensor<4x16x!tile.ptr<i32>>
%16 = tile.addptr %15, %1 : tensor<4x16x!tile.ptr<i32>>, tensor<4x16xi32>
%17 = tile.scan(%4) {axis = 0 : i32, reverse} : tensor<4x16xi32> {
^bb0(%18: i32, %19: i32):
  %20 = arith.addi %18, %19 : i32
  tile.yield %20 : i32
}
tile.store %16, %17 : tensor<4x16x!tile.ptr<i32>>
)");
}

TEST(Golden, UnsignedAndConversions) {
  const Kernel k = kernel("casts", {}, [&](Arg<u32, "u"> u, Arg<i8, "s"> s, Arg<f16, "h"> h) {
    auto a = u / 3u + (u >> 1) % 5u;
    auto b = cast<i32>(max(a, u));
    auto c = cast<u64>(u) + cast<u64>(cast<u8>(s));
    auto d = cast<f32>(u) + cast<f32>(h) + cast<f32>(s);
    auto e = cast<bf16>(h);
    auto f = cast<u32>(d);
    auto g = select(u < f, b, -1);
    (void)(cast<i1>(g) & !cast<i1>(e) & (c > 4000000000u));
    (void)~f;
    (void)bitcast<i16>(h);
    (void)-s;
  });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  EXPECT_EQ(bodyOf(k), R"(%0 = arith.constant 3 : i32
%1 = arith.divui %u, %0 : i32
%2 = arith.constant 1 : i32
%3 = arith.shrui %u, %2 : i32
%4 = arith.constant 5 : i32
%5 = arith.remui %3, %4 : i32
%6 = arith.addi %1, %5 : i32
%7 = arith.maxui %6, %u : i32
%8 = arith.extui %u : i32 to i64
%9 = arith.extui %s : i8 to i64
%10 = arith.addi %8, %9 : i64
%11 = arith.uitofp %u : i32 to f32
%12 = arith.extf %h : f16 to f32
%13 = arith.addf %11, %12 fastmath<contract> : f32
%14 = arith.sitofp %s : i8 to f32
%15 = arith.addf %13, %14 fastmath<contract> : f32
%16 = arith.extf %h : f16 to f32
%17 = arith.truncf %16 : f32 to bf16
%18 = arith.fptoui %15 : f32 to i32
%19 = arith.cmpi ult, %u, %18 : i32
%20 = arith.constant -1 : i32
%21 = arith.select %19, %7, %20 : i32
%22 = arith.constant 0 : i32
%23 = arith.cmpi ne, %21, %22 : i32
%24 = arith.constant 0.0 : bf16
%25 = arith.cmpf une, %17, %24 : bf16
%26 = arith.constant true
%27 = arith.xori %25, %26 : i1
%28 = arith.andi %23, %27 : i1
%29 = arith.constant 4000000000 : i64
%30 = arith.cmpi ugt, %10, %29 : i64
%31 = arith.andi %28, %30 : i1
%32 = arith.constant -1 : i32
%33 = arith.xori %18, %32 : i32
%34 = arith.bitcast %h : f16 to i16
%35 = arith.constant 0 : i8
%36 = arith.subi %35, %s : i8
)");
}

TEST(Golden, Views) {
  const Kernel k = kernel("views", {}, [&](Arg<Pointer<f16>, "x"> x, Arg<i64, "m"> m, Arg<i32, "n"> n) {
    auto v = makeView(x, {m, n}, {1, m}, {64, 32}, unitDim(0));
    auto w = narrow(v, along(1), 8, n);
    auto tile = loadView(w, {0, n}, Cache::Streaming);
    storeView(makeView(x, {n}, {n}, {64}, Unit::None), {m},
              reduce(tile, along(1), [](auto a, auto b) { return a * b; }));
  });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  EXPECT_EQ(bodyOf(k), R"(%0 = arith.extsi %n : i32 to i64
%1 = arith.constant 1 : i64
%2 = tile.make_view %x, extents [%m, %0], strides [%1, %m] : !tile.view<64x32xf16, unit = 0>, i64
%3 = arith.constant 8 : i32
%4 = tile.narrow_view %2[%3, %n] {dim = 1 : i32} : !tile.view<64x32xf16, unit = 0>, i32
%5 = arith.constant 0 : i32
%6 = tile.load_view %4[%5, %n] cache streaming : !tile.view<64x32xf16, unit = 0>, i32 -> tensor<64x32xf16>
%7 = arith.extsi %n : i32 to i64
%8 = arith.extsi %n : i32 to i64
%9 = tile.make_view %x, extents [%7], strides [%8] : !tile.view<64xf16, unit = none>, i64
%10 = tile.reduce(%6) {axis = 1 : i32} : tensor<64x32xf16> to tensor<64xf16> {
^bb0(%11: f16, %12: f16):
  %13 = arith.mulf %11, %12 fastmath<contract> : f16
  tile.yield %13 : f16
}
tile.store_view %9[%m], %10 : !tile.view<64xf16, unit = none>, i64, tensor<64xf16>
)");
}

TEST(Golden, LoadsThatStay) {
  const Kernel k = kernel("views", {}, [&](Arg<Pointer<f16>, "x"> x, Arg<i32, "n"> n) {
    auto v = makeView(x, {n}, {n}, {64}, Unit::None);
    storeView(v, {n}, loadViewUnstaged(v, {n}));
  });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  EXPECT_EQ(bodyOf(k), R"(%0 = arith.extsi %n : i32 to i64
%1 = arith.extsi %n : i32 to i64
%2 = tile.make_view %x, extents [%0], strides [%1] : !tile.view<64xf16, unit = none>, i64
%3 = tile.load_view %2[%n] {unstaged} : !tile.view<64xf16, unit = none>, i32 -> tensor<64xf16>
tile.store_view %2[%n], %3 : !tile.view<64xf16, unit = none>, i32, tensor<64xf16>
)");
}

TEST(Golden, ContractionIsTurnedOff) {
  const Kernel k = kernel("exact", {}, [&](Arg<f32, "a"> a, Arg<f32, "b"> b) {
    auto x = withoutContraction([&] { return a * b + 1; });
    (void)(x - a);
    (void)div(a, b, approx);
  });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  EXPECT_EQ(bodyOf(k), R"(%0 = arith.mulf %a, %b : f32
%1 = arith.constant 1.0 : f32
%2 = arith.addf %0, %1 : f32
%3 = arith.subf %2, %a fastmath<contract> : f32
%4 = arith.divf %a, %b fastmath<afn> : f32
)");
}

TEST(Golden, ShapesBroadcast) {
  const Kernel k = kernel("shapes", {}, [&](Arg<f32, "s"> s) {
    auto row = expandDims(cast<f32>(range(0, 4)), 0), column = expandDims(cast<f32>(range(0, 8)), 1);
    auto square = row * column;
    auto [a, b] = split(join(square, square));
    (void)transpose(max(a, s));
    (void)transpose(b, {0, 1});
    (void)broadcastTo(row, {1, 4});
  });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  EXPECT_EQ(bodyOf(k), R"(%0 = tile.range 0 to 4 : tensor<4xi32>
%1 = arith.sitofp %0 : tensor<4xi32> to tensor<4xf32>
%2 = tile.expand_dims %1 {axis = 0 : i32} : tensor<4xf32> to tensor<1x4xf32>
%3 = tile.range 0 to 8 : tensor<8xi32>
%4 = arith.sitofp %3 : tensor<8xi32> to tensor<8xf32>
%5 = tile.expand_dims %4 {axis = 1 : i32} : tensor<8xf32> to tensor<8x1xf32>
%6 = tile.broadcast %2 : tensor<1x4xf32> to tensor<8x4xf32>
%7 = tile.broadcast %5 : tensor<8x1xf32> to tensor<8x4xf32>
%8 = arith.mulf %6, %7 fastmath<contract> : tensor<8x4xf32>
%9 = tile.join %8, %8 : tensor<8x4xf32> to tensor<8x4x2xf32>
%10, %11 = tile.split %9 : tensor<8x4x2xf32> to tensor<8x4xf32>
%12 = tile.splat %s : f32 to tensor<8x4xf32>
%13 = arith.maxnumf %10, %12 : tensor<8x4xf32>
%14 = tile.transpose %13 [1, 0] : tensor<8x4xf32> to tensor<4x8xf32>
%15 = tile.transpose %11 [0, 1] : tensor<8x4xf32> to tensor<8x4xf32>
)");
}

} // namespace
