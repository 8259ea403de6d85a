//===- AttentionFunctions.h - Scores and masks that the caller writes ------------===//
//
// A score function maps the scaled score of a pair of a query and a key to another one, before the softmax; a mask says
// which pairs there are.  Both are C++ functions over tiles, called when a kernel is recorded: what they compute is
// part of the kernel.
//
//   // Keys of the query's own document, and scores of at most 30.
//   const AttentionFunctions functions({
//       .score = [](const auto &x, const AttentionPairs &) { return 30 * tanh(x / 30); },
//       .mask = [](const AttentionPairs &at) {
//         return at.load<i32>(0, at.batch, at.query) == at.load<i32>(0, at.batch, at.key);
//       }});
//   operation.run({.q = q, .., .functions = functions, .aux = {documents}});
//
// A score function that is generic over its number (`const auto &x`) is differentiated for the backward direction
// (compiler/language/Dual.h); of one that takes `const Tile<f32> &` the caller gives the derivative.
//
// Invariants.  Functions have no identity but their object's: copies are the same functions, and a second object has
// kernels of its own, so it is made once and kept.  They are pure: what they give for a pair depends on the pair and on
// what they read, never on the block it stands in.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONFUNCTIONS_H
#define KILN_KERNELS_ATTENTION_ATTENTIONFUNCTIONS_H

#include "compiler/language/Language.h"

#include <array>
#include <functional>
#include <memory>
#include <string>

namespace kiln::kernels {

/// Tensors that functions of a call read, at most, and their dimensions.
inline constexpr unsigned maxAux = 8, maxAuxRank = 4;
/// What kernels call them.
inline constexpr std::array<std::string_view, maxAux> auxNames = {"aux0", "aux1", "aux2", "aux3",
                                                                  "aux4", "aux5", "aux6", "aux7"};

/// Which one of AttentionArguments::aux, and where that was written.
struct AuxNumber {
  unsigned number;
  language::Location location;
  AuxNumber(unsigned number, language::Location location = language::Location::current())
      : number(number), location(location) {}
};

/// A block of pairs of one sequence and one query head.  It is [rows, keys] or, in a kernel that works on scores
/// turned, [keys, rows]: `query` and `key` broadcast to it, and so must what a function gives.
struct AttentionPairs {
  language::Scalar<language::i32> batch, head;
  language::Tile<language::i32> query, key;      ///< i and j, counted from the sequence's first: [rows, 1], [1, keys]
  language::Scalar<language::i32> queries, keys; ///< of the sequence; blocks reach beyond
  bool isChecked = false;

  /// An element of aux[which] for each pair: one index for each dimension, scalars, tiles and C++ numbers of i32 or
  /// i64. A tile if one of them is.  Outside of the tensor nothing is read, and the element is 0; in a checked kernel
  /// that stops it if the pair exists.
  template <language::Element T, typename... I> auto load(AuxNumber which, const I &...indices) const {
    static_assert(sizeof...(I) >= 1 && sizeof...(I) <= maxAuxRank, "an index for each dimension, 1 to 4");
    using namespace language;
    const LocationScope scope(which.location);
    const auto tensor = declaredTensor<T, static_cast<int>(sizeof...(I))>(
        which.number < maxAux ? auxNames[which.number] : std::string_view("aux"), which.location);
    Address<(language::detail::isTile<I>() || ...)> at;
    int d = 0;
    ((at.add(indices, tensor.extent(d), tensor.stride(d)), ++d), ...);
    return at.template read<T>(tensor.pointer(), *this);
  }

private:
  /// Offset and whether it is inside: of scalars, and of tiles where there are any.
  template <bool hasTiles> struct Address {
    language::Scalar<language::i64> offset = language::constant<language::i64>(0);
    language::Scalar<language::i1> inside = language::constant<language::i1>(true);
    std::optional<language::Tile<language::i64>> offsets = {};
    std::optional<language::Tile<language::i1>> areInside = {};

    template <typename I>
    void add(const I &index, const language::Scalar<language::i64> &extent,
             const language::Scalar<language::i64> &stride) {
      using namespace language;
      if constexpr (std::integral<I>) {
        add(constant<i64>(index), extent, stride);
      } else {
        const auto wide = cast<i64>(index);
        const auto isInside = (wide >= 0) & (wide < extent);
        if constexpr (language::detail::isTile<I>()) {
          offsets = offsets ? *offsets + wide * stride : wide * stride;
          areInside = areInside ? *areInside & isInside : isInside;
        } else {
          offset = offset + wide * stride;
          inside = inside & isInside;
        }
      }
    }
    template <language::Element T> auto read(const language::Pointer<T> &base, const AttentionPairs &pairs) const {
      using namespace language;
      constexpr const char *message = "attention: a function reads outside of an aux tensor";
      if constexpr (hasTiles) {
        const auto allowed = *areInside & inside;
        if (pairs.isChecked)
          deviceAssert(allowed | !((pairs.query < pairs.queries) & (pairs.key < pairs.keys)), message);
        return language::load(base + offset + *offsets, allowed);
      } else {
        if (pairs.isChecked)
          deviceAssert(inside, message);
        return language::load(base + offset, inside);
      }
    }
  };
};

/// f(x, pairs): x is the scaled score, fp32.
class ScoreFunction {
  using Numbers = language::Tile<language::f32>;
  using Duals = language::Dual<language::f32>;

public:
  ScoreFunction() = default;
  template <typename F>
    requires(!std::same_as<std::remove_cvref_t<F>, ScoreFunction>)
  ScoreFunction(F f) {
    static_assert(std::is_invocable_v<const F &, const Numbers &, const AttentionPairs &>,
                  "a score function takes the scaled score, const auto & or const Tile<f32> &, and const "
                  "AttentionPairs &");
    static_assert(
        std::convertible_to<std::invoke_result_t<const F &, const Numbers &, const AttentionPairs &>, Numbers>,
        "a score function returns a Tile<f32>: cast<f32>(x) what has another type");
    value = f;
    if constexpr (std::is_invocable_v<const F &, const Duals &, const AttentionPairs &>) {
      static_assert(std::convertible_to<std::invoke_result_t<const F &, const Duals &, const AttentionPairs &>, Duals>,
                    "a score function returns a number of the type that it is given");
      dual = f;
    }
  }

