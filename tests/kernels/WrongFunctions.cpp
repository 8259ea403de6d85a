// clang-format off: comments stand on lines of their own
// Not compiled into anything: clang checks that each marked line is refused with this message
// (`-Xclang -verify`, see CMakeLists.txt).
#include "kernels/attention/AttentionFunctions.h"

using namespace kiln::kernels;
using namespace kiln::language;

void scores() {
  const ScoreFunction good([](const auto &x, const AttentionPairs &) { return 2 * x; });
  const ScoreFunction constant([](const Tile<f32> &x, const AttentionPairs &) { return x; });
  // expected-error@*:* {{a score function returns a Tile<f32>: cast<f32>(x) what has another type}}
  // expected-error@*:* 0+ {{no viable overloaded '='}}
  const ScoreFunction halves([](const Tile<f32> &x, const AttentionPairs &) { return cast<f16>(x); });
  // expected-error@*:* {{a score function takes the scaled score, const auto & or const Tile<f32> &, and const}}
  // expected-error@*:* 0+ {{no type named 'type' in 'std::invoke_result}}
  // expected-error@*:* 0+ {{no viable overloaded '='}}
  // expected-error@*:* 0+ {{template argument for template type parameter must be a type}}
  const ScoreFunction narrow([](const Tile<f16> &x, const AttentionPairs &) { return x; });
}

void masks() {
  const MaskFunction good([](const AttentionPairs &at) { return at.key <= at.query; });
  // expected-error@*:* {{a mask function returns a Tile<i1>: compare `query`, `key` or what is loaded for them}}
  // expected-error@*:* 0+ {{no viable overloaded '='}}
  const MaskFunction numbers([](const AttentionPairs &at) { return at.query - at.key; });
}
