// Operations with regions: loops, conditions, reductions and scans.
#include "RecorderImpl.h"

namespace kiln::language::detail {
namespace {

using ValueText = Recorder::ValueText;
using TypeText = Recorder::TypeText;
using Frame = Recorder::Frame;
using RegionKind = Recorder::RegionKind;

std::string_view spelling(const Frame &f) {
  switch (f.op) {
  case Op::For:
    return "loop";
  case Op::While:
    return "whileLoop";
  case Op::If:
    return "when";
  case Op::Reduce:
    return "reduce";
  default:
    return "scan";
  }
}

/// The values that a body gives, of the region's types; `yield %a, %b : types` is recorded.
bool yieldValues(Recorder &r, Operands yielded, Op op, std::string_view role) {
  const Frame &f = r.frame();
  const std::string_view what = spelling(f);
  std::vector<ValueId> ids;
  for (std::size_t i = 0; i < yielded.size(); ++i) {
    const auto id = r.find(yielded[i], what, f.location);
    if (!id)
      return false;
    if (const TypeId type = r.value(*id).type; type != f.yielded[i]) {
      r.fail(f.location, what,
             std::string(role) + " " + std::to_string(i) + " is " + r.typeText(f.yielded[i]) + ", but the value from " +
                 r.where(r.value(*id).location) + " is " + r.typeText(type),
             "keep the shape the same; broadcastTo, reshape and full change it");
      return false;
    }
    ids.push_back(*id);
  }
  r.indent();
  r.put(op);
  for (std::size_t i = 0; i < ids.size(); ++i)
    r.putAll(i ? ", " : " ", ValueText{ids[i]});
  if (!ids.empty()) {
    r.put(" : ");
    r.putTypes(f.yielded);
  }
  r.endLine(f.location);
  return true;
}

/// Closes the operation: `}`, and its results.
void finishRegions(Recorder &r, std::span<Handle> results) {
  const Frame f = r.frame();
  r.closeRegion();
  r.indent();
  r.put('}');
  const auto &[stages, unroll] = f.options;
  if (stages || unroll)
    r.put(" {");
  if (stages)
    r.putAll("tile.num_stages = ", *stages, unroll ? " : i32, " : " : i32");
  if (unroll)
    r.putAll("tile.unroll = ", *unroll, " : i32");
  if (stages || unroll)
    r.put('}');
  r.endLine(f.location);
  const ValueId first = r.defineParts(f.number, f.results, f.location);
  for (std::size_t i = 0; i < results.size() && i < f.results.size(); ++i)
    results[i] = r.handle(first + static_cast<ValueId>(i));
}

/// The first values of what a loop carries; `frame` gets their types.  None if one cannot be used here.
std::optional<std::vector<ValueId>> findCarried(Recorder &r, Operands carried, const char *what, Frame &frame) {
  std::vector<ValueId> first;
  for (const Operand &o : carried) {
    const auto id = r.find(o, what, frame.location);
    if (!id)
      return std::nullopt;
    first.push_back(*id);
    frame.results.push_back(r.value(*id).type);
  }
  frame.yielded = frame.results;
  return first;
}

} // namespace

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

bool beginLoop(DType e, const Operand &begin, const Operand &end, const Operand &step, const LoopOptions &options,
               Operands carried, Handle &induction, std::span<Handle> inside, Location loc) {
  Recorder *r = Recorder::open("loop", loc);
  if (!r)
    return false;
  if (step.kind == Operand::Kind::Constant && step.constant.kind == Constant::Kind::Signed && step.constant.i <= 0) {
    r->fail(loc, "loop", "the step is " + constantText(step.constant), "give a positive step and count from 0");
    return false;
  }
  if (options.stages && !goodStages(*options.stages)) {
    r->fail(loc, "loop", "has " + std::to_string(*options.stages) + " stages", kernelOption("stages").rule());
    return false;
  }
  if (constexpr int most = 64; options.unroll && (*options.unroll < 1 || *options.unroll > most)) {
    r->fail(loc, "loop", "does " + std::to_string(*options.unroll) + " rounds at once",
            "unroll(n) repeats the body 1 to " + std::to_string(most) + " times");
    return false;
  }
  const auto lower = r->bring(begin, nullptr, "loop", loc);
  const auto upper = lower ? r->bring(end, nullptr, "loop", loc) : std::nullopt;
  const auto stride = upper ? r->bring(step, nullptr, "loop", loc) : std::nullopt;
  if (!stride)
    return false;
  Frame f{RegionKind::Loop, Op::For, loc};
  const auto firstValues = findCarried(*r, carried, "loop", f);
  if (!firstValues)
    return false;
  const std::vector<ValueId> &first = *firstValues;
  f.options = options;
  f.number = r->takeNumber();
  r->indent();
  r->openRegion(f);
  const ValueId counter = r->define(r->scalar(e), loc);
  r->putResults(f.number, first.size());
  r->putAll(Op::For, ' ', ValueText{counter}, " = ", ValueText{*lower}, " to ", ValueText{*upper}, " step ",
            ValueText{*stride});
  if (!first.empty()) {
    r->put(" iter_args(");
    for (std::size_t i = 0; i < first.size(); ++i) {
      const ValueId id = r->define(f.results[i], loc);
      inside[i] = r->handle(id);
      r->putAll(i ? ", " : "", ValueText{id}, " = ", ValueText{first[i]});
    }
    r->put(") -> (");
    r->putTypes(f.results);
    r->put(')');
  }
  r->putAll(" : ", elementText(e), " {\n");
  induction = r->handle(counter);
  return true;
}

void endLoop(Operands yielded, std::span<Handle> results) {
  Recorder *r = Recorder::current();
  if (r && yieldValues(*r, yielded, Op::ScfYield, "carried value"))
    finishRegions(*r, results);
}

bool beginWhile(Operands carried, std::span<Handle> inside, Location loc) {
  Recorder *r = Recorder::open("whileLoop", loc);
  if (!r)
    return false;
  Frame f{RegionKind::Loop, Op::While, loc};
  const auto firstValues = findCarried(*r, carried, "whileLoop", f);
  if (!firstValues)
    return false;
  const std::vector<ValueId> &first = *firstValues;
  f.number = r->takeNumber();
  r->indent();
  r->openRegion(f);
  r->putResults(f.number, first.size());
  r->put(Op::While);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const ValueId id = r->define(f.results[i], loc);
    f.carried.push_back(id);
    inside[i] = r->handle(id);
    r->putAll(i ? ", " : " (", ValueText{id}, " = ", ValueText{first[i]});
  }
  r->put(first.empty() ? " : (" : ") : (");
  r->putTypes(f.results);
  r->put(") -> (");
  r->putTypes(f.results);
  r->put(") {\n");
  r->frame().carried = std::move(f.carried);
  return true;
}

