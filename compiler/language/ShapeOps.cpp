// Where a program is, tiles from nothing, and changes of shape.
#include "RecorderImpl.h"

namespace kiln::language::detail {
namespace {

using ValueText = Recorder::ValueText;
using TypeText = Recorder::TypeText;

std::string_view axisText(Axis axis) {
  constexpr std::string_view names[] = {"x", "y", "z"};
  return names[static_cast<unsigned>(axis)];
}

/// A dimension of 0 .. count - 1.
bool goodDim(Recorder &r, int dim, unsigned count, std::string_view what, Location loc) {
  if (dim >= 0 && static_cast<unsigned>(dim) < count)
    return true;
  r.fail(loc, what,
         "the dimension " + std::to_string(dim) + " is not in 0 .. " + std::to_string(static_cast<int>(count) - 1),
         "name a dimension of the tile");
  return false;
}

/// `op %x [attributes] : from to to`.
template <typename... Parts>
Handle reshaped(Recorder &r, Op op, ValueId x, const Shape &shape, Location loc, const Parts &...parts) {
  ValueType t = r.typeOf(x);
  t.shape = shape;
  const TypeId to = r.typeId(t);
  return r.handle(
      r.result(to, loc, op, ' ', ValueText{x}, parts..., " : ", TypeText{r.value(x).type}, " to ", TypeText{to}));
}

} // namespace

Handle programId(Axis axis, Location loc) {
  Recorder *r = Recorder::open("programId", loc);
  return r ? r->handle(r->result(r->scalar(DType::I32), loc, Op::ProgramId, ' ', axisText(axis))) : Handle();
}

Handle numPrograms(Axis axis, Location loc) {
  Recorder *r = Recorder::open("numPrograms", loc);
  return r ? r->handle(r->result(r->scalar(DType::I32), loc, Op::NumPrograms, ' ', axisText(axis))) : Handle();
}

Handle range(DType e, std::int64_t begin, std::int64_t end, Location loc) {
  Recorder *r = Recorder::open("range", loc);
  if (!r)
    return {};
  const std::string bounds = std::to_string(begin) + " .. " + std::to_string(end);
  if (begin < INT32_MIN || end > INT32_MAX || end <= begin) {
    r->fail(loc, "range", "the numbers " + bounds + " are none, or no 32-bit ones",
            "give a begin below the end, both of 32 bits, and add what is larger");
    return {};
  }
  const Shape shape = {end - begin};
  if (!r->goodShape(shape, "range", loc))
    return {};
  const TypeId type = r->tile(e, shape);
  return r->handle(r->result(type, loc, Op::Range, ' ', begin, " to ", end, " : ", TypeText{type}));
}

Handle full(const Shape &shape, const Operand &value, Location loc) {
  Recorder *r = Recorder::open("full", loc);
  if (!r || !r->goodShape(shape, "full", loc))
    return {};
  const auto id = value.kind == Operand::Kind::Constant ? r->bring(value, &shape, "full", loc)
                                                        : r->bring(value, nullptr, "full", loc);
  if (!id)
    return {};
  return r->handle(value.kind == Operand::Kind::Constant ? *id : r->splat(*id, shape, loc));
}

Shape shapeOf(const Handle &handle) {
  const Recorder *r = Recorder::any();
  const ValueType *t = r ? r->peek(handle) : nullptr;
  return t && t->shape.rank() ? t->shape : Shape{1};
}

Handle expandDims(const Operand &a, int dim, Location loc) {
  Recorder *r = Recorder::open("expandDims", loc);
  const auto id = r ? r->find(a, "expandDims", loc) : std::nullopt;
  if (!id)
    return {};
  const Shape from = r->typeOf(*id).shape;
  if (!goodDim(*r, dim, from.rank() + 1, "expandDims", loc))
    return {};
  const Shape to = from.with(static_cast<unsigned>(dim), 1);
  if (!r->goodShape(to, "expandDims", loc))
    return {};
  return reshaped(*r, Op::ExpandDims, *id, to, loc, " {axis = ", dim, " : i32}");
}

Handle broadcastTo(const Operand &a, const Shape &shape, Location loc) {
  Recorder *r = Recorder::open("broadcastTo", loc);
  const auto id = r ? r->find(a, "broadcastTo", loc) : std::nullopt;
  if (!id || !r->goodShape(shape, "broadcastTo", loc) ||
      !r->broadcastsTo(r->typeOf(*id).shape, shape, "broadcastTo", "the tile", loc))
    return {};
  return r->handle(r->broadcast(*id, shape, loc));
}

Handle transpose(const Operand &a, std::span<const int> permutation, Location loc) {
  Recorder *r = Recorder::open("transpose", loc);
  const auto id = r ? r->find(a, "transpose", loc) : std::nullopt;
  if (!id)
    return {};
  const Shape from = r->typeOf(*id).shape;
  const unsigned rank = from.rank();
  Shape to;
  std::string list;
  unsigned seen = 0;
  const auto take = [&](int dim) {
    list += (list.empty() ? "" : ", ") + std::to_string(dim);
    if (dim >= 0 && static_cast<unsigned>(dim) < rank) {
      seen |= 1u << dim;
      to.append(from[static_cast<unsigned>(dim)]);
    }
  };
  for (const int dim : permutation)
    take(dim);
  if (permutation.empty())
    for (int dim = static_cast<int>(rank) - 1; dim >= 0; --dim)
      take(dim);
  if ((!permutation.empty() && permutation.size() != rank) || seen != (1u << rank) - 1) {
    r->fail(loc, "transpose", "{" + list + "} is no permutation of the dimensions of " + from.toString(),
            "name each dimension once");
    return {};
  }
  return reshaped(*r, Op::Transpose, *id, to, loc, " [", std::string_view(list), "]");
}

Handle reshape(const Operand &a, const Shape &shape, Location loc) {
  Recorder *r = Recorder::open("reshape", loc);
  const auto id = r ? r->find(a, "reshape", loc) : std::nullopt;
  if (!id || !r->goodShape(shape, "reshape", loc))
    return {};
  const Shape from = r->typeOf(*id).shape;
  if (from.elements() != shape.elements()) {
    r->fail(loc, "reshape",
            "the shape " + from.toString() + " has " + std::to_string(from.elements()) + " elements, " +
                shape.toString() + " has " + std::to_string(shape.elements()),
            "choose a shape with the same number of elements");
    return {};
  }
  return from == shape ? r->handle(*id) : reshaped(*r, Op::Reshape, *id, shape, loc);
}

Handle join(const Operand &a, const Operand &b, Location loc) {
  Recorder *r = Recorder::open("join", loc);
  const auto x = r ? r->find(a, "join", loc) : std::nullopt;
  const auto y = x ? r->find(b, "join", loc) : std::nullopt;
  if (!y)
    return {};
  const Shape from = r->typeOf(*x).shape;
  if (!(from == r->typeOf(*y).shape)) {
    r->fail(loc, "join", "the shapes " + from.toString() + " and " + r->typeOf(*y).shape.toString() + " differ",
            "broadcast one of them with broadcastTo");
    return {};
  }
  const Shape to = from.with(from.rank(), 2);
  if (!r->goodShape(to, "join", loc))
    return {};
  ValueType t = r->typeOf(*x);
  t.shape = to;
  const TypeId type = r->typeId(t);
  return r->handle(r->result(type, loc, Op::Join, ' ', ValueText{*x}, ", ", ValueText{*y}, " : ",
                             TypeText{r->value(*x).type}, " to ", TypeText{type}));
}

void split(const Operand &a, Handle &first, Handle &second, Location loc) {
  Recorder *r = Recorder::open("split", loc);
  const auto id = r ? r->find(a, "split", loc) : std::nullopt;
  if (!id)
    return;
  ValueType t = r->typeOf(*id);
  const unsigned rank = t.shape.rank();
  if (rank < 2 || t.shape[rank - 1] != 2) {
    r->fail(loc, "split", "the shape " + t.shape.toString() + " has no last dimension of extent 2 after another one",
            "reshape the tile so that its last dimension has the extent 2");
    return;
  }
  t.shape = t.shape.without(rank - 1);
  const TypeId half = r->typeId(t), whole = r->value(*id).type;
  const ValueId x = r->define(half, loc), y = r->define(half, loc);
  r->line(loc, ValueText{x}, ", ", ValueText{y}, " = ", Op::Split, ' ', ValueText{*id}, " : ", TypeText{whole}, " to ",
          TypeText{half});
  first = r->handle(x);
  second = r->handle(y);
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

namespace {

/// Why no tile of this rank lies so in this kernel, and what to do; empty if it may.
std::pair<std::string, std::string> problemOf(const BlockedLayout &layout, unsigned rank, int warps) {
  const struct {
    const char *name;
    const Shape &sizes;
    std::int64_t product; ///< 0: any
  } lists[] = {{"sizePerThread", layout.sizePerThread, 0},
               {"threadsPerWarp", layout.threadsPerWarp, 32},
               {"warpsPerCTA", layout.warpsPerCTA, warps}};
  for (const auto &[name, sizes, product] : lists) {
    const std::string text = std::string(name) + " is " + sizes.toString();
    if (sizes.rank() != rank)
      return {text + " of a tile of rank " + std::to_string(rank), "give one number for each dimension"};
    std::int64_t all = 1;
    for (unsigned d = 0; d < rank; ++d) {
      if (sizes[d] < 1 || sizes[d] > 1024 || (sizes[d] & (sizes[d] - 1)))
        return {text, "give powers of two, at most 1024"};
      all *= sizes[d];
    }
    if (product && all != product)
      return {text + ", " + std::to_string(all) + " in all",
              "give numbers that multiply to " + std::to_string(product) +
                  (&sizes == &layout.warpsPerCTA ? ", the kernel's warps" : ", a warp's lanes")};
  }
  std::vector<bool> seen(rank);
  for (const int d : layout.order) {
    if (d < 0 || static_cast<unsigned>(d) >= rank || seen[static_cast<unsigned>(d)])
      return {"order has the dimension " + std::to_string(d), "name each dimension of the tile once"};
    seen[static_cast<unsigned>(d)] = true;
  }
  if (!layout.order.empty() && layout.order.size() != rank)
    return {"order has " + std::to_string(layout.order.size()) + " dimensions of a tile of rank " +
                std::to_string(rank),
            "name each dimension of the tile once"};
  return {};
}

} // namespace

Handle withLayout(const Operand &a, const BlockedLayout &layout, Location loc) {
  Recorder *r = Recorder::open("withLayout", loc);
  const auto x = r ? r->find(a, "withLayout", loc) : std::nullopt;
  if (!x)
    return {};
  const unsigned rank = r->typeOf(*x).shape.rank();
  if (const auto [problem, remedy] = problemOf(layout, rank, r->warps()); !problem.empty()) {
    r->fail(loc, "withLayout", problem, remedy);
    return {};
  }
  std::string encoding = "#tile_gpu.blocked<";
  const auto list = [&](const char *name, const auto &number, unsigned count) {
    encoding += (encoding.back() == '<' ? "" : ", ") + std::string(name) + "=[";
    for (unsigned d = 0; d < count; ++d)
      encoding += (d ? "," : "") + std::to_string(number(d));
    encoding += ']';
  };
  list("sizePerThread", [&](unsigned d) { return layout.sizePerThread[d]; }, rank);
  list("threadsPerWarp", [&](unsigned d) { return layout.threadsPerWarp[d]; }, rank);
  list("warpsPerCTA", [&](unsigned d) { return layout.warpsPerCTA[d]; }, rank);
  list(
      "order", [&](unsigned d) { return layout.order.empty() ? static_cast<int>(rank - 1 - d) : layout.order[d]; },
      rank);
  // There and back again: the tile has no layout before and after, assign-layouts gives it this one.
  const TypeId type = r->value(*x).type;
  std::string there = r->typeText(type);
  there.insert(there.size() - 1, ", " + encoding + ">");
  const std::string_view to(there);
  const ValueId anchor = r->result(type, loc, Op::ConvertLayout, ' ', ValueText{*x}, " : ", TypeText{type}, " to ", to);
  return r->handle(r->result(type, loc, Op::ConvertLayout, ' ', ValueText{anchor}, " : ", to, " to ", TypeText{type}));
}

} // namespace kiln::language::detail
