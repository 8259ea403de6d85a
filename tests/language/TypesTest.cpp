// What C++ itself refuses: no operation mixes element types, and every operation takes the types that it is for.
// WrongTypes.cpp checks the messages of those that a constraint cannot express.
#include "tests/language/LanguageTesting.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace kiln::language;

namespace {

template <typename T> T value();

#define ACCEPTED(...) static_assert(requires { __VA_ARGS__; })
#define REFUSED(...) static_assert(!requires { __VA_ARGS__; })

// A requires-expression gives false, and no error, in a template whose parameter it depends on: D.
template <typename D, typename X> struct Dependent {
  using Type = X;
};
#define V(...) value<typename Dependent<D, __VA_ARGS__>::Type>()

template <typename D, bool isTile> void elementwise() {
#define A(T) V(std::conditional_t<isTile, Tile<T>, Scalar<T>>)
  ACCEPTED(A(f32) + A(f32));
  ACCEPTED(A(f32) + 1);
  ACCEPTED(2.5 * A(f16));
  ACCEPTED(A(i32) + 1);
  ACCEPTED(A(u32) % 7u);
  ACCEPTED(A(i64) << 3);
  ACCEPTED(A(i1) & A(i1));
  ACCEPTED(!A(i1));
  ACCEPTED(~A(u8));
  ACCEPTED(-A(f64));
  ACCEPTED(A(i32) == A(i32));
  ACCEPTED(A(i1) != true);
  REFUSED(A(f32) + A(f16));
  REFUSED(A(f16) + A(bf16));
  REFUSED(A(i32) + A(i64));
  REFUSED(A(i32) + A(u32));
  REFUSED(A(i32) + A(f32));
  REFUSED(A(i32) < A(i64));
  REFUSED(A(f8e4m3) + A(f8e4m3));
  REFUSED(A(i1) + A(i1));
  REFUSED(A(f32) % A(f32));
  REFUSED(A(f32) & A(f32));
  REFUSED(A(f32) << 1);
  REFUSED(~A(f32));
  REFUSED(!A(i32));
  REFUSED(-A(i1));
  REFUSED(A(i1) < A(i1));
  REFUSED(A(i32) * 0.5);
  REFUSED(A(f32) + true);
  REFUSED(A(i1) & 1);
  REFUSED(A(f32) + "x");

  ACCEPTED(exp(A(f16)));
  ACCEPTED(exp(A(f32), approx));
  ACCEPTED(abs(A(i32)));
  ACCEPTED(max(A(i32), 3));
  ACCEPTED(max(3.0f, A(f32)));
  ACCEPTED(maximum(A(f32), A(f32)));
  ACCEPTED(pow(A(f32), 2));
  ACCEPTED(fma(A(f32), 2.0f, A(f32)));
  ACCEPTED(select(A(i1), A(f32), 0.0f));
  ACCEPTED(select(A(i1), 0, A(i64)));
  ACCEPTED(where(A(i1), A(f32), A(f32)));
  ACCEPTED(cast<f32>(A(i1)));
  ACCEPTED(bitcast<i32>(A(f32)));
  ACCEPTED(ceilDiv(A(i64), 64));
  REFUSED(exp(A(i32)));
  REFUSED(exp(A(f8e5m2)));
  REFUSED(floor(A(i32), approx));
  REFUSED(floor(A(f32), approx));
  REFUSED(abs(A(u32)));
  REFUSED(max(A(f32), A(f16)));
  REFUSED(max(A(i32), 0.5));
  REFUSED(maximum(A(i32), A(i32)));
  REFUSED(pow(A(i32), A(i32)));
  REFUSED(fma(A(f32), A(f16), A(f32)));
  REFUSED(select(A(i32), A(f32), A(f32)));
  REFUSED(select(A(i1), A(f32), A(f64)));
  REFUSED(select(A(i1), 1.0f, 0.0f));
  REFUSED(where(A(i32), A(f32), A(f32)));
  REFUSED(bitcast<i32>(A(f16)));
  REFUSED(ceilDiv(A(f32), 2));
  REFUSED(static_cast<bool>(A(i1)));
  REFUSED(A(i1) && A(i1));
#undef A
}

template <typename D> void memory() {
  ACCEPTED(V(Pointer<f32>) + 1);
  ACCEPTED(V(Pointer<f32>) + V(Scalar<i64>));
  ACCEPTED(V(Pointer<f32>) + V(Tile<i32>));
  ACCEPTED(V(Tile<Pointer<f32>>) - V(Tile<i64>));
  REFUSED(V(Pointer<f32>) + 0.5);
  REFUSED(V(Pointer<f32>) + V(Scalar<f32>));
  REFUSED(V(Pointer<f32>) + V(Scalar<u32>));
  REFUSED(V(Pointer<f32>) + V(Pointer<f32>));
  REFUSED(V(Pointer<f32>) * 2);
  REFUSED(V(Tile<Pointer<f32>>) + V(Tile<i1>));

  static_assert(std::same_as<decltype(load(V(Pointer<f32>))), Scalar<f32>>);
  static_assert(std::same_as<decltype(load(V(Pointer<f32>) + V(Tile<i32>))), Tile<f32>>);
  ACCEPTED(load(V(Tile<Pointer<f32>>), V(Scalar<i1>)));
  ACCEPTED(load(V(Tile<Pointer<f32>>), V(Tile<i1>), 1, Cache::Streaming));
  ACCEPTED(load(V(Tile<Pointer<f32>>), {}, {}, Cache::Global));
  REFUSED(load(V(Tile<f32>)));
  REFUSED(load(V(Tile<Pointer<f32>>), V(Tile<i32>)));
  REFUSED(load(V(Tile<Pointer<f32>>), V(Tile<i1>), V(Tile<f16>)));
  REFUSED(load(V(Pointer<f32>), V(Tile<i1>)));
  ACCEPTED(store(V(Tile<Pointer<f32>>), 0));
  ACCEPTED(store(V(Tile<Pointer<f32>>), V(Scalar<f32>)));
  REFUSED(store(V(Tile<Pointer<f32>>), V(Tile<f16>)));
  REFUSED(store(V(Pointer<f32>), V(Tile<f32>)));
  REFUSED(store(V(Tile<Pointer<f32>>), V(Tile<i32>)));

  ACCEPTED(atomicAdd(V(Tile<Pointer<f32>>), 1.0f));
  ACCEPTED(atomicMax(V(Pointer<u32>), 1u, {}, Order::AcqRel, Scope::Sys));
  ACCEPTED(atomicCas(V(Pointer<i32>), 0, 1));
  REFUSED(atomicAnd(V(Tile<Pointer<f32>>), 1.0f));
  REFUSED(atomicAdd(V(Pointer<i8>), 1));
  REFUSED(atomicExchange(V(Pointer<f16>), 1));
  REFUSED(atomicCas(V(Pointer<i8>), 0, 1));
  REFUSED(gather(V(Tile<f32>), V(Tile<f32>), along(0)));

  ACCEPTED(dot(V(Tile<bf16>), V(Tile<bf16>), V(Tile<f32>)));
  ACCEPTED(dot(V(Tile<f8e4m3>), V(Tile<f8e5m2>), V(Tile<f32>)));
  ACCEPTED(dot(V(Tile<i8>), V(Tile<i8>), V(Tile<i32>)));
  ACCEPTED(dot(V(Tile<f32>), V(Tile<f32>), V(Tile<f32>), Precision::Tf32x3));
  REFUSED(dot(V(Tile<f16>), V(Tile<bf16>), V(Tile<f32>)));
  REFUSED(dot(V(Tile<f16>), V(Tile<f16>), V(Tile<f16>)));
  REFUSED(dot(V(Tile<f16>), V(Tile<f16>), V(Tile<f32>), Precision::Tf32));
  REFUSED(dot(V(Tile<u8>), V(Tile<u8>), V(Tile<i32>)));

  ACCEPTED(storeView(V(View<f16>), {0, 0}, V(Tile<f16>)));
  ACCEPTED(loadView(V(View<f16>), {V(Scalar<i32>), 0}));
  REFUSED(storeView(V(View<f16>), {0, 0}, V(Tile<f32>)));
  REFUSED(loadView(V(View<f16>), {V(Scalar<f32>), 0}));
  REFUSED(loadView(V(Pointer<f16>), {0}));
}

template <typename D> void structure() {
  ACCEPTED(over(0, 10));
  ACCEPTED(over(0, V(Scalar<i64>), 64));
  ACCEPTED(over(V(Scalar<i32>), V(Scalar<i32>)));
  REFUSED(over(V(Scalar<i32>), V(Scalar<i64>)));
  REFUSED(over(0, V(Scalar<f32>)));
  REFUSED(over(V(Scalar<i32>), 2.0));
  REFUSED(over(0, V(Scalar<u32>)));
  REFUSED(over(0, V(Tile<i32>)));
  static_assert(std::same_as<decltype(over(0, 10)), Steps<i32>>);
  static_assert(std::same_as<decltype(over(0, V(Scalar<i64>))), Steps<i64>>);

  ACCEPTED(when(V(Scalar<i1>), [] {}));
  REFUSED(when(V(Tile<i1>), [] {}));
  REFUSED(when(V(Scalar<i32>), [] {}));
  REFUSED(when(true, V(void (*)())));

  static_assert(std::same_as<decltype(sum(V(Tile<f32>))), Scalar<f32>>);
  static_assert(std::same_as<decltype(sum(V(Tile<f32>), along(0))), Tile<f32>>);
  ACCEPTED(argmax(V(Tile<i64>), along(1)));
  REFUSED(sum(V(Tile<i1>)));
  REFUSED(sum(V(Scalar<f32>)));
  REFUSED(maximum(V(Tile<i32>), along(0)));
  REFUSED(reduce(V(Tile<f32>), along(0), [](Scalar<i32> a, Scalar<i32> b) { return a + b; }));
  REFUSED(reduce(V(Tile<f32>), along(0), [](Scalar<f32> a) { return a; }));

  ACCEPTED(assume(V(Scalar<i1>)));
  REFUSED(assume(V(Tile<i1>)));
  static_assert(std::same_as<decltype(multipleOf(V(Scalar<i64>), 8)), Scalar<i64>>);
  static_assert(std::same_as<decltype(multipleOf(maxContiguous(V(Tile<i32>), 8), 8)), Tile<i32>>);
  REFUSED(multipleOf(V(Tile<f32>), 8));
  REFUSED(maxContiguous(V(Scalar<i32>), 8));
  static_assert(std::is_base_of_v<Scalar<i64>, Arg<Stride<bf16>, "row_stride">>);
  static_assert(std::is_base_of_v<Scalar<i32>, Arg<Extent<f32, i32>, "columns">>);
  ACCEPTED(deviceAssert(V(Tile<i1>), "message"));
  ACCEPTED(devicePrint("x = ", V(Tile<f32>), V(Scalar<i32>)));
  REFUSED(devicePrint("x = ", V(Pointer<f32>)));
  REFUSED(range<typename Dependent<D, f32>::Type>(0, 8));
  REFUSED(expandDims(V(Scalar<f32>), 0));
  REFUSED(join(V(Tile<f32>), V(Tile<f16>)));
}

TEST(Types, WrongOnesDoNotCompile) {
  // The checks are above: this file compiles.
  (void)&elementwise<void, false>;
  (void)&elementwise<void, true>;
  (void)&memory<void>;
  (void)&structure<void>;
}

TEST(Types, NamesAndShapes) {
  EXPECT_EQ(elementName(DType::U16), "u16");
  EXPECT_EQ(elementText(DType::U16), "i16");
  EXPECT_EQ(elementText(DType::F8E4M3), "f8E4M3FN");

  EXPECT_EQ((Shape{64, 96}).problem(), "");
  EXPECT_EQ((Shape{15, 1 << 20}).problem(), "");
  EXPECT_NE((Shape{3, 7}).problem(), ""); // 21
  EXPECT_NE((Shape{17}).problem(), "");
  EXPECT_NE((Shape{0}).problem(), "");
  EXPECT_NE((Shape{-8}).problem(), "");
  EXPECT_NE((Shape{INT64_MIN}).problem(), "");
  EXPECT_NE((Shape{1 << 11, 1 << 10}).problem(), "");
  EXPECT_NE(Shape().problem(), "");
  EXPECT_NE((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}).problem(), "");
  EXPECT_EQ((Shape{1, 1, 1, 1, 1, 1, 1, 1}).problem(), "");
}

} // namespace
