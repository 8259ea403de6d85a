#include "compiler/lowering/TileWindow.h"

using namespace mlir;

namespace kiln::lowering {

using layout::TileLayout;

ViewScalars::ViewScalars(ValueRange all) : base(all.front()) {
  const size_t rank = (all.size() - 1) / 3;
  first = all.slice(1, rank);
  end = all.slice(1 + rank, rank);
  strides = all.slice(1 + 2 * rank, rank);
}

Value atLeast(const Emit &e, Value x, Value bound) {
  return arith::MaxSIOp::create(e.b, e.loc, x, bound);
}
Value atMost(const Emit &e, Value x, Value bound) {
  return arith::MinSIOp::create(e.b, e.loc, x, bound);
}

TileWindow::TileWindow(const LoweringContext &context, const Emit &e, const TileLayout &layout, tile::ViewType type,
                       ValueRange scalars, ArrayRef<ValueRange> coords)
    : context(context), layout(layout), view(scalars), stored(memoryType(type.getElementType())), unit(type.getUnit()) {
  Value at;
  for (unsigned d = 0; d < layout.dims(); ++d) {
    const Value c = e.to64(coords[d].front());
    const Value step = isUnit(d) ? c : e.mul(c, view.strides[d]);
    at = at ? e.add(at, step) : step;
    const Value zero = e.i64(0), extent = e.i64(layout.shape(d));
    auto inTile = [&](Value bound) {
      Value v = atMost(e, atLeast(e, e.sub(bound, c), zero), extent);
      return arith::TruncIOp::create(e.b, e.loc, e.i(32), v).getResult();
    };
    first.push_back(inTile(view.first[d]));
    end.push_back(inTile(view.end[d]));
    length.push_back(atLeast(e, e.sub(end.back(), first.back()), e.i32(0)));
  }
  // The thread's own part of the address.
  Value own;
  for (unsigned d = 0; d < layout.dims(); ++d)
    if (Value t = context.threadCoordinate(layout, d)) {
      const Value step = offset(e, d, e.widen(t));
      own = own ? e.add(own, step) : step;
    }
  origin = e.gep(view.base, stored, at);
  threadOrigin = e.gep(origin, stored, own);
}

Value TileWindow::whole(const Emit &e) const {
  Value all;
  for (unsigned d = 0; d < layout.dims(); ++d)
    all = e.both(all, e.compare(arith::CmpIPredicate::eq, length[d], e.i32(layout.shape(d))));
  return all;
}

Value TileWindow::fromFirst(const Emit &e, unsigned d, unsigned reg) {
  // What the register adds comes last: its sum with the thread's coordinate alone would be the same value in every
  // window, and alive from the first of them to the last.
  const LoweringContext::RegisterPart part = LoweringContext::registerCoordinate(layout, d, reg);
  if (part.exclusive)
    return e.sub(context.coordinate(e.b, e.loc, layout, d, reg), first[d]);
  const Value thread = context.threadCoordinate(layout, d);
  const Value base = thread ? e.sub(thread, first[d]) : e.sub(e.i32(0), first[d]);
  return part.added ? e.add(base, e.i32(part.added)) : base;
}

Value TileWindow::insideAlong(const Emit &e, unsigned d, unsigned reg) {
  Value &known = insides[{d, LoweringContext::registerCoordinate(layout, d, reg)}];
  if (!known) {
    known = e.compare(arith::CmpIPredicate::ult, fromFirst(e, d, reg), length[d]);
  }
  return known;
}

Value TileWindow::inside(const Emit &e, unsigned reg) {
  Value all;
  for (unsigned d = 0; d < layout.dims(); ++d)
    all = e.both(all, insideAlong(e, d, reg));
  return all;
}

Value TileWindow::validRun(const Emit &e, unsigned reg, unsigned count) {
  Value others;
  for (unsigned d = 0; d < layout.dims(); ++d)
    if (!isUnit(d))
      others = e.both(others, insideAlong(e, d, reg));
  const auto u = static_cast<unsigned>(unit);
  // The first valid coordinate is 0: length is the end.
  const Value left = e.sub(length[u], fromFirst(e, u, reg));
  const Value run = atMost(e, atLeast(e, left, e.i32(0)), e.i32(count));
  return others ? e.select(others, run, e.i32(0)) : run;
}

Value TileWindow::offset(const Emit &e, unsigned d, Value coordinate) const {
  return isUnit(d) ? coordinate : e.mul(coordinate, view.strides[d]);
}

Value TileWindow::address(const Emit &e, unsigned reg) {
  bool exclusive = false;
  for (unsigned d = 0; d < layout.dims(); ++d)
    exclusive |= LoweringContext::registerCoordinate(layout, d, reg).exclusive != 0;
  if (exclusive) {
    Value at;
    for (unsigned d = 0; d < layout.dims(); ++d) {
      const Value step = offset(e, d, e.widen(context.coordinate(e.b, e.loc, layout, d, reg)));
      at = at ? e.add(at, step) : step;
    }
    return e.gep(origin, stored, at);
  }
  // Rows share a pointer; along the dimension of stride 1 the rest is an immediate.
  std::vector<unsigned> row;
  int64_t along = 0;
  for (unsigned d = 0; d < layout.dims(); ++d) {
    const unsigned added = LoweringContext::registerCoordinate(layout, d, reg).added;
    if (isUnit(d))
      along = added;
    else
      row.push_back(added);
  }
  Value &pointer = rows[row];
  if (!pointer) {
    // From the row before, by steps that are mostly alike: a product of a stride for each row would be alive through
    // every loop around.
    Value at;
    for (unsigned d = 0, i = 0; d < layout.dims(); ++d) {
      if (isUnit(d))
        continue;
      const int64_t by = static_cast<int64_t>(row[i]) - (lastPointer ? lastRow[i] : 0);
      ++i;
      if (by == 0)
        continue;
      const Value step = e.mul(view.strides[d], e.i64(by));
      at = at ? e.add(at, step) : step;
    }
    pointer = e.gep(lastPointer ? lastPointer : threadOrigin, stored, at);
    lastRow = row;
    lastPointer = pointer;
  }
  return e.gep(pointer, stored, along);
}

} // namespace kiln::lowering
