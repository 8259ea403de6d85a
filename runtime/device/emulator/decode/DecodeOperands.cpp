// Operands to slots.
#include "runtime/device/emulator/decode/DecodeState.h"

#include <bit>
#include <cstring>

namespace kiln::emulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;
using ptx::TypeKind;

namespace {

struct SpecialName {
  std::string_view name;
  Special special;
};

constexpr SpecialName specialNames[] = {
    {"%tid.x", Special::TidX},
    {"%tid.y", Special::TidY},
    {"%tid.z", Special::TidZ},
    {"%tid.w", Special::Zero},
    {"%ntid.x", Special::NtidX},
    {"%ntid.y", Special::NtidY},
    {"%ntid.z", Special::NtidZ},
    {"%ntid.w", Special::Zero},
    {"%ctaid.x", Special::CtaidX},
    {"%ctaid.y", Special::CtaidY},
    {"%ctaid.z", Special::CtaidZ},
    {"%ctaid.w", Special::Zero},
    {"%nctaid.x", Special::NctaidX},
    {"%nctaid.y", Special::NctaidY},
    {"%nctaid.z", Special::NctaidZ},
    {"%nctaid.w", Special::Zero},
    {"%laneid", Special::LaneId},
    {"%warpid", Special::WarpId},
    {"%nwarpid", Special::NwarpId},
    {"%smid", Special::SmId},
    {"%nsmid", Special::NsmId},
    {"%gridid", Special::GridId},
    // What the driver puts there: the address of the workspace for grid.sync()
    // (cooperative_groups/details/driver_abi.h).
    {"%envreg1", Special::GridWorkspaceHigh},
    {"%envreg2", Special::GridWorkspaceLow},
    {"%lanemask_eq", Special::LanemaskEq},
    {"%lanemask_le", Special::LanemaskLe},
    {"%lanemask_lt", Special::LanemaskLt},
    {"%lanemask_ge", Special::LanemaskGe},
    {"%lanemask_gt", Special::LanemaskGt},
    {"%dynamic_smem_size", Special::DynamicSmemSize},
    {"%total_smem_size", Special::TotalSmemSize},
    {"%aggr_smem_size", Special::AggrSmemSize},
    {"%reserved_smem_offset_begin", Special::ReservedSmemBegin},
    {"%reserved_smem_offset_end", Special::ReservedSmemEnd},
    {"%reserved_smem_offset_cap", Special::ReservedSmemCap},
    {"%reserved_smem_offset_0", Special::ReservedSmemOffset},
    {"%reserved_smem_offset_1", Special::ReservedSmemOffset},
    {"%clusterid.x", Special::ClusterIdX},
    {"%clusterid.y", Special::ClusterIdY},
    {"%clusterid.z", Special::ClusterIdZ},
    {"%nclusterid.x", Special::NclusterIdX},
    {"%nclusterid.y", Special::NclusterIdY},
    {"%nclusterid.z", Special::NclusterIdZ},
    {"%cluster_ctaid.x", Special::ClusterCtaidX},
    {"%cluster_ctaid.y", Special::ClusterCtaidY},
    {"%cluster_ctaid.z", Special::ClusterCtaidZ},
    {"%cluster_nctaid.x", Special::ClusterNctaidX},
    {"%cluster_nctaid.y", Special::ClusterNctaidY},
    {"%cluster_nctaid.z", Special::ClusterNctaidZ},
    {"%cluster_ctarank", Special::ClusterCtarank},
    {"%cluster_nctarank", Special::ClusterNctarank},
    {"%current_graph_exec", Special::CurrentGraphExec},
};

/// Registers that change while a warp runs: the name of the op that reads them.
constexpr std::pair<std::string_view, std::string_view> clockNames[] = {
    {"%clock", "%clock"},
    {"%clock64", "%clock"},
    {"%clock_hi", "%clock_hi"},
    {"%globaltimer", "%globaltimer"},
    {"%globaltimer_lo", "%globaltimer"},
    {"%globaltimer_hi", "%globaltimer_hi"},
};

const Operand &unwrap(const Operand &o) {
  return o.kind == Operand::Kind::Vector && o.elements.size() == 1 ? o.elements[0] : o;
}

} // namespace

