// Rings of slots in shared memory.
#include "RecorderImpl.h"

#include <algorithm>

namespace kiln::language::detail {

namespace {

using TypeText = Recorder::TypeText;
using ValueText = Recorder::ValueText;
using Kind = ValueType::Kind;

/// The largest power of two that divides `n`.
std::int64_t core(std::int64_t n) {
  return n & -n;
}

/// How the tiles of a ring lie along its contiguous dimension.
struct Rows {
  bool last;            ///< that dimension is the last one
  std::int64_t bytes;   ///< of the extent's power of two
  std::int64_t vector;  ///< elements of a copy, of 16 bytes if there are as many
  std::int64_t vectors; ///< in those bytes
  explicit Rows(const ValueType &ring) : last(ring.unit != 0) {
    const std::int64_t size = dtypeBytes(ring.element), extent = core(ring.shape[static_cast<unsigned>(ring.unit)]);
    bytes = extent * size;
    vector = std::min(extent, 16 / size);
    vectors = extent / vector;
  }
  std::string order() const { return last ? "[1,0]" : "[0,1]"; }
  /// One number along the rows, one across.
  std::string pair(std::int64_t along, std::int64_t across) const {
    return '[' + std::to_string(last ? across : along) + ',' + std::to_string(last ? along : across) + ']';
  }
};

/// The layout in which threads copy and read a ring's tiles, by its name: lanes along a row first.
std::string registersOf(Recorder &r, const ValueType &ring) {
  const Rows rows(ring);
  const std::int64_t lanes = std::min<std::int64_t>(32, rows.vectors);
  return r.alias("#tile_gpu.blocked<sizePerThread=" + rows.pair(rows.vector, 1) +
                 ", threadsPerWarp=" + rows.pair(lanes, 32 / lanes) + ", warpsPerCTA=" + rows.pair(1, r.warps()) +
                 ", order=" + rows.order() + ">");
}

/// That of a slot: eight rows of 16 bytes, which a matrix instruction reads at once, lie in different banks.
std::string sharedOf(const ValueType &ring) {
  const Rows rows(ring);
  const std::int64_t perPhase = std::clamp<std::int64_t>(128 / rows.bytes, 1, 8),
                     maxPhase = std::max<std::int64_t>(1, std::min(8 / perPhase, rows.vectors));
  return "#tile_gpu.swizzled<vec=" + std::to_string(rows.vector) + ", perPhase=" + std::to_string(perPhase) +
         ", maxPhase=" + std::to_string(maxPhase) + ", order=" + rows.order() + ">";
}

std::optional<ValueId> findPipeline(Recorder *r, const Handle &h, std::string_view what, Location loc) {
  return r ? r->find(Operand::pipeline(h, loc), what, loc) : std::nullopt;
}

/// A ring's next state.
Handle stepped(Op op, std::string_view what, const Handle &pipeline, Location loc) {
  Recorder *r = Recorder::open(what, loc);
  const auto p = findPipeline(r, pipeline, what, loc);
  if (!p)
    return {};
  const TypeId type = r->value(*p).type;
  return r->handle(r->result(type, loc, op, ' ', ValueText{*p}, " : ", TypeText{type}));
}

/// acquire or wait: the next state and the slot's buffer.
std::pair<ValueId, ValueId> slotOf(Recorder &r, Op op, ValueId p, Location loc) {
  const TypeId type = r.value(p).type;
  ValueType buffer = r.type(type);
  buffer.kind = Kind::Buffer;
  buffer.stages = 0;
  const ValueId next = r.define(type, loc), slot = r.define(r.typeId(buffer), loc);
  r.line(loc, ValueText{next}, ", ", ValueText{slot}, " = ", op, ' ', ValueText{p}, " : ", TypeText{type});
  return {next, slot};
}

} // namespace

Handle makePipeline(std::string_view name, DType element, const Shape &tile, int stages, int contiguous, Location loc) {
  const std::string_view what = "pipeline";
  Recorder *r = Recorder::open(what, loc);
  if (!r || !r->goodShape(tile, what, loc))
    return {};
  const auto refused = [&](const std::string &message, const char *remedy) {
    r->fail(loc, what, message, remedy);
    return Handle();
  };
  if (tile.rank() != 2)
    return refused("tiles of shape " + tile.toString(), "give tiles of two dimensions");
  if (stages < 1 || stages > 64)
    return refused(std::to_string(stages) + " stages", "give 1 to 64");
  if (contiguous != -2 && contiguous != 0 && contiguous != 1)
    return refused("no dimension " + std::to_string(contiguous) + " is contiguous in a slot",
                   "give Unit::Last or unitDim(0)");
  if (element == DType::I1)
    return refused("a ring of masks", "give one of numbers");
  ValueType type{Recorder::signless(element), Kind::Pipeline, false, tile, contiguous == 0 ? 0 : 1, stages};
  type.name = name;
  const TypeId id = r->typeId(type);
  return r->handle(r->result(id, loc, Op::Pipeline, " : ", TypeText{id}));
}

Handle fillSlot(const Handle &pipeline, const Handle &view, Operands coords, Location loc) {
  const std::string_view what = "fill";
  Recorder *r = Recorder::open(what, loc);
  const auto p = findPipeline(r, pipeline, what, loc);
  std::vector<ValueId> at;
  const auto v = p ? findView(r, view, coords, what, loc, at) : std::nullopt;
  if (!v)
    return {};
  const ValueType ring = r->typeOf(*p), from = r->typeOf(*v);
  if (from.shape != ring.shape) {
    r->fail(loc, what, "a view of tiles " + from.shape.toString() + " fills slots of tiles " + ring.shape.toString(),
            "give both the same shape");
    return {};
  }
  if (from.unit != ring.unit) {
    r->fail(loc, what,
            "the view is contiguous along " +
                (from.unit < 0 ? std::string("no dimension") : std::to_string(from.unit)) + ", the slots are along " +
                std::to_string(ring.unit),
            "set PipelineOptions::contiguous, or the view's unit, so that both agree");
    return {};
  }
  const auto [acquired, slot] = slotOf(*r, Op::Acquire, *p, loc);
  const std::string layout = registersOf(*r, ring);
  r->indent();
  r->putAll(Op::AsyncCopyView, ' ', ValueText{*v});
  putList(*r, at);
  r->putAll(", ", ValueText{slot}, " by ", std::string_view(layout), " : ", TypeText{r->value(*v).type}, ", ",
            TypeText{r->value(at[0]).type}, ", ", TypeText{r->value(slot).type});
  r->endLine(loc);
  const TypeId type = r->value(*p).type;
  return r->handle(r->result(type, loc, Op::Commit, ' ', ValueText{acquired}, " : ", TypeText{type}));
}

std::pair<Handle, Handle> takeSlot(const Handle &pipeline, Location loc) {
  const std::string_view what = "take";
  Recorder *r = Recorder::open(what, loc);
  const auto p = findPipeline(r, pipeline, what, loc);
  if (!p)
    return {};
  const ValueType ring = r->typeOf(*p);
  const auto [next, slot] = slotOf(*r, Op::Wait, *p, loc);
  // The tile has no layout from here on: the conversion leaves the choice to the compiler.
  const TypeId plain = r->tile(ring.element, ring.shape);
  std::string there = r->typeText(plain);
  there.insert(there.size() - 1, ", " + registersOf(*r, ring));
  const std::string_view to(there);
  const ValueId read =
      r->result(plain, loc, Op::LocalLoad, ' ', ValueText{slot}, " : ", TypeText{r->value(slot).type}, " to ", to);
  const ValueId tile =
      r->result(plain, loc, Op::ConvertLayout, ' ', ValueText{read}, " : ", to, " to ", TypeText{plain});
  return {r->handle(next), r->handle(tile)};
}

Handle releaseSlot(const Handle &pipeline, Location loc) {
  return stepped(Op::Release, "release", pipeline, loc);
}

void drainPipeline(const Handle &pipeline, Location loc) {
  Recorder *r = Recorder::open("drain", loc);
  if (const auto p = findPipeline(r, pipeline, "drain", loc))
    r->line(loc, Op::Drain, ' ', ValueText{*p}, " : ", TypeText{r->value(*p).type});
}

std::string pipelineTypeText(const ValueType &t, std::string_view element) {
  std::string buffer = "!tile_gpu.buffer<\"" + t.name + "\": ";
  for (unsigned d = 0; d < t.shape.rank(); ++d)
    buffer += std::to_string(t.shape[d]) + 'x';
  buffer += std::string(element) + ", " + sharedOf(t) + ">";
  return t.kind == Kind::Buffer ? buffer : "!tile_gpu.pipeline<" + std::to_string(t.stages) + ", " + buffer + ">";
}

} // namespace kiln::language::detail
