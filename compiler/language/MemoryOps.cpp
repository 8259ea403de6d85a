// Global memory through pointers and views, and checks.
#include "OrderedAtomics.h"
#include "RecorderImpl.h"

#include "support/TileDump.h"

#include <algorithm>
#include <cstdlib>

namespace kiln::language::detail {
namespace {

using ValueText = Recorder::ValueText;
using TypeText = Recorder::TypeText;

std::string_view cacheText(Cache cache) {
  constexpr std::string_view names[] = {"", " cache streaming", " cache global", " cache volatile"};
  return names[static_cast<unsigned>(cache)];
}
std::string_view orderText(Order order) {
  constexpr std::string_view names[] = {"relaxed", "acquire", "release", "acq_rel"};
  return names[static_cast<unsigned>(order)];
}
std::string_view scopeText(Scope scope) {
  constexpr std::string_view names[] = {"cta", "gpu", "sys"};
  return names[static_cast<unsigned>(scope)];
}

/// `role` brought to the shape of the pointers (a scalar if they are one).
std::optional<ValueId> bringTo(Recorder &r, const Operand &o, ValueId pointer, std::string_view what,
                               std::string_view role, Location loc) {
  const ValueType &t = r.typeOf(pointer);
  if (!t.isTile)
    return r.bring(o, nullptr, what, loc);
  const Shape shape = t.shape;
  if (o.kind == Operand::Kind::Value) {
    const auto id = r.find(o, what, loc);
    if (!id || (r.typeOf(*id).isTile && !r.broadcastsTo(r.typeOf(*id).shape, shape, what, role, loc)))
      return std::nullopt;
  }
  return r.bring(o, &shape, what, loc);
}

/// " mask %m", or nothing.  False after a failure.
bool maskText(Recorder &r, const Operand &mask, ValueId pointer, std::string_view what, Location loc,
              std::optional<ValueId> &id) {
  if (!mask.present())
    return true;
  id = bringTo(r, mask, pointer, what, "the mask", loc);
  return id.has_value();
}

void putOptional(Recorder &r, std::string_view word, const std::optional<ValueId> &id) {
  if (id)
    r.putAll(word, ValueText{*id});
}

/// The number type that the pointers point to, in their shape.
TypeId pointeeType(Recorder &r, ValueId pointer) {
  return r.withElement(r.value(pointer).type, r.typeOf(pointer).element);
}

} // namespace

Handle addPointer(const Operand &pointer, const Operand &offset, bool subtract, Location loc) {
  const std::string_view what = subtract ? "operator - of a pointer" : "operator + of a pointer";
  Recorder *r = Recorder::open(what, loc);
  if (!r)
    return {};
  Operand moved = offset;
  if (moved.kind == Operand::Kind::Constant) {
    const bool small = moved.constant.kind == Constant::Kind::Signed
                           ? moved.constant.i >= INT32_MIN && moved.constant.i <= INT32_MAX
                           : moved.constant.u <= INT32_MAX;
    moved.element = small ? DType::I32 : DType::I64;
  }
  if (subtract)
    moved = Operand::of(negate(moved.element, moved, loc), moved.element, loc);
  std::optional<Shape> shape;
  const Operand *const both[] = {&pointer, &moved};
  if (!r->ok() || !r->commonShape(both, what, loc, shape))
    return {};
  const auto p = r->bring(pointer, shape, what, loc);
  const auto o = p ? r->bring(moved, shape, what, loc) : std::nullopt;
  if (!o)
    return {};
  const TypeId type = r->value(*p).type;
  return r->handle(r->result(type, loc, Op::AddPtr, ' ', ValueText{*p}, ", ", ValueText{*o}, " : ", TypeText{type},
                             ", ", TypeText{r->value(*o).type}));
}

Handle load(const Operand &pointer, const Operand &mask, const Operand &other, Cache cache, Location loc) {
  Recorder *r = Recorder::open("load", loc);
  const auto p = r ? r->find(pointer, "load", loc) : std::nullopt;
  if (!p)
    return {};
  if (other.present() && !mask.present()) {
    r->fail(loc, "load", "has a value for masked elements and no mask", "give it a mask, or leave the value out");
    return {};
  }
  std::optional<ValueId> m, o;
  if (!maskText(*r, mask, *p, "load", loc, m))
    return {};
  if (other.present() && !(o = bringTo(*r, other, *p, "load", "the value of masked elements", loc)))
    return {};
  const ValueId id = r->define(pointeeType(*r, *p), loc);
  r->indent();
  r->putAll(ValueText{id}, " = ", Op::Load, ' ', ValueText{*p});
  putOptional(*r, " mask ", m);
  putOptional(*r, " other ", o);
  r->putAll(cacheText(cache), " : ", TypeText{r->value(*p).type});
  r->endLine(loc);
  return r->handle(id);
}

void store(const Operand &pointer, const Operand &value, const Operand &mask, Cache cache, Location loc) {
  Recorder *r = Recorder::open("store", loc);
  const auto p = r ? r->find(pointer, "store", loc) : std::nullopt;
  const auto v = p ? bringTo(*r, value, *p, "store", "the value", loc) : std::nullopt;
  std::optional<ValueId> m;
  if (!v || !maskText(*r, mask, *p, "store", loc, m))
    return;
  r->indent();
  r->putAll(Op::Store, ' ', ValueText{*p}, ", ", ValueText{*v});
  putOptional(*r, " mask ", m);
  r->putAll(cacheText(cache), " : ", TypeText{r->value(*p).type});
  r->endLine(loc);
}

Handle atomicRmw(Rmw kind, const Operand &pointer, const Operand &value, const Operand &mask, Order order, Scope scope,
                 Location loc) {
  constexpr std::string_view names[] = {"atomicAdd", "atomicMin", "atomicMax",     "atomicAnd",
                                        "atomicOr",  "atomicXor", "atomicExchange"};
  constexpr std::string_view words[] = {"add", "min", "max", "and", "or", "xor", "xchg"};
  const std::string_view what = names[static_cast<unsigned>(kind)];
  Recorder *r = Recorder::open(what, loc);
  const auto p = r ? r->find(pointer, what, loc) : std::nullopt;
  const auto v = p ? bringTo(*r, value, *p, what, "the value", loc) : std::nullopt;
  std::optional<ValueId> m;
  if (!v || !maskText(*r, mask, *p, what, loc, m))
    return {};
  std::string_view word = words[static_cast<unsigned>(kind)];
  if (isUnsigned(pointer.element) && kind == Rmw::Min)
    word = "umin";
  if (isUnsigned(pointer.element) && kind == Rmw::Max)
    word = "umax";
  const ValueId id = r->define(pointeeType(*r, *p), loc);
  r->indent();
  r->putAll(ValueText{id}, " = ", Op::AtomicRmw, ' ', word, ' ', orderText(order), ' ', scopeText(scope), ' ',
            ValueText{*p}, ", ", ValueText{*v});
  putOptional(*r, " mask ", m);
  r->putAll(" : ", TypeText{r->value(*p).type});
  r->endLine(loc);
  return r->handle(id);
}

void atomicAddAfter(const Operand &before, const Operand &counter, const Operand &pointer, const Operand &value,
                    const Operand &mask, Location loc) {
  Recorder *r = Recorder::open("atomicAddAfter", loc);
  const auto p = r ? r->find(pointer, "atomicAddAfter", loc) : std::nullopt;
  const auto v = p ? bringTo(*r, value, *p, "atomicAddAfter", "the value", loc) : std::nullopt;
  std::optional<ValueId> m;
  if (!v || !maskText(*r, mask, *p, "atomicAddAfter", loc, m))
    return;
  const auto n = r->bring(before, nullptr, "atomicAddAfter", loc);
  const auto c = n ? r->find(counter, "atomicAddAfter", loc) : std::nullopt;
  if (!c)
    return;
  const ValueId id = r->define(pointeeType(*r, *p), loc);
  r->indent();
  r->putAll(ValueText{id}, " = ", Op::AtomicRmw, " add relaxed gpu ", ValueText{*p}, ", ", ValueText{*v});
  putOptional(*r, " mask ", m);
  r->putAll(" after ", ValueText{*n}, " of ", ValueText{*c}, " : ", TypeText{r->value(*p).type});
  r->endLine(loc);
}

Handle atomicCas(const Operand &pointer, const Operand &expected, const Operand &desired, Order order, Scope scope,
                 Location loc) {
  Recorder *r = Recorder::open("atomicCas", loc);
  const auto p = r ? r->find(pointer, "atomicCas", loc) : std::nullopt;
  const auto e = p ? bringTo(*r, expected, *p, "atomicCas", "the expected value", loc) : std::nullopt;
  const auto d = e ? bringTo(*r, desired, *p, "atomicCas", "the desired value", loc) : std::nullopt;
  if (!d)
    return {};
  return r->handle(r->result(pointeeType(*r, *p), loc, Op::AtomicCas, ' ', orderText(order), ' ', scopeText(scope), ' ',
                             ValueText{*p}, ", ", ValueText{*e}, ", ", ValueText{*d}, " : ",
                             TypeText{r->value(*p).type}));
}

Handle gather(const Operand &source, const Operand &indices, int dim, Location loc) {
  Recorder *r = Recorder::open("gather", loc);
  const auto x = r ? r->find(source, "gather", loc) : std::nullopt;
  const auto i = x ? r->find(indices, "gather", loc) : std::nullopt;
  if (!i)
    return {};
  const Shape a = r->typeOf(*x).shape, b = r->typeOf(*i).shape;
  bool good = a.rank() == b.rank() && dim >= 0 && static_cast<unsigned>(dim) < a.rank();
  for (unsigned d = 0; good && d < a.rank(); ++d)
    good = d == static_cast<unsigned>(dim) || a[d] == b[d];
  if (!good) {
    r->fail(loc, "gather",
            "along dimension " + std::to_string(dim) + " of " + a.toString() + " with indices of shape " + b.toString(),
            "indices have the tile's rank, and its extents but for that dimension");
    return {};
  }
  const TypeId indexType = r->value(*i).type;
  return r->handle(r->result(r->withElement(indexType, source.element), loc, Op::Gather, ' ', ValueText{*x}, '[',
                             ValueText{*i}, "] {axis = ", dim, " : i32} : ", TypeText{r->value(*x).type}, ", ",
                             TypeText{indexType}));
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

namespace {

/// i64 if one operand is, or holds a number of more than 32 bits; else i32.
DType widest(Operands lists) {
  for (const Operand &o : lists) {
    if (o.kind == Operand::Kind::Constant) {
      const Constant &c = o.constant;
      if (c.kind == Constant::Kind::Signed ? c.i < INT32_MIN || c.i > INT32_MAX : c.u > INT32_MAX)
        return DType::I64;
    } else if (o.element == DType::I64) {
      return DType::I64;
    }
  }
  return DType::I32;
}

/// Scalars of the type `e`.
bool bringIndices(Recorder &r, Operands list, DType e, std::string_view what, Location loc, std::vector<ValueId> &ids) {
  for (Operand o : list) {
    if (o.kind == Operand::Kind::Constant)
      o.element = e;
    else if (o.element != e)
      o = Operand::of(cast(e, o, loc), e, loc);
    const auto id = r.ok() ? r.bring(o, nullptr, what, loc) : std::nullopt;
    if (!id)
      return false;
    ids.push_back(*id);
  }
  return true;
}

} // namespace

void putList(Recorder &r, std::span<const ValueId> ids) {
  r.put('[');
  for (std::size_t i = 0; i < ids.size(); ++i)
    r.putAll(i ? ", " : "", ValueText{ids[i]});
  r.put(']');
}

/// The view and its coordinates.
std::optional<ValueId> findView(Recorder *r, const Handle &view, Operands coords, std::string_view what, Location loc,
                                std::vector<ValueId> &ids) {
  const auto id = r ? r->find(view, what, loc) : std::nullopt;
  if (!id)
    return id;
  const unsigned rank = r->typeOf(*id).shape.rank();
  if (coords.size() != rank) {
    r->fail(loc, what,
            std::to_string(coords.size()) + " coordinates for a view of tiles " + r->typeOf(*id).shape.toString() +
                ", of rank " + std::to_string(rank),
            "give one coordinate for each dimension");
    return std::nullopt;
  }
  return bringIndices(*r, coords, widest(coords), what, loc, ids) ? id : std::nullopt;
}

Handle makeView(const Operand &pointer, Operands extents, Operands strides, const Shape &tile, int unit, Location loc) {
  const std::string_view what = "makeView";
  Recorder *r = Recorder::open(what, loc);
  const auto p = r ? r->find(pointer, what, loc) : std::nullopt;
  if (!p || !r->goodShape(tile, what, loc))
    return {};
  const unsigned rank = tile.rank();
  if (rank > 5 || extents.size() != rank || strides.size() != rank) {
    r->fail(loc, what,
            std::to_string(extents.size()) + " extents and " + std::to_string(strides.size()) + " strides for tiles " +
                tile.toString() + ", of rank " + std::to_string(rank),
            "give one extent and one stride for each dimension; views have 1 to 5");
    return {};
  }
  if (unit == -2)
    unit = static_cast<int>(rank) - 1;
  if (unit < -1 || unit >= static_cast<int>(rank)) {
    r->fail(loc, what, "the unit dimension " + std::to_string(unit) + " is not in 0 .. " + std::to_string(rank - 1),
            "name a dimension with unitDim(d), or Unit::None");
    return {};
  }
  if (unit >= 0)
    if (const Operand &s = strides[static_cast<unsigned>(unit)];
        s.kind == Operand::Kind::Constant && s.constant.i != 1) {
      r->fail(loc, what,
              "the stride of the unit dimension " + std::to_string(unit) + " is " + constantText(s.constant) +
                  ", not 1",
              "name the dimension of stride 1 with unitDim(d), or Unit::None");
      return {};
    }
  // One type for all, 64 bits: extents and strides may be large.
  std::vector<ValueId> e, s;
  if (!bringIndices(*r, extents, DType::I64, what, loc, e) || !bringIndices(*r, strides, DType::I64, what, loc, s))
    return {};
  ValueType t{r->typeOf(*p).element, ValueType::Kind::View, false, tile, unit};
  const TypeId type = r->typeId(t);
  const ValueId id = r->define(type, loc);
  r->indent();
  r->putAll(ValueText{id}, " = ", Op::MakeView, ' ', ValueText{*p}, ", extents ");
  putList(*r, e);
  r->put(", strides ");
  putList(*r, s);
  r->putAll(" : ", TypeText{type}, ", i64");
  r->endLine(loc);
  return r->handle(id);
}

Handle tensorView(const Operand &pointer, Operands extents, Operands strides, std::span<const std::int64_t> tile,
                  int excess, int unit, Location loc) {
  Recorder *r = Recorder::open("tiles", loc);
  if (!r)
    return {};
  if (excess != 0) {
    r->fail(loc, "tiles",
            "a tile with " + std::to_string(std::abs(excess)) +
                (excess > 0 ? " dimensions more" : " dimensions fewer") + " than are left of the tensor",
            "give one extent for each dimension that `at` kept");
    return {};
  }
  Shape shape;
  for (const std::int64_t extent : tile)
    shape.append(extent);
  return makeView(pointer, extents, strides, shape, unit, loc);
}

Handle sliceView(const Handle &view, Operands coords, std::span<const int> dims, Location loc) {
  Recorder *r = Recorder::open("at", loc);
  std::vector<ValueId> ids;
  const auto id = r ? r->find(view, "at", loc) : std::nullopt;
  if (!id || !bringIndices(*r, coords, widest(coords), "at", loc, ids))
    return {};
  const ValueType from = r->typeOf(*id);
  ValueType to = from;
  to.shape = Shape();
  to.unit = -1;
  for (int d = 0; d < static_cast<int>(from.shape.rank()); ++d) {
    if (std::find(dims.begin(), dims.end(), d) != dims.end())
      continue;
    if (d == from.unit)
      to.unit = static_cast<int>(to.shape.rank());
    to.shape.append(from.shape[static_cast<unsigned>(d)]);
  }
  const TypeId source = r->value(*id).type, type = r->typeId(to);
  const ValueId out = r->define(type, loc);
  r->indent();
  r->putAll(ValueText{out}, " = ", Op::SliceView, ' ', ValueText{*id});
  putList(*r, ids);
  r->put(" {dims = array<i32: ");
  for (std::size_t i = 0; i < dims.size(); ++i)
    r->putAll(i ? ", " : "", dims[i]);
  r->putAll(">} : ", TypeText{source}, ", ", elementText(widest(coords)), " -> ", TypeText{type});
  r->endLine(loc);
  return r->handle(out);
}

void refuseDimension(const char *operation, int dim, int rank, Location loc) {
  if (Recorder *r = Recorder::open(operation, loc))
    r->fail(loc, operation, "the dimension " + std::to_string(dim) + " is not in 0 .. " + std::to_string(rank - 1),
            "name a dimension that is left of the tensor");
}

Handle narrowView(const Handle &view, int dim, const Operand &start, const Operand &size, Location loc) {
  Recorder *r = Recorder::open("narrow", loc);
  const auto id = r ? r->find(view, "narrow", loc) : std::nullopt;
  if (!id)
    return {};
  const unsigned rank = r->typeOf(*id).shape.rank();
  if (dim < 0 || static_cast<unsigned>(dim) >= rank) {
    r->fail(loc, "narrow", "the dimension " + std::to_string(dim) + " is not in 0 .. " + std::to_string(rank - 1),
            "name a dimension of the view");
    return {};
  }
  const Operand bounds[] = {start, size};
  const DType e = widest(bounds);
  std::vector<ValueId> ids;
  if (!bringIndices(*r, bounds, e, "narrow", loc, ids))
    return {};
  const TypeId type = r->value(*id).type;
  return r->handle(r->result(type, loc, Op::NarrowView, ' ', ValueText{*id}, '[', ValueText{ids[0]}, ", ",
                             ValueText{ids[1]}, "] {dim = ", dim, " : i32} : ", TypeText{type}, ", ", elementText(e)));
}

Handle loadView(const Handle &view, DType e, Operands coords, Cache cache, Location loc, bool unstaged) {
  Recorder *r = Recorder::open("loadView", loc);
  std::vector<ValueId> ids;
  const auto id = findView(r, view, coords, "loadView", loc, ids);
  if (!id)
    return {};
  const ValueType t = r->typeOf(*id);
  const TypeId tile = r->tile(t.element, t.shape);
  const ValueId x = r->define(tile, loc);
  r->indent();
  r->putAll(ValueText{x}, " = ", Op::LoadView, ' ', ValueText{*id});
  putList(*r, ids);
  r->putAll(cacheText(cache), unstaged ? " {unstaged}" : "", " : ", TypeText{r->value(*id).type}, ", ",
            TypeText{r->value(ids[0]).type}, " -> ", TypeText{tile});
  r->endLine(loc);
  return r->handle(x);
}

void storeView(const Handle &view, Operands coords, const Operand &value, Cache cache, Location loc) {
  Recorder *r = Recorder::open("storeView", loc);
  std::vector<ValueId> ids;
  const auto id = findView(r, view, coords, "storeView", loc, ids);
  const auto v = id ? r->find(value, "storeView", loc) : std::nullopt;
  if (!v)
    return;
  const Shape shape = r->typeOf(*id).shape;
  if (!r->broadcastsTo(r->typeOf(*v).shape, shape, "storeView", "the tile", loc))
    return;
  const ValueId x = r->broadcast(*v, shape, loc);
  r->indent();
  r->putAll(Op::StoreView, ' ', ValueText{*id});
  putList(*r, ids);
  r->putAll(", ", ValueText{x}, cacheText(cache), " : ", TypeText{r->value(*id).type}, ", ",
            TypeText{r->value(ids[0]).type}, ", ", TypeText{r->value(x).type});
  r->endLine(loc);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

void assume(const Operand &condition, Location loc) {
  Recorder *r = Recorder::open("assume", loc);
  const auto c = r ? r->bring(condition, nullptr, "assume", loc) : std::nullopt;
  if (c)
    r->line(loc, Op::Assume, ' ', ValueText{*c});
}

Handle multipleOf(const Operand &a, std::int64_t divisor, Location loc) {
  Recorder *r = Recorder::open("multipleOf", loc);
  const auto id = r ? r->find(a, "multipleOf", loc) : std::nullopt;
  if (!id)
    return {};
  if (divisor < 1 || divisor > INT32_MAX) {
    r->fail(loc, "multipleOf", "a multiple of " + std::to_string(divisor), "give a divisor from 1 to 2^31 - 1");
    return {};
  }
  const TypeId type = r->value(*id).type;
  return r->handle(r->result(type, loc, Op::MultipleOf, ' ', ValueText{*id}, ", ", divisor, " : ", TypeText{type}));
}

Handle maxContiguous(const Operand &a, std::int64_t elements, int dim, Location loc) {
  Recorder *r = Recorder::open("maxContiguous", loc);
  const auto id = r ? r->find(a, "maxContiguous", loc) : std::nullopt;
  if (!id)
    return {};
  const int rank = static_cast<int>(r->typeOf(*id).shape.rank()), axis = dim < 0 ? rank - 1 : dim;
  if (elements < 1 || elements > INT32_MAX || (elements & (elements - 1)) != 0 || axis >= rank) {
    r->fail(loc, "maxContiguous",
            "runs of " + std::to_string(elements) + " elements along dimension " + std::to_string(axis) + " of " +
                r->typeOf(*id).shape.toString(),
            "give a power of two, and a dimension of the tile");
    return {};
  }
  const TypeId type = r->value(*id).type;
  return r->handle(r->result(type, loc, Op::MaxContiguous, ' ', ValueText{*id}, ", ", elements, " {axis = ", axis,
                             " : i32} : ", TypeText{type}));
}

void deviceAssert(const Operand &condition, std::string_view message, Location loc) {
  Recorder *r = Recorder::open("deviceAssert", loc);
  const auto c = r ? r->find(condition, "deviceAssert", loc) : std::nullopt;
  if (c)
    r->line(loc, Op::Assert, ' ', ValueText{*c}, ", ", Recorder::Quoted{message}, " : ", TypeText{r->value(*c).type});
}

void devicePrint(std::string_view prefix, Operands values, Location loc, std::span<const PrintRange> slice) {
  Recorder *r = Recorder::open("devicePrint", loc);
  if (!r)
    return;
  std::vector<ValueId> ids;
  for (const Operand &o : values) {
    const auto id = r->find(o, "devicePrint", loc);
    if (!id)
      return;
    ids.push_back(*id);
  }
  std::string attribute;
  if (!slice.empty()) {
    const Shape &shape = r->typeOf(ids[0]).shape;
    std::string text;
    bool good = slice.size() == shape.rank();
    for (std::size_t d = 0; d < slice.size(); ++d) {
      const PrintRange &range = slice[d];
      good = good && range.begin >= 0 && range.begin < range.end && range.end <= shape[static_cast<unsigned>(d)];
      text += (d ? ", " : "") + std::to_string(range.begin) + ", " + std::to_string(range.end);
    }
    if (!good) {
      r->fail(loc, "devicePrintSlice", "the tile " + shape.toString() + " has no slice [" + text + "]",
              "give begin and end of each dimension, 0 <= begin < end <= extent");
      return;
    }
    attribute = " {tile.slice = array<i64: " + text + ">}";
  }
  r->indent();
  r->putAll(Op::Print, ' ', Recorder::Quoted{prefix});
  for (std::size_t i = 0; i < ids.size(); ++i)
    r->putAll(i ? ", " : " ", ValueText{ids[i]});
  for (std::size_t i = 0; i < ids.size(); ++i)
    r->putAll(i ? ", " : " : ", TypeText{r->value(ids[i]).type});
  if (!attribute.empty())
    r->putAll(attribute);
  r->endLine(loc);
}

void dumpTile(std::string_view name, DType element, const Operand &bits, Location loc) {
  Recorder *r = Recorder::open("dumpTile", loc);
  const auto id = r ? r->find(bits, "dumpTile", loc) : std::nullopt;
  if (!id)
    return;
  if (!isTileDumpName(name)) {
    r->fail(loc, "dumpTile", "'" + std::string(name) + "' cannot be part of a file's name",
            "use 1 to 64 letters, digits, '_' and '-'");
    return;
  }
  const Shape &shape = r->typeOf(*id).shape;
  std::string prefix = std::string(tileDumpMark) + std::string(name) + " " + std::string(elementName(element)) + " ";
  for (unsigned d = 0; d < shape.rank(); ++d)
    prefix += (d ? "x" : "") + std::to_string(shape[d]);
  devicePrint(prefix + " ", {&bits, 1}, loc);
}

} // namespace kiln::language::detail
