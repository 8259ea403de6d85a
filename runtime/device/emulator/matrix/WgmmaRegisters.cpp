// The rules for registers of wgmma: guards of ordinary accesses, and what a product asks of its registers.
#include "runtime/device/emulator/matrix/Wgmma.h"

namespace kiln::emulator {

static const char *roleText(bool fragment) {
  return fragment ? "a register of A" : "an accumulator";
}

/// The other instruction of a finding, in addition to the one that it is reported at.
static RawOther otherOp(const WarpState &w, std::uint32_t pc) {
  return {w.block->linear, w.index, fullMask, pc};
}

/// An ordinary access to a register of a product that was not waited for.
[[gnu::noinline]] static void reportInFlight(WarpState &w, const Op &op, std::uint32_t number, const WgmmaRegister &r,
                                             bool note) {
  constexpr char id[] = "wgmma.reg_in_flight";
  if (note ? countFinding(w, op, id) : countRace(w, op, id, r.productPc))
    return;
  const WgmmaProgram &p = *w.program->wgmma;
  const Op &product = w.program->ops[r.productPc];
  const WgmmaForm &form = p.forms[static_cast<std::size_t>(product.imm)];
  std::string_view name;
  for (std::size_t i = 0; i < form.registers.size(); ++i)
    if (form.registers[i] == number)
      name = form.names[i];
  std::string text = std::string(name) + " is " + roleText(r.fragment) + " of the mma issued at " +
                     w.program->point(r.productPc) + " (" + wgmmaGroupText(w.block->wgmma->warps[w.index], r.product) +
                     ")";
  if (note)
    reportNote(w, op, id, w.exec, text + ": the mov waits for it");
  else
    reportRace(w, op, id, w.exec, text + ", which no wgmma.wait_group has waited for", otherOp(w, r.productPc));
}

static Next guardMove(WarpState &w, const Op &op, const WgmmaGuard &g) {
  WgmmaWarp &mine = w.block->wgmma->warps[w.index];
  const auto pc = static_cast<std::uint32_t>(&op - w.program->ops.data());
  if (g.from != WgmmaGuard::none) {
    const WgmmaRegister &from = mine.registers[g.from];
    if (from.product > mine.done) {
      reportInFlight(w, op, g.from, from, true);
      if (const Next next = waitForProducts(w, from.product); next != Next::Advance)
        return next;
      mine.done = from.product;
    }
  }
  if (g.to == WgmmaGuard::none)
    return Next::Advance;
  WgmmaRegister &to = mine.registers[g.to];
  if (to.product > mine.done)
    reportInFlight(w, op, g.to, to, false);
  if (g.from != WgmmaGuard::none) {
    to = mine.registers[g.from];
    return Next::Advance;
  }
  to = {};
  const bool beforeProducts = g.kind == WgmmaGuard::Kind::MoveConstant && mine.issued == mine.issuedAtFence;
  to.touched = beforeProducts && mine.fences ? mine.fences - 1 : mine.fences;
  to.touchedPc = pc;
  return Next::Advance;
}

Next wgmmaGuarded(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  const WgmmaProgram &p = *w.program->wgmma;
  const auto pc = static_cast<std::uint32_t>(&op - w.program->ops.data());
  const WgmmaGuard &g = p.guards[p.guardOf[pc]];
  if (g.kind != WgmmaGuard::Kind::Access) {
    if (const Next next = guardMove(w, op, g); next != Next::Advance)
      return next;
    return g.run(warp, op);
  }
  WgmmaWarp &mine = w.block->wgmma->warps[w.index];
  for (std::uint32_t i = 0; i < g.count; ++i) {
    const std::uint32_t number = p.accessed[g.first + i];
    WgmmaRegister &r = mine.registers[number];
    if (r.product > mine.done) [[unlikely]]
      reportInFlight(w, op, number, r, false);
    r.touched = mine.fences;
    r.touchedPc = pc;
  }
  return g.run(warp, op);
}

namespace {

enum class Defect : std::uint8_t { None, Fence, InFlight };

/// Whether a product of `shape` may use the register now, as a fragment of A or as an accumulator.
Defect useOf(const WgmmaWarp &w, const WgmmaRegister &r, bool fragment, std::uint32_t shape) {
  const bool sameUse = r.product && r.fragment == fragment && (fragment || r.shape == shape);
  if (r.product > w.done && !sameUse)
    return Defect::InFlight;
  if (r.touched == w.fences) // also before the first fence
    return Defect::Fence;
  if (r.product && r.productFences == w.fences && !sameUse)
    return Defect::Fence;
  return Defect::None;
}

void reportUse(WarpState &w, const Op &op, const WgmmaWarp &mine, std::string_view name, const WgmmaRegister &r,
               bool fragment, Defect defect) {
  const bool flight = defect == Defect::InFlight;
  const char *id = flight ? "wgmma.reg_in_flight" : "wgmma.no_fence";
  if (!flight && mine.fences == 0) {
    if (!countFinding(w, op, id))
      reportFinding(w, op, id, w.exec, "the warp has not executed wgmma.fence before its first mma", false);
    return;
  }
  const std::uint32_t other = !flight && r.touched == mine.fences ? r.touchedPc : r.productPc;
  if (countRace(w, op, id, other))
    return;
  std::string text = std::string(fragment ? "register of A " : "accumulator ") + std::string(name);
  if (flight)
    text += std::string(" is ") + roleText(r.fragment) + " of the mma issued at " + w.program->point(other) + " (" +
            wgmmaGroupText(mine, r.product) + ")" + (r.fragment == fragment ? ", which has another shape" : "");
  else
    text += " last accessed at " + w.program->point(other) + " without wgmma.fence since";
  reportRace(w, op, id, w.exec, std::move(text), otherOp(w, other));
}

} // namespace

void checkProductRegisters(WarpState &w, const Op &op, const WgmmaForm &form) {
  WgmmaWarp &mine = w.block->wgmma->warps[w.index];
  const auto pc = static_cast<std::uint32_t>(&op - w.program->ops.data());
  const std::uint32_t shape = form.shape();
  for (std::size_t i = 0; i < form.registers.size(); ++i) {
    const bool fragment = i >= form.accumulators;
    const WgmmaRegister &r = mine.registers[form.registers[i]];
    if (const Defect d = useOf(mine, r, fragment, shape); d != Defect::None) [[unlikely]] {
      reportUse(w, op, mine, form.names[i], r, fragment, d);
      break;
    }
  }
  // Fragments first: where a register is both, the accumulator counts.
  for (std::size_t i = form.registers.size(); i-- > 0;) {
    WgmmaRegister &r = mine.registers[form.registers[i]];
    r.product = mine.issued + 1;
    r.productPc = pc;
    r.productFences = mine.fences;
    r.shape = shape;
    r.fragment = i >= form.accumulators;
    if (r.touched == mine.fences && mine.fences) // reported; the next product is not to blame
      r.touched = mine.fences - 1;
  }
}

} // namespace kiln::emulator
