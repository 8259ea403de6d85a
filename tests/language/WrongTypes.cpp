// clang-format off: comments stand on lines of their own
// Not compiled into anything: clang checks that each marked line is refused with this message
// (`-Xclang -verify`, see CMakeLists.txt).
#include "compiler/language/Language.h"

using namespace kiln::language;

void loops(Tile<f32> x, Tile<f16> h, Scalar<i64> n) {
  // expected-error@*:* {{the body of a loop returns the carried values of the next round, of the same types}}
  loop(over(0, n), x, [&](auto i, auto x) { return h; });
  // expected-error@*:* {{the body of a loop takes the counter and one parameter for each carried value}}
  // expected-error@*:* 0+ {{no matching function for call to object of type}}
  // expected-error@*:* 0+ {{no type named 'type' in 'std::invoke_result}}
  // expected-error@*:* 0+ {{implicit instantiation of undefined template}}
  // expected-error@*:* 0+ {{'sizeof(int) == 0': a body returns nothing}}
  loop(over(0, n), x, [&](Scalar<i64> i) {});
  // expected-error@*:* {{carried values are scalars, tiles, pointers and pipelines; write constant<f32>(0) for a C++ number}}
  // expected-error@*:* 0+ {{no matching function for call to 'plain'}}
  // expected-error@*:* 0+ {{no matching function for call to 'loopOver'}}
  loop(over(0, n), 0.0f, [&](auto i, auto x) { return x; });
}

// A seed of this project: the ring of one tensor where that of another is expected.
Tile<f16> scores(Pipeline<f16, "k"> keys);
void keysWhereValuesAreExpected(Pipeline<f16, "k"> keys, Pipeline<f16, "v"> values, View<f16> view, View<f32> wide,
                                Scalar<i32> n) {
  scores(keys);
  // expected-error@+1 {{no matching function for call to 'scores'}}
  scores(values);
  // expected-error@+1 {{no viable overloaded '='}}
  keys = fill(values, view, {0, 0});
  // expected-error@*:* {{the body of a loop returns the carried values of the next round, of the same types}}
  loop(over(0, n), keys, values, [&](auto i, auto keys, auto values) { return std::tuple{values, keys}; });
  // expected-error@+1 {{no matching function for call to 'fill'}}
  fill(keys, wide, {0, 0});
  // expected-error@+1 {{invalid operands to binary expression}}
  keys + keys;
}

void whileLoops(Tile<f32> x, Tile<f16> h) {
  // expected-error@*:* {{the body of a whileLoop returns the carried values of the next round, of the same types}}
  whileLoop(x, [](auto x) { return max(x) > 1; }, [&](auto) { return h; });
  // expected-error@*:* {{the condition of a whileLoop returns a Scalar<i1>: reduce a mask}}
  // expected-error@*:* 0+ {{no matching conversion for functional-style cast}}
  whileLoop(x, [](auto x) { return x > 1; }, [](auto x) { return x; });
  // expected-error@*:* {{the condition and the body of a whileLoop take one parameter for each carried value}}
  // expected-error@*:* 0+ {{no matching function for call to object of type}}
  whileLoop(x, [] { return constant<i1>(true); }, [](auto x) { return x; });
  // expected-error@*:* {{carried values are scalars, tiles, pointers and pipelines; write constant<f32>(0) for a C++ number}}
  // expected-error@*:* 0+ {{no matching function for call to 'plain'}}
  // expected-error@*:* 0+ {{no matching function for call to 'whileHolds'}}
  whileLoop(0.0f, [](auto x) { return x > 1; }, [](auto x) { return x; });
}

void conditions(Scalar<i1> c, Tile<f32> x, Tile<f16> h) {
  // expected-error@*:* {{both bodies of a condition return values of the same types in the same order}}
  when(c, [&] { return x; }, [&] { return h; });
  // expected-error@*:* {{a condition whose body returns values has a second body that returns the others}}
  when(c, [&] { return x; });
}

void combine(Tile<f32> x) {
  // expected-error@*:* {{a combine function returns one scalar for each operand, of the operands' element types}}
  // expected-error@*:* 0+ {{no matching function for call to 'endCombine'}}
  reduce(x, along(0), [](auto a, auto b) { return a < b; });
}

Kernel arguments() {
  // expected-error@*:* {{the parameters of a kernel are Arg<type, "name"> and TensorArg<type, rank, "name">}}
  return kernel("k", {}, [](Pointer<f32> x) {});
}

