#include "runtime/device/emulator/decode/DecodeMemory.h"

#include "runtime/device/emulator/decode/DecodeState.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"

namespace kiln::emulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

Space spaceOf(const Form &form) {
  for (unsigned i = 0; i < form.numModifiers; ++i) {
    const std::string_view m = form.modifiers[i];
    if (m == "global")
      return Space::Global;
    if (m == "const")
      return Space::Const;
    if (m == "local")
      return Space::Local;
    if (m == "shared" || m == "shared::cta" || m == "shared::cluster")
      return Space::Shared;
    if (m == "param" || m == "param::entry" || m == "param::func")
      return Space::Param;
  }
  return Space::Generic;
}

unsigned vectorOf(const Form &form) {
  return form.has("v2") ? 2 : form.has("v4") ? 4 : form.has("v8") ? 8 : 1;
}

std::uint16_t orderFlags(const Form &form) {
  const bool both = form.has("acq_rel");
  return static_cast<std::uint16_t>((both || form.has("acquire") ? access::acquire : 0) |
                                    (both || form.has("release") ? access::release : 0) |
                                    (form.has("cta") ? access::ctaScope : 0));
}

static bool isStrong(const Form &form) {
  return form.has("volatile") || form.has("relaxed") || form.has("acquire") || form.has("release") || form.has("mmio");
}

static std::uint16_t spaceFlag(Space space) {
  switch (space) {
  case Space::Global:
    return access::global;
  case Space::Const:
    return access::constant;
  case Space::Shared:
    return access::shared;
  case Space::Local:
    return access::local;
  case Space::Param:
    return access::param;
  default:
    return access::generic;
  }
}

bool decodeAddress(DecodeContext &context, const ptx::Instruction &instruction, const Operand &operand, Space space,
                   Op &op, DecodeContext::Address &address) {
  if (!context.address(instruction, operand, space, address))
    return false;
  op.s[0] = address.base;
  op.imm = address.displacement;
  op.flags |= spaceFlag(address.space);
  if (address.base32)
    op.flags |= access::base32;
  if (address.space == Space::Global || address.space == Space::Const || address.space == Space::Generic)
    op.cache = context.newCache();
  return true;
}

std::uint16_t clusterFlag(const Form &form) {
  return form.has("shared::cluster") ? access::cluster : 0;
}

/// Number of elements and their width; false after an error.
static bool shapeOf(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, unsigned &count,
                    MemoryForm &f) {
  const Type type = form.type();
  const unsigned vector = vectorOf(form), bytes = ptx::typeBytes(type);
  if (vector * bytes > 32 || (vector == 8 && bytes != 4))
    return context.error(instruction, "a vector of " + std::to_string(vector) + " times " + std::to_string(bytes) +
                                          " bytes does not exist");
  if (vector * bytes == 32 && !context.target().has(Capability::Wide256))
    return context.error(instruction,
                         "32-byte accesses need sm_100 or newer, the device is " + std::string(context.target().name));
  if (vector * bytes == 32 && spaceOf(form) != Space::Global && spaceOf(form) != Space::Generic)
    return context.error(instruction, "32-byte accesses exist for .global only");
  f.elementBytes = bytes == 16 ? 8 : bytes;
  f.isSigned = ptx::typeKind(type) == ptx::TypeKind::Signed;
  count = vector * (bytes == 16 ? 2 : 1);
  return true;
}

/// The registers of a vector operand, or the single one.
static bool elementsOf(DecodeContext &context, const ptx::Instruction &instruction, const Operand &operand,
                       unsigned vector, std::span<const Operand> &elements) {
  const bool isVector = operand.kind == Operand::Kind::Vector;
  const std::size_t n = isVector ? operand.elements.size() : 1;
  if (n != vector)
    return context.error(instruction, "has " + std::to_string(n) + " registers where ." +
                                          (vector > 1 ? "v" + std::to_string(vector) : "scalar") + " needs " +
                                          std::to_string(vector));
  elements = isVector ? std::span<const Operand>(operand.elements) : std::span<const Operand>(&operand, 1);
  return true;
}