bool beginWhileBody(const Operand &condition, std::span<Handle> inside) {
  Recorder *r = Recorder::current();
  if (!r)
    return false;
  Frame f = r->frame();
  const auto id = r->bring(condition, nullptr, "whileLoop", f.location);
  if (!id)
    return false;
  r->indent();
  r->putAll(Op::ScfCondition, '(', ValueText{*id}, ')');
  for (std::size_t i = 0; i < f.carried.size(); ++i)
    r->putAll(i ? ", " : " ", ValueText{f.carried[i]});
  if (!f.carried.empty()) {
    r->put(" : ");
    r->putTypes(f.results);
  }
  r->endLine(f.location);
  r->closeRegion();
  r->indent();
  r->put("} do {\n");
  if (!f.carried.empty())
    r->indent();
  r->openRegion(f);
  for (std::size_t i = 0; i < f.carried.size(); ++i) {
    const ValueId argument = r->define(f.results[i], f.location);
    inside[i] = r->handle(argument);
    r->putAll(i ? ", " : "^bb0(", ValueText{argument}, ": ", TypeText{f.results[i]});
    r->putLocation(f.location);
  }
  if (!f.carried.empty())
    r->put("):\n");
  return true;
}

//===----------------------------------------------------------------------===//
// Conditions.  A scf.if names its results' types before its bodies, so its header is put in once the first body ended.
//===----------------------------------------------------------------------===//

Handle anyRow(const Operand &rows, Location loc) {
  Recorder *r = Recorder::open("whenRows", loc);
  const auto id = r ? r->find(rows, "whenRows", loc) : std::nullopt;
  if (!id)
    return {};
  const TypeId type = r->value(*id).type;
  if (const unsigned rank = r->typeOf(*id).shape.rank(); rank != 1) {
    r->fail(loc, "whenRows", "the rows are " + r->typeText(type), "give a mask of one dimension, an element a row");
    return {};
  }
  return r->handle(r->result(r->scalar(DType::I1), loc, Op::AnyRow, ' ', ValueText{*id}, " : ", TypeText{type}));
}

bool beginWhen(const Operand &condition, Location loc) {
  Recorder *r = Recorder::open("when", loc);
  const auto c = r ? r->bring(condition, nullptr, "when", loc) : std::nullopt;
  if (!c)
    return false;
  Frame f{RegionKind::Branch, Op::If, loc};
  f.number = r->takeNumber();
  f.condition = *c;
  r->indent();
  f.headerAt = r->text.size();
  r->openRegion(std::move(f));
  return true;
}

