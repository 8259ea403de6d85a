//===- FunctionTree.h - An expression over scores and pairs, as a tree ------------===//
//
// What the parser of texts makes (FunctionText.cpp).  A tree is computed over tiles, when a kernel is recorded, or over
// lanes of float64, on the host: an arithmetic has the types of both, and what a tree begins with.  Operators and
// functions are written once for both.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_FUNCTIONTREE_H
#define KILN_KERNELS_ATTENTION_FUNCTIONTREE_H

#include "kernels/attention/AttentionFunctions.h"
#include "kernels/attention/FunctionOnHost.h"

#include <variant>
#include <vector>

namespace kiln::kernels::function {

enum class Type : std::uint8_t { Whole, Number, Mask };
constexpr std::string_view typeName(Type t) {
  constexpr std::string_view names[] = {"a whole number", "a number", "a mask"};
  return names[static_cast<unsigned>(t)];
}

/// Which of a call's aux tensors.
struct AuxElement {
  unsigned number;
  DType type;
};

/// Tiles of a kernel that is recorded.
struct OnDevice {
  using Whole = language::Tile<language::i32>;
  using Number = language::Dual<language::f32>;
  using Mask = language::Tile<language::i1>;
  using Pairs = AttentionPairs;
  using Value = std::variant<Whole, Number, Mask>;

  static Whole whole(std::int32_t value) { return language::full<language::i32>({1, 1}, value); }
  static Number number(float value) { return language::full<language::f32>({1, 1}, value); }
  static Number asNumber(const Whole &x) { return language::cast<language::f32>(x); }
  static Whole batch(const Pairs &at) { return language::full<language::i32>({1, 1}, at.batch); }
  static Whole head(const Pairs &at) { return language::full<language::i32>({1, 1}, at.head); }
  static Whole query(const Pairs &at) { return at.query; }
  static Whole key(const Pairs &at) { return at.key; }
  static Value element(const AuxElement &of, const std::vector<Whole> &indices, const Pairs &at);
};

/// Lanes of float64.
struct OnHost {
  using Whole = host::Wholes;
  using Number = host::Numbers;
  using Mask = host::Masks;
  using Pairs = PairsOnHost;
  using Value = std::variant<Whole, Number, Mask>;

  static Whole whole(std::int32_t value) { return value; }
  static Number number(float value) { return host::number(static_cast<double>(value)); }
  static Number asNumber(const Whole &x) { return host::asNumbers(x); }
  static Whole batch(const Pairs &at) { return at.batch; }
  static Whole head(const Pairs &at) { return at.head; }
  static Whole query(const Pairs &at) { return at.queries; }
  static Whole key(const Pairs &at) { return at.keys; }
  static Value element(const AuxElement &of, const std::vector<Whole> &indices, const Pairs &at);
};

/// Where expressions are computed; `x`: the scaled score, of a score alone.
template <typename A> struct Block {
  const typename A::Number *x;
  const typename A::Pairs &pairs;
};

struct Node {
  Type type;
  std::function<OnDevice::Value(const Block<OnDevice> &)> onDevice;
  std::function<OnHost::Value(const Block<OnHost> &)> onHost;

  template <typename A> typename A::Value compute(const Block<A> &at) const {
    if constexpr (std::same_as<A, OnDevice>)
      return onDevice(at);
    else
      return onHost(at);
  }
};
using Tree = std::shared_ptr<const Node>;
using Parts = std::vector<Tree>;

/// `compute`: of a Block of either arithmetic.
template <typename F> Tree node(Type type, F compute) {
  return std::make_shared<const Node>(Node{type, compute, compute});
}

template <typename A> typename A::Number numberOf(const Tree &t, const Block<A> &at) {
  const typename A::Value value = t->compute(at);
  const auto *const whole = std::get_if<typename A::Whole>(&value);
  return whole ? A::asNumber(*whole) : std::get<typename A::Number>(value);
}
template <typename A> typename A::Whole wholeOf(const Tree &t, const Block<A> &at) {
  return std::get<typename A::Whole>(t->compute(at));
}
template <typename A> typename A::Mask maskOf(const Tree &t, const Block<A> &at) {
  return std::get<typename A::Mask>(t->compute(at));
}

/// An operator or a function: what it takes and makes.
struct Operation {
  std::string_view name;
  std::vector<Type> takes; ///< Number: whole numbers too; Whole, Mask: these alone
  std::function<Tree(const Parts &)> make;
};
/// Those of each level bind tighter than those of the level before.
const std::vector<std::vector<Operation>> &infixOperations();
const std::vector<Operation> &prefixOperations();
const std::vector<Operation> &functionOperations();

/// Types of aux tensors.
std::span<const DType> elementTypes();

} // namespace kiln::kernels::function

#endif // KILN_KERNELS_ATTENTION_FUNCTIONTREE_H
