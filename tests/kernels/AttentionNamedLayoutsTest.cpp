//===- AttentionNamedLayoutsTest.cpp - Every named layout against the table of them ---===//
//
// Where element (b, s, h, d) of q, k and v lies, by the formulas of the specification's section 9 written out here;
// three heads and two heads included, which are no packed axes.
//
//===----------------------------------------------------------------------===//
#include "kernels/attention/AttentionLayouts.h"

#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <set>

namespace kiln::test {
namespace {

using namespace kernels;
using Extents = std::vector<std::int64_t>;

/// A tensor of one-byte elements, so that addresses count elements; dense, `base` apart from the others.
Tensor tensorOf(const Extents &shape, DeviceAddress base) {
  Tensor t;
  t.dtype = DType::U8;
  t.address = base;
  t.rank = static_cast<unsigned>(shape.size());
  std::int64_t stride = 1;
  for (unsigned d = t.rank; d-- > 0; stride *= shape[d])
    t.shape[d] = shape[d], t.strides[d] = stride;
  return t;
}

constexpr DeviceAddress bases[3] = {1 << 20, 2 << 20, 3 << 20};

struct Sizes {
  std::int64_t B, S, H, Hk, D;
  std::int64_t g() const { return H / Hk; }
};

/// Address of an element; `heads`: of q, or of k and v.
using Place = std::function<std::int64_t(std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d)>;

struct Row {
  std::vector<Extents> shapes;
  Place q, k, v;
};

std::int64_t base(unsigned tensor) {
  return static_cast<std::int64_t>(bases[tensor]);
}

/// A tensor of heads by itself, in an order of rows.
std::pair<Extents, Place> alone(const std::string &order, const Sizes &z, std::int64_t heads, unsigned tensor) {
  const std::int64_t B = z.B, S = z.S, D = z.D, at = base(tensor);
  if (order == "bshd")
    return {{B, S, heads, D}, [=](auto b, auto s, auto h, auto d) { return at + ((b * S + s) * heads + h) * D + d; }};
  if (order == "sbhd")
    return {{S, B, heads, D}, [=](auto b, auto s, auto h, auto d) { return at + ((s * B + b) * heads + h) * D + d; }};
  if (order == "bhsd")
    return {{B, heads, S, D}, [=](auto b, auto s, auto h, auto d) { return at + ((b * heads + h) * S + s) * D + d; }};
  return {{B * S, heads, D}, [=](auto, auto s, auto h, auto d) { return at + (s * heads + h) * D + d; }};
}

/// Index of a token in a buffer whose rows are ordered so: t counts s alone.
std::int64_t token(const std::string &rows, const Sizes &z, std::int64_t b, std::int64_t s) {
  return rows == "bs" ? b * z.S + s : rows == "sb" ? s * z.B + b : s;
}
Extents rowsOf(const std::string &rows, const Sizes &z) {
  return rows == "bs" ? Extents{z.B, z.S} : rows == "sb" ? Extents{z.S, z.B} : Extents{z.B * z.S};
}
Extents with(Extents shape, std::initializer_list<std::int64_t> more) {
  shape.insert(shape.end(), more);
  return shape;
}

/// A buffer: `stride` elements a token, q, k and v from these offsets on, their heads so far apart.
Place packed(const std::string &rows, const Sizes &z, unsigned tensor, std::int64_t stride, std::int64_t offset,
             std::int64_t headStride) {
  return [=](auto b, auto s, auto h, auto d) {
    return base(tensor) + token(rows, z, b, s) * stride + offset + h * headStride + d;
  };
}

std::map<std::string, Row> table(const Sizes &z) {
  std::map<std::string, Row> out;
  const std::int64_t h = z.H, hk = z.Hk, d = z.D;
  for (const auto &[q, kv] : std::vector<std::pair<std::string, std::string>>{{"bshd", "bshd"},
                                                                              {"sbhd", "sbhd"},
                                                                              {"bhsd", "bhsd"},
                                                                              {"thd", "thd"},
                                                                              {"sbhd", "bshd"},
                                                                              {"bshd", "sbhd"},
                                                                              {"thd", "bshd"},
                                                                              {"thd", "sbhd"}}) {
    const auto a = alone(q, z, h, 0), b = alone(kv, z, hk, 1), c = alone(kv, z, hk, 2);
    Row row;
    row.shapes = {a.first, b.first, c.first};
    row.q = a.second, row.k = b.second, row.v = c.second;
    out[q + "_" + kv + "_" + kv] = row;
  }
  for (const std::string rows : {"bs", "sb", "t"}) {
    const Extents r = rowsOf(rows, z);
    const auto at = [&](unsigned tensor, std::int64_t stride, std::int64_t offset, std::int64_t headStride) {
      return packed(rows, z, tensor, stride, offset, headStride);
    };
    out[rows + "3hd"] = {
        {with(r, {3, h, d})}, at(0, 3 * h * d, 0, d), at(0, 3 * h * d, h * d, d), at(0, 3 * h * d, 2 * h * d, d)};
    out[rows + "h3d"] = {
        {with(r, {h, 3, d})}, at(0, 3 * h * d, 0, 3 * d), at(0, 3 * h * d, d, 3 * d), at(0, 3 * h * d, 2 * d, 3 * d)};
    const auto q = alone(rows + "hd", z, h, 0);
    out[rows + "hd_" + rows + "2hd"] = {
        {q.first, with(r, {2, hk, d})}, q.second, at(1, 2 * hk * d, 0, d), at(1, 2 * hk * d, hk * d, d)};
    out[rows + "hd_" + rows + "h2d"] = {
        {q.first, with(r, {hk, 2, d})}, q.second, at(1, 2 * hk * d, 0, 2 * d), at(1, 2 * hk * d, d, 2 * d)};
    const std::string prefix = rows == "sb" ? "" : rows + "_";
    const std::int64_t flat = (h + 2 * hk) * d, group = (z.g() + 2) * d;
    out[prefix + "flat_gqa"] = {
        {with(r, {h + 2 * hk, d})}, at(0, flat, 0, d), at(0, flat, h * d, d), at(0, flat, (h + hk) * d, d)};
    const Sizes copy = z;
    out[prefix + "grouped_gqa"] = {{with(r, {hk, z.g() + 2, d})},
                                   [=](auto b, auto s, auto head, auto column) {
                                     return base(0) + token(rows, copy, b, s) * copy.Hk * group +
                                            head / copy.g() * group + head % copy.g() * copy.D + column;
                                   },
                                   at(0, hk * group, z.g() * d, group),
                                   at(0, hk * group, (z.g() + 1) * d, group)};
  }
  return out;
}

/// Where the view has the element.
std::int64_t placed(const Tensor &t, bool packed, bool split, std::int64_t group, std::int64_t b, std::int64_t s,
                    std::int64_t h, std::int64_t d) {
  const unsigned row = packed ? 0 : 1;
  std::int64_t at = static_cast<std::int64_t>(t.address) + s * t.strides[row] + d * t.strides[t.rank - 1];
  if (!packed)
    at += b * t.strides[0];
  return at + (split ? h / group * t.strides[row + 1] + h % group * t.strides[row + 2] : h * t.strides[row + 1]);
}

TEST(AttentionLayouts, EveryElementIsWhereTheTableSays) {
  std::set<std::string> tested;
  for (const Sizes &z : {Sizes{2, 5, 6, 2, 8}, {3, 4, 3, 3, 16}, {1, 3, 2, 2, 8}, {2, 2, 5, 1, 8}})
    for (const auto &[name, row] : table(z)) {
      SCOPED_TRACE(name + " of " + std::to_string(z.H) + " and " + std::to_string(z.Hk) + " heads");
      const auto found = attentionLayout(name);
      ASSERT_TRUE(found.ok()) << found.status().toString();
      const AttentionLayout *const layout = *found;
      const bool oneHeadCount = name.find('3') != std::string::npos; // q, k, v of one number of heads
      std::vector<Tensor> tensors;
      for (std::size_t i = 0; i < row.shapes.size(); ++i)
        tensors.push_back(tensorOf(row.shapes[i], bases[i]));
      const std::int64_t keyHeads = oneHeadCount ? z.H : z.Hk;
      const auto views = attentionViews(*layout, tensors, z.H, keyHeads);
      ASSERT_TRUE(views.ok()) << views.status().toString();
      const bool split = name.ends_with("grouped_gqa");
      const auto expect = [&](const char *what, const Tensor &view, const Place &place, bool packed, std::int64_t heads,
                              bool isSplit) {
        const std::int64_t rows = packed ? z.B * z.S : z.S;
        EXPECT_EQ(view.rank, (packed ? 3u : 4u) + isSplit) << what;
        EXPECT_EQ(view.shape[packed ? 0 : 1], rows) << what;
        EXPECT_EQ(view.shape[view.rank - 1], z.D) << what;
        for (std::int64_t b = 0; b < (packed ? 1 : z.B); ++b)
          for (std::int64_t s = 0; s < rows; ++s)
            for (std::int64_t h = 0; h < heads; ++h)
              for (const std::int64_t d : {std::int64_t(0), z.D - 1})
                ASSERT_EQ(placed(view, packed, isSplit, z.g(), b, s, h, d), place(b, s, h, d))
                    << what << " " << b << ", " << s << ", " << h << ", " << d;
      };
      expect("q", views->q, row.q, layout->packedQ(), z.H, split);
      expect("k", views->k, row.k, layout->packedK(), keyHeads, false);
      expect("v", views->v, row.v, layout->packedK(), keyHeads, false);
      // o lies as q does, without the others.
      const std::string order = layout->output();
      const auto [shape, place] = alone(order, z, z.H, 0);
      const auto o = attentionOutputView(*layout, tensorOf(shape, bases[0]), *views);
      ASSERT_TRUE(o.ok()) << o.status().toString();
      expect("o", *o, place, layout->packedQ(), z.H, split);
      tested.insert(name);
    }
  for (const AttentionLayout &layout : attentionLayouts())
    EXPECT_TRUE(tested.count(layout.name)) << layout.name << " is not in the table of this test";
}

TEST(AttentionLayouts, WrongShapesAreNamed) {
  const auto refused = [](const std::string &name, const std::vector<Extents> &shapes, std::int64_t heads,
                          std::int64_t keyHeads, std::initializer_list<const char *> parts) {
    const auto layout = attentionLayout(name);
    ASSERT_TRUE(layout.ok());
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      tensors.push_back(tensorOf(shapes[i], bases[i]));
    const auto views = attentionViews(**layout, tensors, heads, keyHeads);
    ASSERT_FALSE(views.ok()) << name;
    EXPECT_EQ(views.status().code(), StatusCode::InvalidArgument);
    EXPECT_FALSE(views.status().remedy().empty());
    for (const char *part : parts)
      EXPECT_NE(views.status().message().find(part), std::string::npos) << part << ": " << views.status().toString();
  };
  refused("bs3hd", {{2, 5, 4, 3, 8}}, 0, 0, {"'qkv'", "[2, 5, 4, 3, 8]", "dimension 2 must be 3"});
  refused("bsh3d", {{2, 5, 3, 4, 8}}, 0, 0, {"dimension 3 must be 3"});
  refused("bshd_bs2hd", {{2, 5, 4, 8}, {2, 5, 4, 2, 8}}, 0, 0, {"'kv'", "dimension 2 must be 2"});
  refused("bshd_bshd_bshd", {{2, 5, 4, 8}, {2, 5, 4}, {2, 5, 4, 8}}, 0, 0, {"'k'", "4 dimensions"});
  refused("bshd_bshd_bshd", {{2, 5, 4, 8}}, 0, 0, {"takes 3 tensors, 1"});
  refused("flat_gqa", {{5, 2, 8, 8}}, 0, 0, {"needs the numbers of heads"});
  refused("flat_gqa", {{5, 2, 8, 8}}, 4, -2, {"key heads = -2"});
  refused("flat_gqa", {{5, 2, 8, 8}}, 5, 2, {"dimension 2 must be 5 + 2 x 2"});
  refused("flat_gqa", {{5, 2, 8, 8}}, INT64_MAX, INT64_MAX, {"dimension 2 must be"});
  refused("grouped_gqa", {{5, 2, 4, 2, 8}}, 0, 0, {"dimension 3 must be 3 or more"});
  refused("grouped_gqa", {{5, 2, 4, 5, 8}}, 13, 4, {"heads = 13", "12"});
  refused("bs3hd", {{2, 5, 3, 4, 8}}, 4, 2, {"key heads = 2", "4"});
  const auto unknown = attentionLayout("bshd_bshd_sbhd"), paged = attentionLayout("paged_kv_thd_bshd_bshd");
  ASSERT_FALSE(unknown.ok() || paged.ok());
  EXPECT_NE(unknown.status().toString().find("there is no layout 'bshd_bshd_sbhd' (did you mean"), std::string::npos)
      << unknown.status().toString();
  EXPECT_NE(paged.status().message().find("pages are not supported"), std::string::npos);
}

} // namespace
} // namespace kiln::test
