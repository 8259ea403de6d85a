//===- Tensor.h - A tensor is one argument of a kernel ----------------------===//
//
// `TensorArg<bf16, 4, "k">` is one parameter of a kernel: where a tensor of four dimensions lies, its extents and its
// strides.  A program cuts out what it works on by coordinates, and reads and writes it tile by tile:
//
//   [&](TensorArg<bf16, 4, "k"> k, TensorArg<f32, 3, "lse"> lse, ..) {
//     auto keys = k.at(batch, all, head, all);             // [sequence, dim]: two dimensions are left
//     auto rows = keys.narrow(along(0), begin, length);    // one sequence of a packed batch
//     auto tile = loadView(rows.tiles({64, 128}), {first, 0});
//
// Invariants: nothing is recorded before `tiles`, `pointer`, `extent` and `stride`.  `tiles` records a view of the
// whole tensor, made of arguments alone, and what is cut out of it; so a target with tensor maps can describe it by
// one. Extents and strides are i64.  Coordinates given to `at` must lie inside the tensor; tiles may reach over its
// bounds.
//
// In the text a tensor is the arguments `k`, `k_extent_0` .., `k_stride_0` ...  Launches give a whole Tensor by its
// name (kiln/NamedArguments.h).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_TENSOR_H
#define KILN_LANGUAGE_TENSOR_H

#include "Kernel.h"
#include "Math.h"
#include "View.h"

#include <vector>

