//===- AxisInfo.h - What is known about the integers of an address --------===//
//
// Facts about an integer tensor, per dimension d, each a power of two:
//
//   contiguity c    aligned blocks of c elements along d count up by 1
//   divisibility v  the first element of every such block is a multiple of v
//   constancy k     aligned blocks of k elements along d are equal
//
// Example: range(16, 80) along a row, c = 64, v = 16, k = 1.  Times a splat of 8: c = 1, v = 8 (only every(16) = 1 is
// known of single elements), k = 1.  The rules are those of the layouts specification, section 4.1; they are sound:
// what they claim is true of every value that the expression can take.  From c and v follow the vector widths of loads
// and stores (MemoryAccess.h).
//
// An extent that is no power of two counts as the next one: the blocks at the end are cut off.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_AXISINFO_H
#define KILN_LAYOUT_AXISINFO_H

#include "compiler/layout/LinearLayout.h"

#include <functional>

namespace kiln::layout {

class AxisInfo {
public:
  /// "Divisible by everything", the divisibility of 0.
  static constexpr std::uint32_t big = 1u << 30;

  using Facts = InlineVector<std::uint32_t, maxDims>;

  /// One value for all elements, a multiple of `divisor` (0: the value is 0; an odd factor is ignored).
  static AxisInfo splat(std::uint64_t divisor, std::span<const std::uint32_t> shape);
  /// start, start + 1, .. along one dimension.
  static AxisInfo range(std::int64_t start, std::uint32_t size);
  /// Nothing known.
  static AxisInfo unknown(std::span<const std::uint32_t> shape);
  /// Facts known from elsewhere (a view's strides); each is rounded down to a power of two.
  static AxisInfo known(std::span<const std::uint32_t> contiguity, std::span<const std::uint32_t> divisibility,
                        std::span<const std::uint32_t> constancy, std::span<const std::uint32_t> shape);

  unsigned dims() const { return extents.size(); }
  std::uint32_t contiguity(unsigned d) const { return c[d]; }
  std::uint32_t divisibility(unsigned d) const { return v[d]; }
  std::uint32_t constancy(unsigned d) const { return k[d]; }
  std::uint32_t shape(unsigned d) const { return extents[d]; }

  /// A new dimension of extent 1 before dimension d (d <= dims() < maxDims).
  AxisInfo expand(unsigned d) const;
  /// Dimensions of extent 1 grow to those of `shape`.
  AxisInfo broadcast(std::span<const std::uint32_t> shape) const;
  /// Dimension i of the result is dimension perm[i]; perm is a permutation.
  AxisInfo transpose(std::span<const unsigned> perm) const;

  // Operands of the following have equal shapes.
  friend AxisInfo operator+(const AxisInfo &x, const AxisInfo &y);
  friend AxisInfo operator-(const AxisInfo &x, const AxisInfo &y);
  friend AxisInfo operator*(const AxisInfo &x, const AxisInfo &y);
  /// The 0/1 tensor x < y: its constancy says how far a bounds mask is uniform.
  friend AxisInfo less(const AxisInfo &x, const AxisInfo &y);
  /// mask ? x : y, element by element.
  friend AxisInfo select(const AxisInfo &mask, const AxisInfo &x, const AxisInfo &y);
  /// Either x or y as a whole: where control flow joins.
  friend AxisInfo meet(const AxisInfo &x, const AxisInfo &y);
  /// Any other operation of two operands: constancy alone survives.
  friend AxisInfo anyOf(const AxisInfo &x, const AxisInfo &y);

  /// A value carried by a loop: `body` maps the facts at the loop's head to those at its end.  Starts at the facts of
  /// the initial value and iterates down; ends because facts only shrink.
  static AxisInfo loopCarried(const AxisInfo &initial, const std::function<AxisInfo(const AxisInfo &)> &body);

  bool operator==(const AxisInfo &) const = default;
  /// "c=64 v=16 k=1, ..", dimension by dimension.
  std::string text() const;

private:
  /// Divisibility of every element along d.
  std::uint32_t every(unsigned d) const { return c[d] == 1 ? v[d] : 1; }
  /// Divisibility at the starts of blocks of `block` elements.
  std::uint32_t start(unsigned d, std::uint32_t block) const { return block < c[d] ? std::min(v[d], block) : v[d]; }

  Facts c, v, k, extents;
};

} // namespace kiln::layout

#endif // KILN_LAYOUT_AXISINFO_H
