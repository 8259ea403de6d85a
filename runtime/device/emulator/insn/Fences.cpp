// Fences between the generic proxy and others: section 3.4 of the emulator specification.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/decode/DecodeMemory.h"
#include "runtime/device/emulator/execute/Executor.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

constexpr std::uint16_t fencesShared = 1, fencesGlobal = 2;

Next proxyFence(Warp &w, const Op &op) {
  if (w.block->races)
    w.block->races->proxyFence(static_cast<WarpState &>(w), op.flags & fencesShared, op.flags & fencesGlobal);
  return Next::Advance;
}
Handler buildProxyFence(const Form &f, std::string &) {
  const bool restricted = f.has("sync_restrict::shared::cta") || f.has("sync_restrict::shared::cluster");
  const bool shared = restricted || f.has("shared::cta") || f.has("shared::cluster");
  f.flags = f.has("global") ? fencesGlobal : shared ? fencesShared : fencesShared | fencesGlobal;
  return proxyFence;
}

/// A release of what was initialised, for relaxed arrivals at the cluster's barrier.
Handler buildInitFence(const Form &, std::string &) {
  return [](Warp &w, const Op &) {
    if (w.block->races)
      w.block->races->fence(static_cast<WarpState &>(w), false);
    return Next::Advance;
  };
}

bool decodeTensorMapFence(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  const auto &operands = instruction.operands;
  // Blocks may hand maps to each other.
  context.needsOrder();
  context.flow().visible = true;
  if (form.has("release")) {
    op.run = [](Warp &w, const Op &) {
      if (w.block->races)
        w.block->races->releaseMaps(static_cast<WarpState &>(w));
      return Next::Advance;
    };
    return operands.empty() || context.error(instruction, "takes no operands");
  }
  op.run = [](Warp &w, const Op &) {
    if (w.block->races)
      w.block->races->acquireMaps(static_cast<WarpState &>(w));
    return Next::Advance;
  };
  if (operands.size() != 2 || operands[1].kind != ptx::Operand::Kind::Integer || operands[1].bits != 128)
    return context.error(instruction, "takes an address and the constant 128");
  DecodeContext::Address address;
  return decodeAddress(context, instruction, operands[0], ptx::Space::Generic, op, address);
}

constexpr Row rows[] = {
    {"fence.proxy.async", "global|shared::cta|shared::cluster?", "", "", 90, buildProxyFence},
    {"fence.proxy.async::generic", "acquire|release sync_restrict::shared::cta|sync_restrict::shared::cluster cluster",
     "", "", 90, buildProxyFence},
    {"fence.mbarrier_init", "release cluster", "", "", 90, buildInitFence},
    {"fence.proxy.tensormap::generic", "acquire|release cta|cluster|gpu|sys", "", "custom", 90, nullptr, Plain,
     decodeTensorMapFence},
};

} // namespace

std::span<const Row> fencesRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