std::string DecodeContext::placeOf(const ptx::Instruction &instruction) const {
  const std::string ptx = module.fileName + ":" + std::to_string(instruction.line);
  const auto &locations = state->function->locations;
  if (instruction.location < 0 || static_cast<std::size_t>(instruction.location) >= locations.size())
    return ptx;
  const ptx::Location &l = locations[static_cast<std::size_t>(instruction.location)];
  return l.line ? std::string(module.filePath(l.file)) + ":" + std::to_string(l.line) + " (" + ptx + ")" : ptx;
}

bool DecodeContext::error(const ptx::Instruction &instruction, std::string message) {
  errors.push_back(placeOf(instruction) + ": " + std::string(instruction.opcode) + ": " + std::move(message));
  anyUnsupported = false;
  return false;
}

bool DecodeContext::unsupported(const ptx::Instruction &instruction, std::string message) {
  errors.push_back(placeOf(instruction) + ": unsupported: " + std::string(instruction.opcode) + ": " +
                   std::move(message));
  return false;
}

void DecodeContext::read(Slot slot, unsigned bytes) {
  pending.push_back({0, slot, static_cast<std::uint8_t>(slotUnits(bytes)), false, true});
}
void DecodeContext::wrote(Slot slot, unsigned bytes) {
  pending.push_back({0, slot, static_cast<std::uint8_t>(slotUnits(bytes)), true, true});
}

Slot DecodeContext::constant(std::uint64_t low, unsigned bytes, std::uint64_t high, bool isShared) {
  bytes = bytes > 8 ? 16 : bytes > 4 ? 8 : 4;
  std::string key(17, '\0');
  key[0] = static_cast<char>(isShared ? -static_cast<int>(bytes) : static_cast<int>(bytes));
  std::memcpy(key.data() + 1, &low, 8);
  std::memcpy(key.data() + 9, &high, 8);
  const auto [entry, isNew] = constantSlots.try_emplace(std::move(key), noSlot);
  if (isNew) {
    entry->second = allocate(bytes, false);
    program->constants.push_back({entry->second, bytes, low, high, isShared});
  }
  return entry->second;
}

Slot DecodeContext::temporary(unsigned bytes) {
  const unsigned c = slotClass(bytes);
  if (state->temporariesUsed[c] == state->temporaries[c].size())
    state->temporaries[c].push_back(allocate(bytes, false));
  return state->temporaries[c][state->temporariesUsed[c]++];
}

Op &DecodeContext::emitBefore(Handler run) {
  Op op;
  op.run = run;
  op.line = static_cast<std::uint32_t>(program->lines.size() - 1);
  program->ops.push_back(op);
  flows.emplace_back();
  return program->ops.back();
}

Handler DecodeContext::internalHandler(std::string_view name) {
  const Row *row = options.rows->internal(name);
  std::string why;
  return row ? row->build(Form{}, why) : nullptr;
}

std::uint32_t DecodeContext::addPool(std::span<const std::uint32_t> slots) {
  const auto index = static_cast<std::uint32_t>(program->pool.size());
  program->pool.insert(program->pool.end(), slots.begin(), slots.end());
  poolHoldsSlot.resize(program->pool.size(), 1);
  return index;
}

std::uint32_t DecodeContext::addNumbers(std::span<const std::uint32_t> numbers) {
  const std::uint32_t index = addPool(numbers);
  std::fill(poolHoldsSlot.begin() + index, poolHoldsSlot.end(), 0);
  return index;
}