static bool endFirstBody(Recorder &r, Operands yielded) {
  Frame &f = r.frame();
  for (const Operand &o : yielded) {
    const auto id = r.find(o, "when", f.location);
    if (!id)
      return false;
    f.yielded.push_back(r.value(*id).type);
  }
  f.results = f.yielded;
  if (!yieldValues(r, yielded, Op::ScfYield, "result"))
    return false;
  std::string bodies = r.text.substr(f.headerAt);
  r.text.resize(f.headerAt);
  r.putResults(f.number, f.results.size());
  r.putAll(Op::If, ' ', ValueText{f.condition});
  if (!f.results.empty()) {
    r.put(" -> (");
    r.putTypes(f.results);
    r.put(')');
  }
  r.putAll(" {\n", std::string_view(bodies));
  return true;
}

bool beginOtherwise(Operands yielded) {
  Recorder *r = Recorder::current();
  if (!r || !endFirstBody(*r, yielded))
    return false;
  Frame f = r->frame();
  f.otherwise = true;
  r->closeRegion();
  r->indent();
  r->put("} else {\n");
  r->openRegion(std::move(f));
  return true;
}

void endWhen(Operands yielded, std::span<Handle> results) {
  Recorder *r = Recorder::current();
  if (!r)
    return;
  if (r->frame().otherwise ? yieldValues(*r, yielded, Op::ScfYield, "result") : endFirstBody(*r, yielded))
    finishRegions(*r, results);
}

//===----------------------------------------------------------------------===//
// Reductions and scans
//===----------------------------------------------------------------------===//

bool beginCombine(bool isScan, Operands sources, int dim, bool reverse, bool scalars, std::span<Handle> inside,
                  Location loc) {
  const std::string_view what = isScan ? "scan" : "reduce";
  Recorder *r = Recorder::open(what, loc);
  if (!r)
    return false;
  std::vector<ValueId> ids;
  Frame f{RegionKind::Combine, isScan ? Op::Scan : Op::Reduce, loc};
  for (const Operand &o : sources) {
    const auto id = r->find(o, what, loc);
    if (!id)
      return false;
    ids.push_back(*id);
    const Shape shape = r->typeOf(*id).shape, first = r->typeOf(ids[0]).shape;
    if (!(shape == first)) {
      r->fail(loc, what, "the operands have the shapes " + first.toString() + " and " + shape.toString(),
              "make the shapes equal with broadcastTo");
      return false;
    }
  }
  const Shape shape = r->typeOf(ids[0]).shape;
  if (dim < 0 || static_cast<unsigned>(dim) >= shape.rank()) {
    r->fail(loc, what, "the dimension " + std::to_string(dim) + " is not in 0 .. " + std::to_string(shape.rank() - 1),
            "name a dimension of the tile with along(d)");
    return false;
  }
  if (!isScan && !scalars && shape.rank() == 1) {
    r->fail(loc, what, "a tile of shape " + shape.toString() + " reduces to a scalar, not to a tile",
            "leave along(0) out: the result is then a scalar");
    return false;
  }
  for (const ValueId id : ids) {
    ValueType t = r->typeOf(id);
    f.yielded.push_back(r->scalar(t.element));
    if (isScan) {
      f.results.push_back(r->value(id).type);
    } else if (scalars) {
      f.results.push_back(f.yielded.back());
    } else {
      t.shape = t.shape.without(static_cast<unsigned>(dim));
      f.results.push_back(r->typeId(t));
    }
  }
  f.number = r->takeNumber();
  r->indent();
  r->putResults(f.number, ids.size());
  r->putAll(f.op, '(');
  for (std::size_t i = 0; i < ids.size(); ++i)
    r->putAll(i ? ", " : "", ValueText{ids[i]});
  r->putAll(") {axis = ", dim, " : i32", reverse ? ", reverse} : " : "} : ");
  for (std::size_t i = 0; i < ids.size(); ++i)
    r->putAll(i ? ", " : "", TypeText{r->value(ids[i]).type});
  if (!isScan) {
    r->put(" to ");
    r->putTypes(f.results);
  }
  r->put(" {\n");
  r->indent();
  r->openRegion(f);
  r->put("^bb0(");
  const std::size_t n = ids.size();
  for (std::size_t i = 0; i < 2 * n; ++i) {
    const ValueId id = r->define(f.yielded[i % n], loc);
    inside[i] = r->handle(id);
    r->putAll(i ? ", " : "", ValueText{id}, ": ", TypeText{f.yielded[i % n]});
    r->putLocation(loc);
  }
  r->put("):\n");
  return true;
}

void endCombine(Operands yielded, std::span<Handle> results) {
  Recorder *r = Recorder::current();
  if (r && yieldValues(*r, yielded, Op::Yield, "result"))
    finishRegions(*r, results);
}

} // namespace kiln::language::detail