  std::function<Numbers(const Numbers &, const AttentionPairs &)> value = {};
  std::function<Duals(const Duals &, const AttentionPairs &)> dual = {}; ///< of a generic one
};

/// df/dx(x, pairs).
using ScoreGradient =
    std::function<language::Tile<language::f32>(const language::Tile<language::f32> &, const AttentionPairs &)>;
/// f(pairs): which of them there are, besides what the built-in mask hides.
class MaskFunction {
  using Mask = language::Tile<language::i1>;

public:
  MaskFunction() = default;
  template <typename F>
    requires(!std::same_as<std::remove_cvref_t<F>, MaskFunction>)
  MaskFunction(F f) {
    static_assert(std::is_invocable_v<const F &, const AttentionPairs &>,
                  "a mask function takes const AttentionPairs &");
    static_assert(std::convertible_to<std::invoke_result_t<const F &, const AttentionPairs &>, Mask>,
                  "a mask function returns a Tile<i1>: compare `query`, `key` or what is loaded for them");
    value = f;
  }

  std::function<Mask(const AttentionPairs &)> value = {};
};

/// What functions of a call are made of; each may be left out.
struct AttentionFunctionsDefinition {
  ScoreFunction score = {};
  ScoreGradient scoreGradient = {}; ///< in place of the derived one
  MaskFunction mask = {};
};

class AttentionFunctions {
public:
  /// None.
  AttentionFunctions() = default;
  AttentionFunctions(AttentionFunctionsDefinition definition)
      : made(std::make_shared<const AttentionFunctionsDefinition>(std::move(definition))) {}

  bool given() const { return made != nullptr; }
  bool hasScore() const { return made && made->score.value; }
  bool hasMask() const { return made && made->mask.value; }
  /// Whether the score's derivative is known.
  bool hasGradient() const { return hasScore() && (made->scoreGradient || made->score.dual); }
  const AttentionFunctionsDefinition &definition() const { return *made; }

  /// The same object, or a copy of it.
  bool operator==(const AttentionFunctions &) const = default;
  std::size_t hash() const { return std::hash<const void *>()(made.get()); }

private:
  std::shared_ptr<const AttentionFunctionsDefinition> made;
};

/// What a kernel's code depends on of functions and lists of blocks.  A member of configurations without a text: the
/// program's text says it all.
struct AttentionHooks {
  struct AuxType {
    DType element = DType::I32;
    std::uint8_t rank = 0; ///< 0: none
    bool operator==(const AuxType &) const = default;
  };
  AttentionFunctions functions = {};
  std::array<AuxType, maxAux> aux = {};
  int blockRows = 0, blockKeys = 0; ///< of a block of the lists; 0: no lists
  bool hasPartialBlocks = false, hasFullBlocks = false;
  bool isChecked = false; ///< reads outside of aux tensors, and wrong entries of lists, stop the kernel

  bool hasLists() const { return blockRows > 0; }
  bool operator==(const AttentionHooks &) const = default;
  /// The tensors that the kernel has besides its parameters.
  std::vector<language::TensorDeclaration> tensors() const;
  std::size_t hash() const;
};

} // namespace kiln::kernels

template <> struct std::hash<kiln::kernels::AttentionHooks> {
  std::size_t operator()(const kiln::kernels::AttentionHooks &hooks) const { return hooks.hash(); }
};

#endif // KILN_KERNELS_ATTENTION_ATTENTIONFUNCTIONS_H