unsigned DecodeContext::registerBytes(const Operand &wrapped) {
  const Operand &operand = unwrap(wrapped);
  if (operand.kind != Operand::Kind::Register)
    return 0;
  const Symbol *symbol = find(operand.text);
  return symbol && symbol->kind == Symbol::Kind::Register && symbol->type != Type::Pred ? symbol->bytes : 0;
}

bool DecodeContext::specialRegister(const ptx::Instruction &instruction, std::string_view name, Type type, Slot &slot,
                                    bool &found) {
  found = true;
  const bool wide = ptx::typeBytes(type) == 8;
  if (name == "WARP_SZ") {
    slot = constant(warpSize, wide ? 8 : 4);
    return true;
  }
  Special special{};
  bool known = false;
  for (const SpecialName &s : specialNames)
    if (s.name == name) {
      special = s.special;
      known = true;
    }
  if (known) {
    const unsigned key = static_cast<unsigned>(special) * 2 + wide;
    const auto [entry, isNew] = specialSlots.try_emplace(key, noSlot);
    if (isNew) {
      entry->second = allocate(wide ? 8 : 4, false);
      program->specials.push_back({entry->second, special, wide});
    }
    slot = entry->second;
    return true;
  }
  for (const auto &[spelling, op] : clockNames)
    if (spelling == name) {
      slot = temporary(wide ? 8 : 4);
      Op &before = emitBefore(internalHandler(op));
      before.d = slot;
      before.flags = wide;
      accesses.push_back({static_cast<std::uint32_t>(program->ops.size() - 1), slot,
                          static_cast<std::uint8_t>(wide ? 2 : 1), true, true});
      read(slot, wide ? 8 : 4);
      return true;
    }
  found = false;
  if (name.starts_with("%envreg")) { // a driver puts nothing into the others
    found = true;
    slot = constant(0, wide ? 8 : 4);
    return true;
  }
  if (name.starts_with("%pm")) {
    found = true;
    return unsupported(instruction, "special register " + std::string(name) + " does not exist on the emulator");
  }
  return true;
}

bool DecodeContext::immediate(const ptx::Instruction &instruction, const Operand &operand, Type type, Slot &slot) {
  const unsigned bytes = ptx::typeBytes(type);
  const TypeKind kind = ptx::typeKind(type);
  std::uint64_t bits = operand.bits;
  std::uint64_t high = 0;
  if (operand.kind == Operand::Kind::Float) {
    const bool single = operand.floatBits == 32;
    const float f = single ? std::bit_cast<float>(static_cast<std::uint32_t>(bits))
                           : static_cast<float>(std::bit_cast<double>(bits));
    const double d = single ? f : std::bit_cast<double>(bits);
    if (bytes == 4)
      bits = std::bit_cast<std::uint32_t>(f);
    else if (bytes == 8)
      bits = std::bit_cast<std::uint64_t>(d);
    else
      return error(instruction, "a floating-point literal stands where ." + std::string(ptx::typeName(type)) +
                                    " is wanted: write the bits as an integer");
  } else if (kind == TypeKind::Float && (bytes == 4 || bytes == 8) && bits != 0 && type != Type::TF32) {
    return error(instruction, "an integer literal stands where ." + std::string(ptx::typeName(type)) +
                                  " is wanted: write 0f... or 0d... with the bits, or a decimal point");
  }
  if (type == Type::Pred) {
    slot = constant(bits ? ~0u : 0u, 4);
    return true;
  }
  if (bytes == 16 && static_cast<std::int64_t>(bits) < 0)
    high = ~std::uint64_t(0);
  if (bytes < 8)
    bits &= (std::uint64_t(1) << (8 * bytes)) - 1;
  slot = constant(bits, bytes, high);
  return true;
}