namespace kiln::language {

/// Every coordinate of a dimension, in TensorView::at.
struct All {};
inline constexpr All all{};

namespace detail {
template <typename C>
concept Coordinate = std::same_as<std::remove_cvref_t<C>, All> || std::convertible_to<const C &, Index>;
template <typename C> constexpr bool isFixed = !std::same_as<std::remove_cvref_t<C>, All>;

/// One dimension of the whole tensor.
struct TensorDim {
  Scalar<i64> extent, stride;
  std::optional<Index> fixed;
  std::vector<std::pair<Index, Index>> narrowed; ///< start and size, each counted from the start before
};
} // namespace detail

/// Part of a tensor: R dimensions of it, the others at fixed coordinates.
template <Element T, int R> class TensorView {
public:
  using Tag = T;
  static constexpr int rank = R;

  TensorView(const Pointer<T> &base, std::vector<detail::TensorDim> dims) : base(base), dims(std::move(dims)) {}

  /// One coordinate a dimension: a number fixes it, `all` keeps the dimension.
  template <detail::Coordinate... C> auto at(const C &...coordinates) const {
    static_assert(sizeof...(C) == R, "give a coordinate, or `all`, for each dimension");
    constexpr int left = R - (0 + ... + static_cast<int>(detail::isFixed<C>));
    TensorView<T, left> out(base, dims);
    unsigned kept = 0;
    (out.fix(kept, coordinates), ...);
    return out;
  }

  /// Coordinates start .. start + size - 1 of one dimension, counted from 0 again; reads outside give zero.
  TensorView narrow(Along dim, const detail::Index &start, const detail::Index &size,
                    Location loc = Location::current()) const {
    TensorView out = *this;
    if (!has(dim.dim, "narrow", loc))
      return out;
    out.kept(static_cast<unsigned>(dim.dim)).narrowed.emplace_back(start, size);
    return out;
  }

  /// The same with these extents, one a dimension that is left: where tensors share theirs, one value serves them all.
  template <std::same_as<Scalar<i64>>... I> TensorView withExtents(const I &...extents) const {
    static_assert(sizeof...(I) == R, "give an extent for each dimension that is left");
    TensorView out = *this;
    unsigned n = 0;
    ((out.kept(n++).extent = extents), ...);
    return out;
  }

  /// The extent of the whole tensor along a dimension that is left.
  Scalar<i64> extent(int dim, Location loc = Location::current()) const {
    return has(dim, "extent", loc) ? kept(static_cast<unsigned>(dim)).extent : Scalar<i64>();
  }
  /// Elements from one coordinate to the next.
  Scalar<i64> stride(int dim, Location loc = Location::current()) const {
    return has(dim, "stride", loc) ? kept(static_cast<unsigned>(dim)).stride : Scalar<i64>();
  }

  /// The element at the fixed coordinates, and at 0 (the start, where it is narrowed) of the dimensions that are left.
  Pointer<T> pointer(Location loc = Location::current()) const {
    const LocationScope scope(loc);
    Pointer<T> at = base;
    for (const detail::TensorDim &d : dims) {
      const auto advance = [&](const detail::Index &by) {
        using Kind = detail::Operand::Kind;
        const Scalar<i64> steps(by.kind == Kind::Constant
                                    ? detail::constant(detail::Operand::number(by.constant, DType::I64, loc), loc)
                                : by.element == DType::I64 ? by.handle
                                                           : detail::cast(DType::I64, by, loc));
        at = at + steps * d.stride;
      };
      if (d.fixed)
        advance(*d.fixed);
      for (const auto &[start, size] : d.narrowed)
        advance(start);
    }
    return at;
  }

  /// A view that is read and written in tiles of this shape; the stride of its unit dimension must be 1.
  View<T> tiles(const Shape &tile, Unit unitDimension = Unit::Last, Location loc = Location::current()) const
    requires(R >= 1)
  {
    std::vector<detail::Operand> extents, strides, coordinates;
    std::vector<std::int64_t> whole;
    std::vector<int> fixed;
    const int wanted = unitDimension == Unit::Last ? R - 1 : static_cast<int>(unitDimension);
    int unit = wanted < R ? -1 : wanted, left = 0; // one that is no dimension is refused where the view is made
    for (unsigned d = 0; d < dims.size(); ++d) {
      const detail::TensorDim &dim = dims[d];
      extents.push_back(detail::operandOf(dim.extent, loc));
      strides.push_back(detail::operandOf(dim.stride, loc));
      if (dim.fixed) {
        fixed.push_back(static_cast<int>(d));
        coordinates.push_back(*dim.fixed);
        whole.push_back(1);
        continue;
      }
      if (left == wanted)
        unit = static_cast<int>(d);
      whole.push_back(tile[static_cast<unsigned>(left++)]);
    }
    detail::Handle view = detail::tensorView(detail::operandOf(base, loc), extents, strides, whole,
                                             static_cast<int>(tile.rank()) - R, unit, loc);
    for (unsigned d = 0; d < dims.size(); ++d)
      for (const auto &[start, size] : dims[d].narrowed)
        view = detail::narrowView(view, static_cast<int>(d), start, size, loc);
    if (!fixed.empty())
      view = detail::sliceView(view, coordinates, fixed, loc);
    return View<T>(view);
  }

private:
  template <Element, int> friend class TensorView;

  /// Whether that many dimensions are left; if not the recording fails.
  static bool has(int dim, const char *operation, Location loc) {
    if (dim >= 0 && dim < R)
      return true;
    detail::refuseDimension(operation, dim, R, loc);
    return false;
  }
  /// The n-th dimension that is left.
  detail::TensorDim &kept(unsigned n) {
    for (detail::TensorDim &d : dims)
      if (!d.fixed && n-- == 0)
        return d;
    return dims.back();
  }
  const detail::TensorDim &kept(unsigned n) const { return const_cast<TensorView *>(this)->kept(n); }
  template <typename C> void fix(unsigned &n, const C &coordinate) {
    if constexpr (detail::isFixed<C>)
      kept(n).fixed = detail::Index(coordinate);
    else
      ++n;
  }

  Pointer<T> base;
  std::vector<detail::TensorDim> dims;
};

struct TensorTraits {
  bool noalias = false;   ///< as ArgTraits::noalias
  bool wholeRows = false; ///< the last extent is specialised as an Arg<Extent<T>, ..> is
  bool optional = false;  ///< a launch may leave it out; the kernel must not touch it then
};

/// Of a tensor that not every launch has.
inline constexpr TensorTraits maybe{.optional = true};

/// A kernel's argument.  Strides are specialised as an Arg<Stride<T>, ..> is; extents are not, unless the traits say
/// so.
template <Element T, int R, Name name, TensorTraits traits = TensorTraits{}> class TensorArg : public TensorView<T, R> {
  static_assert(name.isIdentifier(), "an argument's name is letters, digits and _, and no digit first");
  static_assert(R >= 1 && R <= 5, "a tensor has 1 to 5 dimensions");

public:
  static constexpr unsigned argumentCount = 1 + R + R;

  template <typename Recording>
  TensorArg(const Recording &recording, unsigned first)
      : TensorView<T, R>(Pointer<T>(recording.argument(first)), dimsOf(recording, first)) {}

  static void describe(std::vector<KernelArgument> &out) {
    detail::describeTensor(out, name.view(), elementOf<T>, R, traits.noalias, traits.wholeRows, traits.optional);
  }

private:
  template <typename Recording>
  static std::vector<detail::TensorDim> dimsOf(const Recording &recording, unsigned first) {
    std::vector<detail::TensorDim> out;
    for (unsigned d = 0; d < R; ++d)
      out.push_back(
          {Scalar<i64>(recording.argument(first + 1 + d)), Scalar<i64>(recording.argument(first + 1 + R + d)), {}, {}});
    return out;
  }
};

/// One of KernelOptions::tensors.  A name that is not among them, another element type or rank are errors.
template <Element T, int R> TensorView<T, R> declaredTensor(std::string_view name, Location loc = Location::current()) {
  std::array<detail::Handle, 1 + 2 * R> parts = {};
  (void)detail::findDeclared(name, elementOf<T>, parts, loc);
  std::vector<detail::TensorDim> dims;
  for (std::size_t d = 0; d < R; ++d)
    dims.push_back({Scalar<i64>(parts[1 + d]), Scalar<i64>(parts[1 + R + d]), {}, {}});
  return {Pointer<T>(parts[0]), std::move(dims)};
}

namespace detail {
template <Element T, int R, Name name, TensorTraits traits>
struct IsParameter<TensorArg<T, R, name, traits>> : std::true_type {};
} // namespace detail

} // namespace kiln::language

#endif // KILN_LANGUAGE_TENSOR_H