bool decodeLoad(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op, MemoryForm &f) {
  if (instruction.operands.size() < 2 || instruction.operands.size() > 3)
    return context.error(instruction, "takes a destination, an address and perhaps a cache policy");
  unsigned count = 1;
  if (!shapeOf(context, form, instruction, count, f))
    return false;
  const Type type = form.type();
  const bool wholeWide = ptx::typeBytes(type) == 16;
  std::span<const Operand> elements;
  if (!elementsOf(context, instruction, instruction.operands[0], vectorOf(form), elements))
    return false;
  std::vector<std::uint32_t> slots;
  unsigned registerBytes = 0;
  for (const Operand &e : elements) {
    Slot slot = noSlot;
    unsigned bytes = 0;
    if (!context.destination(instruction, e, type, slot, &bytes, true))
      return false;
    if (slot != trashSlot) {
      const unsigned width = wholeWide ? 8 : bytes;
      if (registerBytes && slotClass(registerBytes) != slotClass(width))
        return context.error(instruction, "the registers of the vector have different widths");
      registerBytes = width;
    }
    slots.push_back(slot);
    if (wholeWide)
      slots.push_back(slot == trashSlot ? trashSlot : slot + 256);
  }
  f.registerBytes = registerBytes ? registerBytes : f.elementBytes == 8 ? 8 : 4;
  if (f.registerBytes < 4)
    op.flags |= f.isSigned ? access::narrow : 0;
  if (slots.size() == 1)
    op.d = slots[0];
  else
    op.aux = context.addPool(slots);
  op.flags |= static_cast<std::uint16_t>(count << access::countShift);
  DecodeContext::Address address;
  if (!decodeAddress(context, instruction, instruction.operands[1], spaceOf(form), op, address))
    return false;
  op.flags |= clusterFlag(form);
  if (instruction.usedBytesMask)
    op.usedBytes = static_cast<std::uint32_t>(*instruction.usedBytesMask);
  if (isStrong(form)) {
    op.flags |= access::strong | orderFlags(form);
    if (address.space == Space::Global || address.space == Space::Generic)
      context.needsOrder();
  }
  context.flow().observes =
      address.space == Space::Global || address.space == Space::Shared || address.space == Space::Generic;
  const unsigned bytes = count * f.elementBytes;
  if (address.fixed) {
    f.fixedParameter = true;
    op.imm = static_cast<std::int64_t>(address.offset);
    const std::uint64_t limit = context.parameterBytes();
    if (address.offset > limit || limit - address.offset < bytes)
      return context.error(instruction,
                           "reads past the kernel's parameters, which have " + std::to_string(limit) + " bytes");
    if (address.offset % bytes)
      return context.error(instruction, "offset " + std::to_string(address.offset) + " is not aligned to " +
                                            std::to_string(bytes) + " bytes");
  }
  return true;
}

bool decodeStore(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op, MemoryForm &f) {
  if (instruction.operands.size() < 2 || instruction.operands.size() > 3)
    return context.error(instruction, "takes an address, a value and perhaps a cache policy");
  unsigned count = 1;
  if (!shapeOf(context, form, instruction, count, f))
    return false;
  std::span<const Operand> elements;
  if (!elementsOf(context, instruction, instruction.operands[1], vectorOf(form), elements))
    return false;
  std::vector<std::uint32_t> slots;
  for (const Operand &e : elements) {
    Slot slot = noSlot;
    if (!context.source(instruction, e, form.type(), slot))
      return false;
    slots.push_back(slot);
    if (ptx::typeBytes(form.type()) == 16)
      slots.push_back(slot + 256);
  }
  if (slots.size() == 1)
    op.s[2] = slots[0];
  else
    op.aux = context.addPool(slots);
  op.flags |= static_cast<std::uint16_t>(count << access::countShift);
  context.flow().visible = true;
  if (isStrong(form))
    op.flags |= access::strong | orderFlags(form);
  op.flags |= clusterFlag(form);
  DecodeContext::Address address;
  if (!decodeAddress(context, instruction, instruction.operands[0], spaceOf(form), op, address))
    return false;
  if (address.fixed)
    return context.error(instruction, "the parameters of a kernel are read-only");
  return true;
}

} // namespace kiln::emulator
