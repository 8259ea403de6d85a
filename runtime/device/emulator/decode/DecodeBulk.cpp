#include "runtime/device/emulator/decode/DecodeBulk.h"

#include "runtime/device/emulator/async/BulkCopies.h"
#include "runtime/device/emulator/async/BulkTransfer.h"
#include "runtime/device/emulator/async/TensorMap.h"
#include "runtime/device/emulator/decode/DecodeMemory.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"

#include <algorithm>

namespace kiln::emulator {

using ptx::Instruction;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

namespace {

/// The operands of one bulk instruction on their way into an op.
class BulkOperands {
public:
  BulkOperands(DecodeContext &context, const Form &form, const Instruction &instruction, Op &op)
      : context(context), form(form), instruction(instruction), op(op) {
    std::fill(std::begin(slots), std::end(slots), noSlot);
  }

  /// The optional operands, in this order after the others.
  static constexpr unsigned blocks = 1, policy = 2, bytes = 4;

  /// There are `fixed` operands and those of `options` that the modifiers ask for; `what` names the fixed ones.
  bool count(std::size_t fixed, const char *what, unsigned options) {
    std::string text = what;
    std::size_t expected = fixed;
    auto option = [&](unsigned bit, const char *modifier, const char *name) {
      if (!(options & bit) || !form.has(modifier))
        return;
      ++expected;
      text += std::string(", ") + name;
    };
    option(blocks, "multicast::cluster", "a mask of blocks");
    option(policy, "L2::cache_hint", "a cache policy");
    option(bytes, "cp_mask", "a mask of bytes");
    if (instruction.operands.size() != expected)
      return context.error(instruction, "takes " + text);
    return true;
  }

  /// The optional operands from number `at` on.
  bool rest(std::size_t at) {
    Slot ignored = noSlot;
    if (form.has("multicast::cluster")) {
      op.flags |= bulkFlag::multicast;
      if (!value(operand(at++), Type::U16, slots[bulkSlot::Mask]))
        return false;
    }
    if (form.has("L2::cache_hint") && !value(operand(at++), Type::B64, ignored))
      return false;
    if (form.has("cp_mask")) {
      op.flags |= bulkFlag::byteMask;
      if (!value(operand(at++), Type::U16, slots[bulkSlot::Mask]))
        return false;
    }
    return true;
  }

  bool shared(std::size_t at, unsigned which) {
    const std::uint16_t narrow = which == bulkSlot::To     ? bulkFlag::to32
                                 : which == bulkSlot::From ? bulkFlag::from32
                                                           : bulkFlag::barrier32;
    DecodeContext::Address a;
    if (!plainAddress(at) || !context.address(instruction, operand(at), Space::Shared, a))
      return false;
    op.flags |= a.base32 ? narrow : 0;
    keep(which, a);
    return true;
  }
  bool global(std::size_t at, unsigned which) {
    DecodeContext::Address a;
    if (!plainAddress(at) || !context.address(instruction, operand(at), Space::Global, a))
      return false;
    if (a.base32)
      return context.error(instruction, "an address of global memory has 64 bits");
    keep(which, a);
    return true;
  }
  bool size(std::size_t at) { return value(operand(at), Type::U32, slots[bulkSlot::Size]); }
  /// [map, {coordinates}]
  bool tensor(std::size_t at, unsigned rank) {
    const Operand &o = operand(at);
    const std::string takes = "takes [tensor map, {" + std::to_string(rank) + " coordinates}]";
    if (o.kind != Operand::Kind::Address || o.elements.size() != 1 || o.elements[0].kind != Operand::Kind::Vector ||
        o.elements[0].elements.size() != rank)
      return context.error(instruction, takes);
    DecodeContext::Address a;
    if (!context.address(instruction, o, Space::Generic, a))
      return false;
    if (a.base32)
      return context.error(instruction, "the generic address of a tensor map has 64 bits");
    if (a.space != Space::Generic && a.space != Space::Global && a.space != Space::Const)
      return context.error(instruction, "a tensor map in ." + std::string(ptx::spaceName(a.space)) +
                                            " is named by its generic address (cvta)");
    keep(bulkSlot::From, a);
    for (unsigned i = 0; i < rank; ++i)
      if (!value(o.elements[0].elements[i], Type::S32, slots[bulkSlot::Coordinates + i]))
        return false;
    return true;
  }

