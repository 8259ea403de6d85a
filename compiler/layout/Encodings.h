//===- Encodings.h - The named families of distributed layouts ------------===//
//
// An encoding is a short description of a layout for tensors of any size: "blocked", "mma accumulator", "operand A of
// that mma", "slice of it".  lower() turns one into a LinearLayout for one shape; after that its kind is forgotten.
//
// One rule makes all of them: every dimension of the tensor has its coordinate bits dealt out from low to high, first
// to the places the encoding lists, in that order; a bit past the extent becomes a zero basis for a lane or warp
// (replication) and nothing for a register; the bits left over become registers.  So an encoding serves tensors smaller
// than its tile (replication) and larger (repetition) alike.
//
//   blocked [1,4] x [8,4] x [4,1], order [1,0], on 64x32:
//   register: j1 j2 j16 i32; lane: j4 j8 i1 i2 i4; warp: i8 i16
//
// Values are plain: any numbers may stand in the fields, and lower() answers with a diagnostic (layouts specification,
// section 1.5) where they make no sense.  Extents are powers of two here; TileLayout.h adds m * 2^k.
//
// Each struct lists its fields once, in fields(); parser and printer (LayoutText.h) work from that list.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_ENCODINGS_H
#define KILN_LAYOUT_ENCODINGS_H

#include "compiler/layout/LinearLayout.h"
#include "support/Status.h"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace kiln::layout {

/// One number a dimension, as a user wrote it.
using Sizes = std::vector<std::int64_t>;

/// Encodings nest (a slice of an operand of an mma); deeper nesting than this is refused with L00.
constexpr unsigned maxEncodingDepth = 16;

struct Encoding;

/// A shared, immutable encoding inside another one.
class EncodingRef {
public:
  EncodingRef() = default;
  EncodingRef(const Encoding &encoding);

  /// Null if there is none, or if it would nest too deep.
  const Encoding *get() const { return target.get(); }
  bool tooDeep() const { return refused; }
  unsigned depth() const { return levels; }
  friend bool operator==(const EncodingRef &a, const EncodingRef &b);

private:
  std::shared_ptr<const Encoding> target;
  unsigned levels = 0;
  bool refused = false;
};

enum class Presence : unsigned char { Required, Optional };

/// How the blocks of a cluster share a tensor: the top log2(split_d) bits of dimension d go to block bits, blocks
/// beyond split_d hold copies.  `order`: which dimension's blocks are numbered first; empty: the last one.
struct CtaSplit {
  Sizes ctas, split, order;
  bool operator==(const CtaSplit &) const = default;
  template <typename Visitor> static void fields(Visitor &&v) {
    v("ctas", &CtaSplit::ctas, Presence::Required);
    v("split", &CtaSplit::split, Presence::Required);
    v("order", &CtaSplit::order, Presence::Optional);
  }
};

/// A thread holds sizePerThread elements, a warp threadsPerWarp threads, the block warpsPerCTA warps; order[0] is the
/// fastest dimension (empty order: the last dimension is).  For loads, stores and elementwise work.
struct Blocked {
  static constexpr std::string_view keyword = "blocked";
  Sizes sizePerThread, threadsPerWarp, warpsPerCTA, order = {};
  std::optional<CtaSplit> cta = {};
  bool operator==(const Blocked &) const = default;
  template <typename Visitor> static void fields(Visitor &&v) {
    v("sizePerThread", &Blocked::sizePerThread, Presence::Required);
    v("threadsPerWarp", &Blocked::threadsPerWarp, Presence::Required);
    v("warpsPerCTA", &Blocked::warpsPerCTA, Presence::Required);
    v("order", &Blocked::order, Presence::Optional);
    v("cta", &Blocked::cta, Presence::Optional);
  }
};

/// Accumulator of a tensor-core instruction: version 2 is mma.sync (a warp), 3 is wgmma (four warps along M).
/// instrN: the N that one warp covers before the next warp starts; in wgmma the N of the instruction.
/// warpOrder: which dimension the warps run along first; empty: N, M, batch (version 2) or M, N, batch (version 3).
struct Mma {
  static constexpr std::string_view keyword = "mma";
  std::int64_t version = 2;
  Sizes warpsPerCTA;
  std::int64_t instrN = 8;
  Sizes warpOrder = {};
  std::optional<CtaSplit> cta = {};
  bool operator==(const Mma &) const = default;
  template <typename Visitor> static void fields(Visitor &&v) {
    v("version", &Mma::version, Presence::Required);
    v("warpsPerCTA", &Mma::warpsPerCTA, Presence::Required);
    v("instrN", &Mma::instrN, Presence::Optional);
    v("warpOrder", &Mma::warpOrder, Presence::Optional);
    v("cta", &Mma::cta, Presence::Optional);
  }
};

