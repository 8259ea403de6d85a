// Instructions of PTX.
#include "RecorderImpl.h"

#include "support/InlinePtx.h"

namespace kiln::language::detail {

void inlinePtx(std::string_view text, bool effects, std::span<const DType> outputs, Operands operands,
               std::span<Handle> results, Location loc) {
  const std::string_view what = effects ? "inlinePtxWithEffects" : "inlinePtx";
  Recorder *r = Recorder::open(what, loc);
  if (!r)
    return;
  if (const Status status =
          checkInlinePtx(text, static_cast<unsigned>(outputs.size()), static_cast<unsigned>(operands.size()));
      !status.ok())
    return r->fail(loc, what, status.message(), status.remedy());
  std::vector<const Operand *> pointers;
  for (const Operand &o : operands)
    pointers.push_back(&o);
  std::optional<Shape> shape;
  if (!r->commonShape(pointers, what, loc, shape))
    return;
  std::vector<ValueId> ids;
  std::vector<TypeId> from, to;
  for (const Operand &o : operands) {
    const auto id = r->bring(o, shape, what, loc);
    if (!id)
      return;
    ids.push_back(*id);
    from.push_back(r->value(*id).type);
  }
  for (const DType e : outputs)
    to.push_back(shape ? r->tile(e, *shape) : r->scalar(e));
  const std::uint32_t number = r->takeNumber();
  r->indent();
  r->putResults(number, to.size());
  r->putAll(Op::InlinePtx, effects ? " effects " : " ", Recorder::Quoted{text}, '(');
  for (std::size_t i = 0; i < ids.size(); ++i)
    r->putAll(i ? ", " : "", Recorder::ValueText{ids[i]});
  r->put(") : (");
  r->putTypes(from);
  r->put(to.size() == 1 ? ") -> " : ") -> (");
  r->putTypes(to);
  if (to.size() != 1)
    r->put(')');
  r->endLine(loc);
  const ValueId first = r->defineParts(number, to, loc);
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = r->handle(first + static_cast<ValueId>(i));
}

} // namespace kiln::language::detail
