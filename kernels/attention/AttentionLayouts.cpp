#include "kernels/attention/AttentionLayouts.h"

#include "support/Text.h"

#include <algorithm>

namespace kiln::kernels {
namespace {

std::vector<AttentionLayout> makeLayouts() {
  std::vector<AttentionLayout> out;
  for (const char *name : {"bshd_bshd_bshd", "sbhd_sbhd_sbhd", "bhsd_bhsd_bhsd", "thd_thd_thd", "sbhd_bshd_bshd",
                           "bshd_sbhd_sbhd", "thd_bshd_bshd",  "thd_sbhd_sbhd",  "bshd_bs2hd",  "sbhd_sb2hd",
                           "thd_t2hd",       "bshd_bsh2d",     "sbhd_sbh2d",     "thd_th2d",    "bs3hd",
                           "sb3hd",          "t3hd",           "bsh3d",          "sbh3d",       "th3d"}) {
    AttentionLayout layout{name, {}};
    for (const std::string_view axes : split(name, '_'))
      layout.tensors.emplace_back(axes);
    out.push_back(std::move(layout));
  }
  for (const auto &[kind, axes] : {std::pair("flat_gqa", "fd"), std::pair("grouped_gqa", "gmd")})
    for (const auto &[prefix, rows] : {std::pair("", "sb"), std::pair("bs_", "bs"), std::pair("t_", "t")})
      out.push_back({std::string(prefix) + kind, {std::string(rows) + axes}});
  return out;
}

/// A tensor whose dimensions have letters.
struct Axes {
  Tensor tensor;
  std::array<char, Tensor::maxRank> letters = {};

  Axes() = default;
  /// As many letters as dimensions.
  Axes(const Tensor &tensor, std::string_view axes) : tensor(tensor) { std::ranges::copy(axes, letters.begin()); }

  unsigned at(char letter) const {
    return static_cast<unsigned>(std::find(letters.begin(), letters.begin() + tensor.rank, letter) - letters.begin());
  }
  bool has(char letter) const { return at(letter) < tensor.rank; }
  std::int64_t extent(char letter) const { return tensor.shape[at(letter)]; }

  void skip(unsigned d, std::int64_t first) {
    tensor.address += static_cast<DeviceAddress>(first * tensor.strides[d]) * dtypeBytes(tensor.dtype);
  }
  /// Without the dimension: one index of it.
  Axes pick(char letter, std::int64_t index) const {
    Axes out = *this;
    const unsigned d = at(letter);
    out.skip(d, index);
    for (unsigned i = d; i + 1 < tensor.rank; ++i) {
      out.tensor.shape[i] = tensor.shape[i + 1];
      out.tensor.strides[i] = tensor.strides[i + 1];
      out.letters[i] = letters[i + 1];
    }
    --out.tensor.rank;
    return out;
  }
  /// `count` indices of the dimension, from `first` on, under another letter.
  Axes cut(char letter, std::int64_t first, std::int64_t count, char as) const {
    Axes out = *this;
    const unsigned d = at(letter);
    out.skip(d, first);
    out.tensor.shape[d] = count;
    out.letters[d] = as;
    return out;
  }
  /// As the operation takes it: batch, row, head(s), column.
  Tensor canonical() const {
    Tensor out = tensor;
    if (const std::string_view order(letters.data(), tensor.rank); order == "bshd" || order == "thd")
      return out;
    unsigned d = 0;
    for (const char letter : std::string_view("btsghmd")) // no tensor has all
      if (const unsigned from = at(letter); from < tensor.rank) {
        out.shape[d] = tensor.shape[from];
        out.strides[d++] = tensor.strides[from];
      }
    return out;
  }
};

std::string shapeOf(const Tensor &t) {
  std::vector<std::string> parts;
  for (unsigned d = 0; d < t.rank; ++d)
    parts.push_back(std::to_string(t.shape[d]));
  return "[" + join(parts) + "]";
}

const char *tensorName(const AttentionLayout &layout, std::size_t index) {
  constexpr const char *names[3][3] = {{"qkv", "", ""}, {"q", "kv", ""}, {"q", "k", "v"}};
  return names[layout.tensors.size() - 1][index];
}

Status wrongShape(const AttentionLayout &layout, std::size_t index, const Tensor &t, const std::string &what,
                  std::string remedy) {
  return Status::invalid(std::string("attention: argument '") + tensorName(layout, index) + "' has the shape " +
                             shapeOf(t) + ", in layout " + layout.name + " its axes are " + layout.tensors[index] +
                             ": " + what,
                         std::move(remedy));
}

Status checkHeads(const char *what, std::int64_t wanted, std::int64_t got) {
  if (wanted == 0 || wanted == got)
    return {};
  return Status::invalid("attention: " + std::string(what) + " = " + std::to_string(wanted) +
                             ", but the tensors have " + std::to_string(got),
                         "leave it out, or give the number that is there");
}

} // namespace

std::string AttentionLayout::output() const {
  std::string out;
  for (const char letter : tensors.front())
    if (letter == 'f' || letter == 'g')
      out += 'h';
    else if (letter != '3' && letter != 'm')
      out += letter;
  return out;
}

const std::vector<AttentionLayout> &attentionLayouts() {
  static const std::vector<AttentionLayout> all = makeLayouts();
  return all;
}

std::span<const std::string_view> attentionLayoutNames() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> names;
    for (const AttentionLayout &layout : attentionLayouts())
      names.push_back(layout.name);
    return names;
  }();
  return all;
}