  /// The state space `first` is written before `second`.
  bool order(std::string_view first, std::string_view second) {
    std::size_t a = 0, b = 0;
    for (unsigned i = 0; i < form.numModifiers; ++i) {
      a = form.modifiers[i] == first ? i : a;
      b = form.modifiers[i] == second ? i : b;
    }
    return a < b || context.error(instruction, "the destination's space comes first: ." + std::string(first) + "." +
                                                   std::string(second));
  }

  bool finish(Handler run) {
    op.flags |= access::shared;
    op.cache = context.newCache();
    op.aux = context.addPool(slots);
    op.run = run;
    context.usesAsync(true);
    context.flow().visible = true;
    context.flow().observes = true;
    return true;
  }

private:
  const Operand &operand(std::size_t i) const { return instruction.operands[i]; }
  /// A constant, or a register of just the type's width.
  bool value(const Operand &o, Type type, Slot &slot) {
    const unsigned bytes = context.registerBytes(o), wanted = ptx::typeBytes(type);
    if (bytes && bytes != wanted)
      return context.error(instruction, "'" + std::string(o.text) + "' has " + std::to_string(8 * bytes) +
                                            " bits where " + std::to_string(8 * wanted) + " are needed");
    return context.source(instruction, o, type, slot);
  }
  bool plainAddress(std::size_t at) {
    return operand(at).kind != Operand::Kind::Address || operand(at).elements.empty() ||
           context.error(instruction, "only the address of a tensor map has coordinates");
  }
  void keep(unsigned which, const DecodeContext::Address &a) {
    slots[which] = a.base;
    slots[which + 1] = context.constant(static_cast<std::uint64_t>(a.displacement), 8);
  }

