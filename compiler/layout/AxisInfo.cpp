#include "compiler/layout/AxisInfo.h"

#include "support/Text.h"

#include <algorithm>

namespace kiln::layout {

namespace {

std::uint32_t blockOf(std::uint32_t extent) {
  return extent > AxisInfo::big ? AxisInfo::big : std::bit_ceil(std::max(1u, extent));
}

/// The largest power of two that divides x.
std::uint32_t powerDividing(std::uint64_t x) {
  if (x == 0)
    return AxisInfo::big;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(x & (~x + 1), AxisInfo::big));
}

} // namespace

AxisInfo AxisInfo::splat(std::uint64_t divisor, std::span<const std::uint32_t> shape) {
  AxisInfo out;
  for (std::uint32_t extent : shape) {
    out.c.push_back(1);
    out.v.push_back(powerDividing(divisor));
    out.k.push_back(blockOf(extent));
    out.extents.push_back(extent);
  }
  return out;
}

AxisInfo AxisInfo::range(std::int64_t start, std::uint32_t size) {
  AxisInfo out;
  out.c.push_back(blockOf(size));
  out.v.push_back(powerDividing(static_cast<std::uint64_t>(start)));
  out.k.push_back(1);
  out.extents.push_back(size);
  return out;
}

AxisInfo AxisInfo::unknown(std::span<const std::uint32_t> shape) {
  AxisInfo out;
  for (std::uint32_t extent : shape) {
    out.c.push_back(1);
    out.v.push_back(1);
    out.k.push_back(1);
    out.extents.push_back(extent);
  }
  return out;
}

AxisInfo AxisInfo::known(std::span<const std::uint32_t> contiguity, std::span<const std::uint32_t> divisibility,
                         std::span<const std::uint32_t> constancy, std::span<const std::uint32_t> shape) {
  AxisInfo out = unknown(shape);
  auto fill = [&](Facts &facts, std::span<const std::uint32_t> given) {
    for (unsigned d = 0; d < facts.size() && d < given.size(); ++d)
      facts[d] = std::min(big, std::bit_floor(std::max(1u, given[d])));
  };
  fill(out.c, contiguity);
  fill(out.v, divisibility);
  fill(out.k, constancy);
  return out;
}

AxisInfo AxisInfo::expand(unsigned d) const {
  // Along the new dimension every element is a block of its own.
  std::uint32_t all = big;
  for (unsigned e = 0; e < dims(); ++e)
    all = std::min(all, every(e));
  auto insert = [&](const Facts &facts, std::uint32_t value) {
    Facts out;
    for (unsigned e = 0; e <= facts.size(); ++e) {
      if (e == d)
        out.push_back(value);
      if (e < facts.size())
        out.push_back(facts[e]);
    }
    return out;
  };
  AxisInfo out;
  out.c = insert(c, 1);
  out.v = insert(v, all);
  out.k = insert(k, 1);
  out.extents = insert(extents, 1);
  return out;
}

AxisInfo AxisInfo::broadcast(std::span<const std::uint32_t> shape) const {
  AxisInfo out = *this;
  for (unsigned d = 0; d < dims(); ++d) {
    if (extents[d] == shape[d])
      continue;
    out.c[d] = 1;
    out.k[d] = blockOf(shape[d]);
    out.extents[d] = shape[d];
  }
  return out;
}

AxisInfo AxisInfo::transpose(std::span<const unsigned> perm) const {
  AxisInfo out;
  for (unsigned p : perm) {
    out.c.push_back(c[p]);
    out.v.push_back(v[p]);
    out.k.push_back(k[p]);
    out.extents.push_back(extents[p]);
  }
  return out;
}

AxisInfo operator+(const AxisInfo &x, const AxisInfo &y) {
  AxisInfo out = x;
  for (unsigned d = 0; d < x.dims(); ++d) {
    out.c[d] = std::max(std::min(x.c[d], y.k[d]), std::min(x.k[d], y.c[d]));
    out.v[d] = std::min(x.start(d, out.c[d]), y.start(d, out.c[d]));
    out.k[d] = std::min(x.k[d], y.k[d]);
  }
  return out;
}

AxisInfo operator-(const AxisInfo &x, const AxisInfo &y) {
  AxisInfo out = x;
  for (unsigned d = 0; d < x.dims(); ++d) {
    out.c[d] = std::min(x.c[d], y.k[d]);
    out.v[d] = std::min(x.start(d, out.c[d]), y.start(d, out.c[d]));
    out.k[d] = std::min(x.k[d], y.k[d]);
  }
  return out;
}

AxisInfo operator*(const AxisInfo &x, const AxisInfo &y) {
  AxisInfo out = x;
  for (unsigned d = 0; d < x.dims(); ++d) {
    out.c[d] = 1;
    out.v[d] =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(AxisInfo::big, std::uint64_t(x.every(d)) * y.every(d)));
    out.k[d] = std::min(x.k[d], y.k[d]);
  }
  return out;
}

AxisInfo less(const AxisInfo &x, const AxisInfo &y) {
  AxisInfo out = x;
  for (unsigned d = 0; d < x.dims(); ++d) {
    // Both are multiples of g where aligned blocks of g begin, x counts up inside and y stays: all or none is below.
    std::uint32_t g = std::min({x.c[d], y.k[d], x.v[d], y.every(d)});
    out.c[d] = out.v[d] = 1;
    out.k[d] = std::max(g, std::min(x.k[d], y.k[d]));
  }
  return out;
}

AxisInfo select(const AxisInfo &mask, const AxisInfo &x, const AxisInfo &y) {
  AxisInfo out = x;
  for (unsigned d = 0; d < x.dims(); ++d) {
    out.c[d] = std::min({x.c[d], y.c[d], mask.k[d]});
    out.v[d] = std::min(x.start(d, out.c[d]), y.start(d, out.c[d]));
    out.k[d] = std::min({x.k[d], y.k[d], mask.k[d]});
  }
  return out;
}

AxisInfo meet(const AxisInfo &x, const AxisInfo &y) {
  AxisInfo whole = x; // a mask that is the same everywhere
  for (unsigned d = 0; d < x.dims(); ++d)
    whole.k[d] = AxisInfo::big;
  return select(whole, x, y);
}

AxisInfo anyOf(const AxisInfo &x, const AxisInfo &y) {
  AxisInfo out = x;
  for (unsigned d = 0; d < x.dims(); ++d) {
    out.c[d] = out.v[d] = 1;
    out.k[d] = std::min(x.k[d], y.k[d]);
  }
  return out;
}

AxisInfo AxisInfo::loopCarried(const AxisInfo &initial, const std::function<AxisInfo(const AxisInfo &)> &body) {
  // Every step lowers some fact by a factor of two or ends, so 3 * 31 * maxDims steps are enough.
  AxisInfo now = initial;
  for (;;) {
    AxisInfo next = meet(now, body(now));
    if (next == now)
      return now;
    now = next;
  }
}

std::string AxisInfo::text() const {
  std::string out;
  for (unsigned d = 0; d < dims(); ++d)
    out += format("%sc=%u v=%u k=%u", d ? ", " : "", c[d], v[d], k[d]);
  return out;
}

} // namespace kiln::layout