// expected-error@*:* {{an argument's name is letters, digits and _, and no digit first}}
void badName(Arg<f32, "2x"> a) { (void)a.handle(); }
// expected-error@*:* {{a mask is no argument: pass an integer and compare it}}
void mask(Arg<i1, "m"> a) { (void)a.handle(); }
// expected-error@*:* {{noalias is for pointers}}
void alias(Arg<i32, "n", ArgTraits{.noalias = true}> a) { (void)a.handle(); }
Kernel coordinates() {
  return kernel("k", {}, [](TensorArg<f32, 2, "x"> x) {
    // expected-error@*:* {{give a coordinate, or `all`, for each dimension}}
    (void)x.at(0);
  });
}
// expected-error@*:* {{a tensor has 1 to 5 dimensions}}
void sixDims(TensorArg<f32, 6, "x"> x) { (void)x.extent(0); }

// What is written by mistake says what to write instead.
void operators(Scalar<i32> n, Tile<f32> x, Tile<f16> h, Tile<i1> m, Scalar<i1> c, Pointer<f32> p, Tile<i32> i, Tile<f8e4m3> q) {
  // expected-error@+1 {{C++ decides while the kernel is recorded, and this value is known when it runs: when(condition, ..)}}
  if (n > 3) {}
  // expected-error@+1 {{C++ decides while the kernel is recorded}}
  for (int t = 0; t < n; ++t) {}
  // expected-error@+1 {{C++ decides while the kernel is recorded}}
  (void)(n ? 1 : 2);
  // expected-error@+1 {{C++ decides while the kernel is recorded}}
  (void)!x;
  // expected-error@+1 {{conditions of a kernel are joined by &: (i < n) & (j < m)}}
  (void)(c && n > 3);
  // expected-error@+1 {{conditions of a kernel are joined by |: (i < n) | (j < m)}}
  (void)(false || c);
  // expected-error@+1 {{a recorded value has no elements: gather(x, indices, along(d)) takes some of a tile}}
  (void)x[3];
  // expected-error@+1 {{a recorded value has no elements}}
  (void)x[i];
  // expected-error@+1 {{memory is read by load(p + i) and written by store(p + i, value)}}
  p[3] = 1;
  // expected-error@+1 {{element types never mix by themselves: cast<T>(x) gives one of the two the other's type}}
  (void)(x + h);
  // expected-error@+1 {{element types never mix by themselves}}
  (void)(n * cast<i64>(n));
  // expected-error@+1 {{element types never mix by themselves}}
  (void)(h < x);
  // expected-error@+1 {{element types never mix by themselves}}
  x += h;
  // expected-error@+1 {{a C++ number takes the element type of what it meets, and this one is no such number}}
  (void)(i * 0.5);
  // expected-error@+1 {{a C++ number takes the element type of what it meets}}
  (void)(1 == m);
  // expected-error@+1 {{masks and 8-bit floats do no arithmetic: cast<i32>(mask), cast<f32>(x), or & | ^ of masks}}
  (void)(m + m);
  // expected-error@+1 {{masks and 8-bit floats do no arithmetic}}
  (void)(q * 2);
  // expected-error@+1 {{% << and >> are for integers}}
  (void)(x % 2);
  // expected-error@+1 {{& | ^ are for integers and masks: bitcast<i32>(x) has the bits of a float}}
  (void)(x & x);
  // expected-error@*:* {{a body returns nothing, recorded values, or a std::tuple of them: write constant<f32>(0)}}
  // expected-error@*:* 0+ {{no type named 'Type' in}}
  // expected-error@*:* 0+ {{no viable conversion}}
  when(c, [&] { return 0.0; }, [&] { return 1.0; });
}

void ptx(Tile<f32> x, Tile<i32> i, Tile<i8> b, Scalar<i32> n) {
  // expected-error@*:* {{an operand of inline PTX has the type that the signature says: cast<T>(x) gives another one}}
  (void)inlinePtx<f32(f32)>("neg.f32 $0, $1;", i);
  // expected-error@*:* {{inline PTX takes one operand for each parameter of its signature}}
  (void)inlinePtx<f32(f32, f32)>("add.f32 $0, $1, $2;", x);
  // expected-error@*:* {{inline PTX works on registers of 16, 32 and 64 bits}}
  (void)inlinePtx<i32(i8)>("cvt.s32.s8 $0, $1;", b);
  // expected-error@*:* {{what has no result is there for its effects: inlinePtxWithEffects}}
  inlinePtx<void(i32)>("nanosleep.u32 $0;", n);
  // expected-error@*:* {{inline PTX of tiles has a result: use it, or reduce the tile first}}
  inlinePtxWithEffects<void(i32)>("nanosleep.u32 $0;", i);
  // expected-error@*:* {{the signature of inline PTX is a function's, as f32(f32, i32)}}
  // expected-error@*:* 0+ {{no member named 'record'}}
  (void)inlinePtx<f32>("mov.f32 $0, $1;", x);
}
