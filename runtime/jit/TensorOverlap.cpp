#include "runtime/jit/TensorOverlap.h"

#include <algorithm>

namespace kiln {
namespace {

struct Dimension {
  std::uint64_t bytes, steps; ///< a step's; how many there are
  unsigned number;
};

/// A tensor's bytes: `width` at each of its places.  Steps go up, the shortest first.
struct Places {
  std::uint64_t first = 0, width = 0;
  std::array<Dimension, Tensor::maxRank> dims = {};
  unsigned count = 0;

  void add(const Dimension &d) { dims[count++] = d; }
  std::uint64_t span() const {
    std::uint64_t out = width;
    for (unsigned i = 0; i < count; ++i)
      out += dims[i].bytes * dims[i].steps;
    return out;
  }
  /// The dimensions inside of a window of `period` bytes, from `first` on.
  Places inside(std::uint64_t period, std::uint64_t from) const {
    Places out;
    out.first = from, out.width = width;
    for (unsigned i = 0; i < count; ++i)
      if (dims[i].bytes % period)
        out.add(dims[i]);
    return out;
  }
};

/// Strides of 0 are left out if `repeated` is: they lead to no other byte.
Places placesOf(const Tensor &t, bool repeated) {
  Places out;
  out.first = t.address, out.width = static_cast<std::uint64_t>(dtypeBytes(t.dtype));
  for (unsigned i = 0; i < t.rank; ++i) {
    if (t.shape[i] <= 1 || (t.strides[i] == 0 && !repeated))
      continue;
    const std::int64_t stride = t.strides[i] * dtypeBytes(t.dtype);
    const auto steps = static_cast<std::uint64_t>(t.shape[i] - 1);
    if (stride < 0)
      out.first += static_cast<std::uint64_t>(stride) * steps;
    out.add({static_cast<std::uint64_t>(std::abs(stride)), steps, i});
  }
  std::sort(out.dims.begin(), out.dims.begin() + out.count,
            [](const Dimension &a, const Dimension &b) { return a.bytes < b.bytes; });
  return out;
}

bool mayShare(const Places &a, const Places &b) {
  if (a.first + a.span() <= b.first || b.first + b.span() <= a.first)
    return false;
  // The longest period first: what smaller ones may tell, they tell of what is inside its windows.
  for (unsigned i = a.count, j = b.count; i + j > 0;) {
    const bool ofA = j == 0 || (i > 0 && a.dims[i - 1].bytes >= b.dims[j - 1].bytes);
    const std::uint64_t period = ofA ? a.dims[--i].bytes : b.dims[--j].bytes;
    const std::uint64_t ahead =
        b.first >= a.first ? (b.first - a.first) % period : (period - (a.first - b.first) % period) % period;
    const Places inA = a.inside(period, 0), inB = b.inside(period, ahead);
    const std::uint64_t spanA = inA.span(), spanB = inB.span();
    if (spanA > period || spanB > period)
      continue;
    if (ahead + spanB <= period) // one window holds both
      return mayShare(inA, inB);
    if (spanA <= ahead) // a window that begins with b does
      return mayShare(a.inside(period, period - ahead), b.inside(period, 0));
  }
  return true;
}

} // namespace

bool mayShareBytes(const Tensor &a, const Tensor &b) {
  return mayShare(placesOf(a, /*repeated=*/false), placesOf(b, /*repeated=*/false));
}

unsigned dimensionInsideOthers(const Tensor &t) {
  const Places places = placesOf(t, /*repeated=*/true);
  std::uint64_t reach = places.width;
  for (unsigned i = 0; i < places.count; ++i) {
    const Dimension &d = places.dims[i];
    if (d.bytes < reach)
      return d.number;
    reach += d.bytes * d.steps;
  }
  return t.rank;
}

} // namespace kiln