/// Operand A (op 0, M x K) or B (op 1, K x N) of a dot whose accumulator is `parent`: an mma, or a blocked encoding for
/// dots made of plain multiply-adds (then every thread holds all of K).  kWidth: neighbours along K in a thread.
struct DotOperand {
  static constexpr std::string_view keyword = "dot";
  std::int64_t op = 0, kWidth = 1;
  EncodingRef parent;
  std::optional<CtaSplit> cta = {};
  bool operator==(const DotOperand &) const = default;
  template <typename Visitor> static void fields(Visitor &&v) {
    v("op", &DotOperand::op, Presence::Required);
    v("kWidth", &DotOperand::kWidth, Presence::Optional);
    v("cta", &DotOperand::cta, Presence::Optional);
    v("parent", &DotOperand::parent, Presence::Required);
  }
};

/// What is left of `parent` when dimension `dim` is reduced away; lanes and warps along it hold copies.
struct Slice {
  static constexpr std::string_view keyword = "slice";
  std::int64_t dim = 0;
  EncodingRef parent;
  bool operator==(const Slice &) const = default;
  template <typename Visitor> static void fields(Visitor &&v) {
    v("dim", &Slice::dim, Presence::Required);
    v("parent", &Slice::parent, Presence::Required);
  }
};

/// Dimension i of the tensor is dimension perm[i] of the parent's.
struct Transposed {
  static constexpr std::string_view keyword = "transposed";
  Sizes perm;
  EncodingRef parent;
  bool operator==(const Transposed &) const = default;
  template <typename Visitor> static void fields(Visitor &&v) {
    v("perm", &Transposed::perm, Presence::Required);
    v("parent", &Transposed::parent, Presence::Required);
  }
};

/// Any linear layout by its bases, each a coordinate.  Fixed to one shape: `shape`, or if that is empty the shape it
/// is lowered for (a slice of it must state `shape`).
struct Linear {
  static constexpr std::string_view keyword = "linear";
  std::vector<Sizes> registers, lanes, warps = {}, blocks = {};
  Sizes shape = {};
  bool operator==(const Linear &) const = default;
  template <typename Visitor> static void fields(Visitor &&v) {
    v("register", &Linear::registers, Presence::Optional);
    v("lane", &Linear::lanes, Presence::Optional);
    v("warp", &Linear::warps, Presence::Optional);
    v("block", &Linear::blocks, Presence::Optional);
    v("shape", &Linear::shape, Presence::Optional);
  }
};

struct Encoding {
  using Kinds = std::variant<Blocked, Mma, DotOperand, Slice, Transposed, Linear>;
  Kinds kind;

  template <typename T>
    requires std::is_constructible_v<Kinds, const T &>
  Encoding(const T &k) : kind(k) {}
  /// 1 for an encoding without a parent.
  unsigned depth() const;
  std::string_view keyword() const;
  bool operator==(const Encoding &) const = default;
};

/// The layout of an encoding on a tensor of that shape.  Any input gives a layout or a diagnostic.
Result<LinearLayout> lower(const Encoding &encoding, std::span<const std::int64_t> shape);
inline Result<LinearLayout> lower(const Encoding &encoding, std::initializer_list<std::int64_t> shape) {
  return lower(encoding, std::span(shape.begin(), shape.size()));
}

/// The shape an encoding is bound to: that of the `linear` inside it, seen from outside.  Nothing if it fits any shape.
std::optional<Sizes> boundShape(const Encoding &encoding);

/// Tiles of this encoding are operands of matrix instructions, perhaps transposed on the way there.
bool isInstructionOperand(const Encoding &encoding);

/// The linear encoding with the bases of a layout: every layout has one.
Encoding asLinear(const LinearLayout &layout);

} // namespace kiln::layout

#endif // KILN_LAYOUT_ENCODINGS_H