bool DecodeContext::symbolAddress(const ptx::Instruction &instruction, const Symbol &symbol, const Operand &operand,
                                  Type type, Slot &slot) {
  const unsigned bytes = ptx::typeBytes(type) == 8 ? 8 : 4;
  const std::uint64_t addend = operand.bits;
  std::uint64_t value = symbol.address + addend;
  switch (symbol.kind) {
  case Symbol::Kind::Global:
  case Symbol::Kind::Const:
    if (bytes != 8)
      return error(instruction, "the address of '" + std::string(operand.text) + "' has 64 bits");
    break;
  case Symbol::Kind::DynamicShared:
    slot = allocate(bytes, false);
    dynamicConstants.emplace_back(program->constants.size(), addend);
    program->constants.push_back({slot, bytes, 0, 0, true});
    return true;
  case Symbol::Kind::Frame: {
    slot = temporary(8);
    Op &before = emitBefore(internalHandler("%frame"));
    before.d = slot;
    before.imm = static_cast<std::int64_t>(value);
    const auto index = static_cast<std::uint32_t>(program->ops.size() - 1);
    accesses.push_back({index, slot, 2, true, true});
    if (bytes == 4) {
      const Slot narrow = temporary(4);
      Op &cut = emitBefore(internalHandler("%narrow"));
      cut.d = narrow;
      cut.s[0] = slot;
      accesses.push_back({index + 1, slot, 2, false, true});
      accesses.push_back({index + 1, narrow, 1, true, true});
      slot = narrow;
    }
    read(slot, bytes);
    return true;
  }
  case Symbol::Kind::Function:
    functionFor(symbol.address);
    value = codeAddress(symbol.address) + addend;
    break;
  case Symbol::Kind::Shared:
  case Symbol::Kind::EntryParameter:
    break;
  default:
    return error(instruction, "'" + std::string(operand.text) + "' has no address");
  }
  slot = constant(bytes == 4 ? value & 0xFFFFFFFFu : value, bytes, 0, symbol.kind == Symbol::Kind::Shared);
  return true;
}

bool DecodeContext::source(const ptx::Instruction &instruction, const Operand &wrapped, Type type, Slot &slot) {
  const Operand &operand = unwrap(wrapped);
  if (type == Type::Pred)
    return predicate(instruction, operand, slot);
  const unsigned bytes = ptx::typeBytes(type);
  switch (operand.kind) {
  case Operand::Kind::Integer:
  case Operand::Kind::Float:
    return immediate(instruction, operand, type, slot);
  case Operand::Kind::Register:
    break;
  default:
    return error(instruction,
                 "a register or a constant is expected where ." + std::string(ptx::typeName(type)) + " is read");
  }
  const Symbol *symbol = find(operand.text);
  if (!symbol) {
    bool found = false;
    if (!specialRegister(instruction, operand.text, type, slot, found))
      return false;
    if (found)
      return true;
    return error(instruction, "'" + std::string(operand.text) + "' is not declared");
  }
  if (operand.negated)
    return error(instruction, "'" + std::string(operand.text) + "' cannot be negated here");
  if (symbol->kind != Symbol::Kind::Register)
    return symbolAddress(instruction, *symbol, operand, type, slot);
  if (symbol->type == Type::Pred)
    return error(instruction, "'" + std::string(operand.text) + "' is a predicate, ." +
                                  std::string(ptx::typeName(type)) + " is wanted");
  if (symbol->bytes < bytes)
    return error(instruction, "'" + std::string(operand.text) + "' has " + std::to_string(symbol->bytes * 8) +
                                  " bits, ." + std::string(ptx::typeName(type)) + " needs " +
                                  std::to_string(bytes * 8));
  slot = symbol->slot;
  if (slotClass(symbol->bytes) == 0 || slotClass(bytes) != 0) {
    read(slot, symbol->bytes);
  } else {
    const Slot narrow = temporary(4);
    Op &cut = emitBefore(internalHandler("%narrow"));
    cut.d = narrow;
    cut.s[0] = slot;
    const auto index = static_cast<std::uint32_t>(program->ops.size() - 1);
    accesses.push_back({index, slot, static_cast<std::uint8_t>(slotUnits(symbol->bytes)), false, true});
    accesses.push_back({index, narrow, 1, true, true});
    slot = narrow;
    read(slot, 4);
  }
  return true;
}

