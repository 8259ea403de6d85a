#include "compiler/tile/MemoryInterfaces.h"

#include "compiler/tile/Tile.h"

#include "compiler/tile/MemoryInterfaces.cpp.inc"

using namespace mlir;

namespace kiln::tile {
namespace {

llvm::SmallVector<MemoryEffects::EffectInstance> effectsOf(Operation *op) {
  llvm::SmallVector<MemoryEffects::EffectInstance> list;
  if (auto effects = dyn_cast<MemoryEffectOpInterface>(op))
    effects.getEffects(list);
  return list;
}

bool reads(const MemoryEffects::EffectInstance &effect) {
  return isa<MemoryEffects::Read>(effect.getEffect());
}
bool writes(const MemoryEffects::EffectInstance &effect) {
  return isa<MemoryEffects::Write>(effect.getEffect());
}

bool sameMemory(const MemoryAccess &access, const MemoryEffects::EffectInstance &effect) {
  return access.memory == effect.getValue() &&
         access.resource->getResourceID() == effect.getResource()->getResourceID();
}

} // namespace

LogicalResult detail::verifyAccesses(Operation *op) {
  const llvm::SmallVector<MemoryEffects::EffectInstance> effects = effectsOf(op);
  const MemoryAccesses accesses = cast<AccessOpInterface>(op).accesses();
  for (const MemoryAccess &access : accesses) {
    const auto named = [&](auto does) {
      return llvm::any_of(effects, [&](const auto &e) { return does(e) && sameMemory(access, e); });
    };
    if ((access.reads && !named(reads)) || (access.writes && !named(writes)))
      return op->emitOpError() << "accesses " << access.resource->getName()
                               << " that its memory effects do not name: name the operand in them";
  }
  for (const MemoryEffects::EffectInstance &effect : effects) {
    const auto stated = [&](const MemoryAccess &access) {
      return sameMemory(access, effect) && ((reads(effect) && access.reads) || (writes(effect) && access.writes));
    };
    if (effect.getValue() && (reads(effect) || writes(effect)) && llvm::none_of(accesses, stated))
      return op->emitOpError() << "has a memory effect on an operand in " << effect.getResource()->getName()
                               << " and states no access of it: add it to accesses()";
  }
  return success();
}

MemoryAccess detail::throughPointer(Value pointer, Value mask, bool reads, bool writes) {
  MemoryAccess out;
  out.resource = GlobalMemory::get();
  out.memory = pointer;
  out.reads = reads;
  out.writes = writes;
  out.tile = dyn_cast<RankedTensorType>(pointer.getType());
  out.mask = mask;
  return out;
}

MemoryAccess detail::throughView(Value view, ValueRange coords, Type tile, bool reads, bool writes) {
  MemoryAccess out;
  out.resource = GlobalMemory::get();
  out.memory = view;
  out.reads = reads;
  out.writes = writes;
  out.tile = cast<RankedTensorType>(tile);
  out.coords = coords;
  return out;
}

MemoryAccesses accessesOf(Operation *op) {
  if (auto access = dyn_cast<AccessOpInterface>(op))
    return access.accesses();
  MemoryAccesses out;
  if (op->getNumRegions() || isa<OrderOpInterface>(op))
    return out;
  for (const MemoryEffects::EffectInstance &effect : effectsOf(op)) {
    if (!reads(effect) && !writes(effect))
      continue;
    auto *same = llvm::find_if(out, [&](const MemoryAccess &a) { return sameMemory(a, effect); });
    if (same == out.end()) {
      same = &out.emplace_back();
      same->resource = effect.getResource();
      same->memory = effect.getValue();
    }
    same->reads |= reads(effect);
    same->writes |= writes(effect);
  }
  return out;
}

std::optional<MemoryOrdering> orderingOf(Operation *op) {
  if (auto order = dyn_cast<OrderOpInterface>(op))
    return order.ordering();
  return std::nullopt;
}

std::optional<MemoryAccess> globalAccessOf(Operation *op) {
  if (auto access = dyn_cast<AccessOpInterface>(op))
    for (const MemoryAccess &one : access.accesses())
      if (one.in<GlobalMemory>())
        return one;
  return std::nullopt;
}

} // namespace kiln::tile