Result<const AttentionLayout *> attentionLayout(std::string_view name) {
  for (const AttentionLayout &layout : attentionLayouts())
    if (layout.name == name)
      return &layout;
  const std::vector<std::string> names(attentionLayoutNames().begin(), attentionLayoutNames().end());
  if (name.starts_with("paged_"))
    return Status::invalid("attention: layout '" + std::string(name) + "': keys and values in pages are not supported",
                           "copy the pages to one tensor");
  const std::vector<std::string> near = nearest(name, names);
  return Status::invalid("attention: there is no layout '" + std::string(name) + "'",
                         near.empty() ? "the layouts are " + join(names) : "did you mean " + join(near, " or ") + "?");
}

Result<AttentionViews> attentionViews(const AttentionLayout &layout, std::span<const Tensor> tensors,
                                      std::int64_t heads, std::int64_t keyHeads) {
  if (tensors.size() != layout.tensors.size())
    return Status::invalid("attention: layout " + layout.name + " takes " + std::to_string(layout.tensors.size()) +
                               (layout.tensors.size() == 1 ? " tensor, " : " tensors, ") +
                               std::to_string(tensors.size()) + (tensors.size() == 1 ? " was given" : " were given"),
                           "give q, k and v; q and kv; or qkv, as the layout's name says");
  std::array<Axes, 3> all;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string_view letters = layout.tensors[i];
    if (tensors[i].rank != letters.size())
      return wrongShape(layout, i, tensors[i], "it must have " + std::to_string(letters.size()) + " dimensions",
                        "give a tensor of that rank, or another layout");
    const Axes &axes = all[i] = Axes(tensors[i], letters);
    for (const char packed : {'2', '3'})
      if (axes.has(packed) && axes.extent(packed) != packed - '0')
        return wrongShape(layout, i, tensors[i],
                          "dimension " + std::to_string(axes.at(packed)) + " must be " + std::string(1, packed),
                          "give another layout");
  }
  Axes &q = all[0], &k = all[1], &v = all[2];
  if (tensors.size() == 3) {
    // each has its own
  } else if (tensors.size() == 2) {
    v = k.pick('2', 1), k = k.pick('2', 0);
  } else if (q.has('3')) {
    k = q.pick('3', 1), v = q.pick('3', 2), q = q.pick('3', 0);
  } else if (q.has('f')) {
    if (heads <= 0 || keyHeads <= 0)
      return Status::invalid("attention: layout " + layout.name + " needs the numbers of heads: heads = " +
                                 std::to_string(heads) + ", key heads = " + std::to_string(keyHeads),
                             "give both, each above 0");
    // Compared so that no sum can overflow.
    if (const std::int64_t found = q.extent('f'); heads > found || keyHeads > found || heads + 2 * keyHeads != found)
      return wrongShape(layout, 0, tensors[0],
                        "dimension " + std::to_string(q.at('f')) + " must be " + std::to_string(heads) + " + 2 x " +
                            std::to_string(keyHeads) + " heads",
                        "give the numbers of heads that are there");
    k = q.cut('f', heads, keyHeads, 'h'), v = q.cut('f', heads + keyHeads, keyHeads, 'h');
    q = q.cut('f', 0, heads, 'h');
  } else {
    const std::int64_t members = q.extent('m') - 2;
    if (members < 1)
      return wrongShape(layout, 0, tensors[0],
                        "dimension " + std::to_string(q.at('m')) + " must be 3 or more: queries, key, value",
                        "give another layout");
    k = q.pick('m', members), v = q.pick('m', members + 1), q = q.cut('m', 0, members, 'm');
  }
  AttentionViews out{q.canonical(), k.canonical(), v.canonical()};
  KILN_TRY(checkHeads("heads", heads, q.has('m') ? q.extent('g') * q.extent('m') : q.extent('h')));
  KILN_TRY(checkHeads("key heads", keyHeads, out.k.shape[out.k.rank - 2]));
  return out;
}

Result<Tensor> attentionOutputView(const AttentionLayout &layout, const Tensor &o, const AttentionViews &views,
                                   std::string_view name) {
  const auto argument = [&] { return "attention: argument '" + std::string(name) + "' has "; };
  const std::string axes = layout.output();
  if (o.rank != axes.size())
    return Status::invalid(argument() + "the shape " + shapeOf(o) + ", in layout " + layout.name + " its axes are " +
                               axes,
                           "give a tensor of that rank");
  Tensor out = Axes(o, axes).canonical();
  if (layout.tensors.front().find('m') != std::string::npos) { // heads are split
    const unsigned head = out.rank - 2;
    const std::int64_t groups = views.q.shape[head], members = views.q.shape[head + 1];
    if (out.shape[head] != groups * members)
      return Status::invalid(argument() + std::to_string(out.shape[head]) + " heads, q " +
                                 std::to_string(groups * members),
                             "give it as many heads as q has");
    out.shape[head + 2] = out.shape[head + 1], out.strides[head + 2] = out.strides[head + 1];
    out.shape[head + 1] = members, out.strides[head + 1] = out.strides[head];
    out.shape[head] = groups, out.strides[head] *= members;
    ++out.rank;
  }
  return out;
}

} // namespace kiln::kernels