bool DecodeContext::destination(const ptx::Instruction &instruction, const Operand &wrapped, Type type, Slot &slot,
                                unsigned *declared, bool mayBeWider) {
  const Operand &operand = unwrap(wrapped);
  const unsigned bytes = type == Type::Pred ? 4 : ptx::typeBytes(type);
  if (declared)
    *declared = bytes;
  if (operand.kind == Operand::Kind::Sink) {
    slot = trashSlot;
    return true;
  }
  const Symbol *symbol = operand.kind == Operand::Kind::Register ? find(operand.text) : nullptr;
  if (!symbol || symbol->kind != Symbol::Kind::Register)
    return error(instruction, operand.kind == Operand::Kind::Register
                                  ? "'" + std::string(operand.text) + "' is not a register that can be written"
                                  : "a register is expected as the destination");
  if ((symbol->type == Type::Pred) != (type == Type::Pred))
    return error(instruction, "'" + std::string(operand.text) + "' is ." + std::string(ptx::typeName(symbol->type)) +
                                  ", the result is ." + std::string(ptx::typeName(type)));
  mayBeWider &= symbol->bytes <= 8;
  if (symbol->bytes < bytes || (!mayBeWider && slotClass(symbol->bytes) != slotClass(bytes)))
    return error(instruction, "'" + std::string(operand.text) + "' has " + std::to_string(symbol->bytes * 8) +
                                  " bits, the result has " + std::to_string(bytes * 8));
  slot = symbol->slot;
  if (declared)
    *declared = symbol->bytes;
  wrote(slot, symbol->bytes);
  return true;
}

bool DecodeContext::registers(const ptx::Instruction &instruction, const Operand &operand, std::string_view name,
                              unsigned count, Type type, bool written, Slot *slots) {
  const bool isVector = operand.kind == Operand::Kind::Vector;
  if (isVector ? operand.elements.size() != count : count != 1)
    return error(instruction, "operand " + std::string(name) + " takes " + std::to_string(count) +
                                  (count == 1 ? " register" : " registers") + " in braces, this one has " +
                                  std::to_string(isVector ? operand.elements.size() : 1));
  for (unsigned i = 0; i < count; ++i) {
    const Operand &element = isVector ? operand.elements[i] : operand;
    if (!(written ? destination(instruction, element, type, slots[i]) : source(instruction, element, type, slots[i])))
      return false;
  }
  return true;
}

bool DecodeContext::predicate(const ptx::Instruction &instruction, const Operand &operand, Slot &slot) {
  if (operand.kind == Operand::Kind::Integer)
    return immediate(instruction, operand, Type::Pred, slot);
  const Symbol *symbol = operand.kind == Operand::Kind::Register ? find(operand.text) : nullptr;
  if (operand.kind == Operand::Kind::Register && operand.text == "%is_explicit_cluster") {
    const auto [entry, isNew] = specialSlots.try_emplace(static_cast<unsigned>(Special::IsExplicitCluster) * 2, noSlot);
    if (isNew) {
      entry->second = allocate(4, false);
      program->specials.push_back({entry->second, Special::IsExplicitCluster, false});
    }
    slot = entry->second;
    return true;
  }
  if (!symbol || symbol->kind != Symbol::Kind::Register || symbol->type != Type::Pred)
    return error(instruction, "a predicate register is expected instead of '" + std::string(operand.text) + "'");
  slot = symbol->slot;
  if (!operand.negated) {
    read(slot, 4);
  } else {
    const Slot opposite = temporary(4);
    Op &before = emitBefore(internalHandler("%not"));
    before.d = opposite;
    before.s[0] = slot;
    const auto index = static_cast<std::uint32_t>(program->ops.size() - 1);
    accesses.push_back({index, slot, 1, false, true});
    accesses.push_back({index, opposite, 1, true, true});
    slot = opposite;
    read(slot, 4);
  }
  return true;
}