  DecodeContext &context;
  const Form &form;
  const Instruction &instruction;
  Op &op;
  std::uint32_t slots[bulkSlot::count];
};

/// The reduction among the modifiers.
ReduceOp reductionOf(const Form &form) {
  for (unsigned i = 0; i < form.numModifiers; ++i)
    if (const ReduceOp op = reduceOpOf(form.modifiers[i]); op != ReduceOp::None)
      return op;
  return ReduceOp::None;
}

ReduceType reduceTypeOf(Type type) {
  switch (type) {
  case Type::S32:
    return ReduceType::S32;
  case Type::U64:
  case Type::B64:
    return ReduceType::U64;
  case Type::S64:
    return ReduceType::S64;
  case Type::F16:
    return ReduceType::F16;
  case Type::BF16:
    return ReduceType::Bf16;
  case Type::F32: // an H200 keeps subnormals here, unlike in red.global.add.f32
    return ReduceType::F32;
  case Type::F64:
    return ReduceType::F64;
  default:
    return ReduceType::U32;
  }
}

/// Reductions and types that the row matched; floats of 16 bits are added with .noftz.
bool decodeReduction(DecodeContext &context, const Form &form, Op &op) {
  const ReduceOp reduction = reductionOf(form);
  op.imm = bulkForm(0, reduction, form.numTypes ? reduceTypeOf(form.type()) : ReduceType::U32);
  // The sum depends on the order of the blocks.
  if (reduction != ReduceOp::None && ptx::typeKind(form.type()) == ptx::TypeKind::Float)
    context.needsOrder(/*seesOthers=*/false);
  return true;
}

/// Dimensions of .1d to .5d; false if the form is one that the emulator does not have.
bool decodeShape(DecodeContext &context, const Form &form, const Instruction &instruction, unsigned &rank) {
  rank = 0;
  for (unsigned i = 0; i < form.numModifiers; ++i) {
    const std::string_view m = form.modifiers[i];
    if (m.size() == 2 && m[1] == 'd')
      rank = static_cast<unsigned>(m[0] - '0');
    if (m.starts_with("im2col"))
      return context.unsupported(instruction, "." + std::string(m) + ": im2col tensor maps are not emulated");
    if (m == "tile::gather4" || m == "tile::scatter4")
      return context.unsupported(instruction, "." + std::string(m) + " is not emulated");
    if (m.starts_with("cta_group"))
      return context.unsupported(instruction, "." + std::string(m) + ": pairs of blocks are not emulated");
  }
  return true;
}

} // namespace

bool decodeBulkLoad(DecodeContext &context, const Form &form, const Instruction &instruction, Op &op) {
  BulkOperands o(context, form, instruction, op);
  const bool own = form.has("shared::cta");
  if (own && form.has("multicast::cluster"))
    return context.error(instruction, "a multicast goes to .shared::cluster");
  op.flags |= own ? bulkFlag::ownBlock : 0;
  return o.order(own ? "shared::cta" : "shared::cluster", "global") &&
         o.count(4, "a destination, a source, a size, an mbarrier", BulkOperands::blocks | BulkOperands::policy) &&
         o.shared(0, bulkSlot::To) && o.global(1, bulkSlot::From) && o.size(2) && o.shared(3, bulkSlot::Barrier) &&
         o.rest(4) && o.finish(bulkLoad);
}

bool decodeBulkToCluster(DecodeContext &context, const Form &form, const Instruction &instruction, Op &op) {
  BulkOperands o(context, form, instruction, op);
  return decodeReduction(context, form, op) && o.order("shared::cluster", "shared::cta") &&
         o.count(4, "a destination, a source, a size, an mbarrier", 0) && o.shared(0, bulkSlot::To) &&
         o.shared(1, bulkSlot::From) && o.size(2) && o.shared(3, bulkSlot::Barrier) && o.finish(bulkToCluster);
}

bool decodeBulkStore(DecodeContext &context, const Form &form, const Instruction &instruction, Op &op) {
  BulkOperands o(context, form, instruction, op);
  return decodeReduction(context, form, op) && o.order("global", "shared::cta") &&
         o.count(3, "a destination, a source, a size", BulkOperands::policy | BulkOperands::bytes) &&
         o.global(0, bulkSlot::To) && o.shared(1, bulkSlot::From) && o.size(2) && o.rest(3) && o.finish(bulkStore);
}

bool decodeBulkPrefetch(DecodeContext &context, const Form &form, const Instruction &instruction, Op &op) {
  BulkOperands o(context, form, instruction, op);
  return o.count(2, "an address, a size", BulkOperands::policy) && o.global(0, bulkSlot::From) && o.size(1) &&
         o.rest(2) && o.finish([](Warp &, const Op &) { return Next::Advance; });
}

bool decodeBulkCommit(DecodeContext &context, const Form &, const Instruction &instruction, Op &op) {
  if (!instruction.operands.empty())
    return context.error(instruction, "takes no operands");
  context.usesAsync(true);
  context.flow().visible = true;
  op.run = bulkCommit;
  return true;
}

bool decodeBulkWait(DecodeContext &context, const Form &form, const Instruction &instruction, Op &op) {
  if (instruction.operands.size() != 1 || instruction.operands[0].kind != Operand::Kind::Integer)
    return context.error(instruction, "takes one integer constant");
  op.imm = static_cast<std::int64_t>(instruction.operands[0].bits & 0x7FFFFFFF);
  op.flags |= form.has("read") ? bulkFlag::reads : 0;
  context.usesAsync(true);
  context.flow().visible = true;
  context.flow().observes = true;
  op.run = bulkWait;
  return true;
}

bool decodeTensorLoad(DecodeContext &context, const Form &form, const Instruction &instruction, Op &op) {
  unsigned rank = 0;
  if (!decodeShape(context, form, instruction, rank))
    return false;
  BulkOperands o(context, form, instruction, op);
  const bool own = form.has("shared::cta");
  if (own && form.has("multicast::cluster"))
    return context.error(instruction, "a multicast goes to .shared::cluster");
  op.flags |= own ? bulkFlag::ownBlock : 0;
  op.imm = bulkForm(rank);
  return o.order(own ? "shared::cta" : "shared::cluster", "global") &&
         o.count(3, "a destination, a tensor map with coordinates, an mbarrier",
                 BulkOperands::blocks | BulkOperands::policy) &&
         o.shared(0, bulkSlot::To) && o.tensor(1, rank) && o.shared(2, bulkSlot::Barrier) && o.rest(3) &&
         o.finish(tensorLoad);
}

bool decodeTensorStore(DecodeContext &context, const Form &form, const Instruction &instruction, Op &op) {
  unsigned rank = 0;
  if (!decodeShape(context, form, instruction, rank))
    return false;
  BulkOperands o(context, form, instruction, op);
  const ReduceOp reduction = reductionOf(form);
  op.imm = bulkForm(rank, reduction);
  // The map may say that elements are floats: then the sum depends on the order of the blocks.
  if (reduction == ReduceOp::Add)
    context.needsOrder(/*seesOthers=*/false);
  return o.order("global", "shared::cta") &&
         o.count(2, "a tensor map with coordinates, a source", BulkOperands::policy) && o.tensor(0, rank) &&
         o.shared(1, bulkSlot::To) && o.rest(2) && o.finish(tensorStore);
}

bool decodeTensorPrefetch(DecodeContext &context, const Form &form, const Instruction &instruction, Op &op) {
  unsigned rank = 0;
  if (!decodeShape(context, form, instruction, rank))
    return false;
  BulkOperands o(context, form, instruction, op);
  op.imm = bulkForm(rank);
  return o.count(1, "a tensor map with coordinates", BulkOperands::policy) && o.tensor(0, rank) && o.rest(1) &&
         o.finish(tensorPrefetch);
}

bool decodeMapReplace(DecodeContext &context, const Form &form, const Instruction &instruction, Op &op) {
  static constexpr std::pair<std::string_view, MapField> fields[] = {{"global_address", MapField::GlobalAddress},
                                                                     {"rank", MapField::Rank},
                                                                     {"box_dim", MapField::BoxDim},
                                                                     {"global_dim", MapField::GlobalDim},
                                                                     {"global_stride", MapField::GlobalStride},
                                                                     {"element_stride", MapField::ElementStride},
                                                                     {"elemtype", MapField::ElemType},
                                                                     {"interleave_layout", MapField::InterleaveLayout},
                                                                     {"swizzle_mode", MapField::SwizzleMode},
                                                                     {"swizzle_atomicity", MapField::SwizzleAtomicity},
                                                                     {"fill_mode", MapField::FillMode}};
  const auto *row =
      std::find_if(std::begin(fields), std::end(fields), [&](const auto &f) { return form.has(f.first); });
  const MapField field = row->second;
  const bool hasOrdinal = field == MapField::BoxDim || field == MapField::GlobalDim ||
                          field == MapField::GlobalStride || field == MapField::ElementStride;
  const bool isEnumeration = field >= MapField::ElemType;
  const auto &operands = instruction.operands;
  if (operands.size() != (hasOrdinal ? 3u : 2u) || (hasOrdinal && operands[1].kind != Operand::Kind::Integer) ||
      (isEnumeration && operands[1].kind != Operand::Kind::Integer))
    return context.error(instruction, hasOrdinal      ? "takes an address, the constant number of a dimension, a value"
                                      : isEnumeration ? "takes an address and a constant"
                                                      : "takes an address and a value");
  const std::uint64_t ordinal = hasOrdinal ? operands[1].bits : 0;
  // A trial finds dimensions and constants that no map has; 16 and 1 are good for every field.
  TensorMap trial;
  std::string why;
  const std::uint64_t value = operands.back().kind == Operand::Kind::Integer ? operands.back().bits
                              : field == MapField::GlobalStride              ? 16
                                                                             : 1;
  if (!replaceMapField(trial.bytes.data(), field, static_cast<std::uint32_t>(std::min<std::uint64_t>(ordinal, 99)),
                       value, why))
    return context.error(instruction, why);
  DecodeContext::Address address;
  if (!decodeAddress(context, instruction, operands[0], spaceOf(form), op, address))
    return false;
  if (address.space != Space::Shared && address.space != Space::Global && address.space != Space::Generic)
    return context.error(instruction, "a tensor map that changes lies in shared or global memory");
  op.cache = context.newCache();
  op.aux = static_cast<std::uint32_t>(field) | static_cast<std::uint32_t>(ordinal) << 8;
  context.flow().visible = true;
  op.flags |= form.type() == Type::B64 ? mapValue64 : 0;
  op.run = replaceMap;
  return context.source(instruction, operands.back(), form.type(), op.s[1]);
}

bool decodeMapCopy(DecodeContext &context, const Form &form, const Instruction &instruction, Op &op) {
  BulkOperands o(context, form, instruction, op);
  const auto &operands = instruction.operands;
  if (operands.size() != 3 || operands[2].kind != Operand::Kind::Integer || operands[2].bits != TensorMap::size)
    return context.error(instruction, "takes a destination, a source and the constant 128");
  context.needsOrder();
  return o.order("global", "shared::cta") && o.global(0, bulkSlot::To) && o.shared(1, bulkSlot::From) &&
         o.finish(copyMap);
}

bool decodeBulkFill(DecodeContext &context, const Form &form, const Instruction &instruction, Op &op) {
  const auto &operands = instruction.operands;
  if (operands.size() != 3 || operands[2].kind != Operand::Kind::Integer || operands[2].bits != 0)
    return context.error(instruction, "takes an address, a size and the constant 0");
  DecodeContext::Address address;
  if (!decodeAddress(context, instruction, operands[0], spaceOf(form), op, address))
    return false;
  if (address.space != Space::Shared && address.space != Space::Generic)
    return context.error(instruction, "fills shared memory");
  op.cache = context.newCache();
  context.flow().visible = true;
  op.run = bulkFill;
  return context.source(instruction, operands[1], Type::U64, op.s[1]);
}

} // namespace kiln::emulator