bool DecodeContext::address(const ptx::Instruction &instruction, const Operand &operand, Space space, Address &out) {
  if (operand.kind != Operand::Kind::Address)
    return error(instruction, "an address in brackets is expected");
  out.space = space;
  out.displacement = static_cast<std::int64_t>(operand.bits);
  if (operand.text.empty()) {
    out.base = constant(0, 8);
    return true;
  }
  const Symbol *symbol = find(operand.text);
  if (!symbol)
    return error(instruction, "'" + std::string(operand.text) + "' is not declared");
  auto mismatch = [&](std::string_view actual) {
    return error(instruction, "'" + std::string(operand.text) + "' is in ." + std::string(actual) +
                                  ", the instruction accesses ." + std::string(ptx::spaceName(space)));
  };
  switch (symbol->kind) {
  case Symbol::Kind::Register:
    if (symbol->type == Type::Pred || (symbol->bytes != 4 && symbol->bytes != 8))
      return error(instruction, "'" + std::string(operand.text) + "' cannot hold an address");
    out.base = symbol->slot;
    out.base32 = symbol->bytes == 4;
    read(out.base, symbol->bytes);
    return true;
  case Symbol::Kind::Global:
    if (space != Space::Global && space != Space::Generic)
      return mismatch("global");
    out.space = Space::Global;
    break;
  case Symbol::Kind::Const:
    if (space != Space::Const && space != Space::Generic)
      return mismatch("const");
    out.space = Space::Const;
    break;
  case Symbol::Kind::Shared:
  case Symbol::Kind::DynamicShared:
    if (space != Space::Shared && space != Space::Generic)
      return mismatch("shared");
    out.space = Space::Shared;
    break;
  case Symbol::Kind::Frame:
    if (space != Space::Param && space != Space::Local && space != Space::Generic)
      return mismatch(symbol->list ? "param" : "local");
    out.space = Space::Local;
    out.base = frameSlot;
    out.displacement += static_cast<std::int64_t>(symbol->address);
    if (out.displacement < static_cast<std::int64_t>(symbol->address) ||
        out.displacement >= static_cast<std::int64_t>(symbol->address + symbol->size))
      return error(instruction, "offset " + std::to_string(static_cast<std::int64_t>(operand.bits)) +
                                    " lies outside '" + std::string(operand.text) + "', which has " +
                                    std::to_string(symbol->size) + " bytes");
    return true;
  case Symbol::Kind::EntryParameter:
    if (space != Space::Param && space != Space::Generic)
      return mismatch("param");
    out.space = Space::Param;
    out.fixed = true;
    out.offset = symbol->address + operand.bits;
    break;
  default:
    return error(instruction, "'" + std::string(operand.text) + "' has no address");
  }
  Operand plain;
  plain.text = operand.text;
  return symbolAddress(instruction, *symbol, plain, Type::U64, out.base);
}

bool DecodeContext::label(const ptx::Instruction &instruction, const Operand &operand, std::uint32_t &index) {
  const Symbol *symbol = operand.kind == Operand::Kind::Register ? find(operand.text) : nullptr;
  if (!symbol || symbol->kind != Symbol::Kind::Label)
    return error(instruction, "'" + std::string(operand.text) + "' is not a label of this function");
  index = static_cast<std::uint32_t>(symbol->address);
  return true;
}

const ptx::TargetList *DecodeContext::targetList(const Operand &operand) {
  const Symbol *symbol = operand.kind == Operand::Kind::Register ? find(operand.text) : nullptr;
  return symbol && symbol->kind == Symbol::Kind::List ? symbol->list : nullptr;
}

} // namespace kiln::emulator
