#include "compiler/passes/barriers/PendingAccesses.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln {

Past Past::inNextRound(Operation *loop) const {
  Past out = *this;
  out.carried |= unsigned(loop->isProperAncestor(access->op));
  if (const SlotNumber *slot = access->slot(); slot && rounds != unknown) {
    scf::ForOp counts = slot->loop;
    if (loop == counts)
      out.rounds = (rounds + 1) % slot->count;
    else if (loop->isProperAncestor(counts))
      out.rounds = unknown;
  }
  if (access->shared && access->shared->constantNumber()) {
    if (loop->isProperAncestor(access->op)) {
      out.entered = nullptr;
      out.round = 0;
    } else {
      // The next round of the loop entered last; a round of a loop around that one; else this loop is entered.
      if (entered == loop)
        out.round = round == unknown || round + 1 == mostRounds ? unknown : round + 1;
      else
        out.round = entered && loop->isProperAncestor(entered) ? unknown : 0;
      out.entered = loop;
    }
  }
  return out;
}

unsigned PastTable::number(const Past &past) {
  const auto [it, fresh] = numbers.try_emplace(Key(past.access, past.carried, past.rounds, past.entered, past.round),
                                               static_cast<unsigned>(pasts.size()));
  if (fresh)
    pasts.push_back(past);
  return it->second;
}

unsigned PastTable::inNextRound(unsigned number, Operation *loop) {
  std::vector<unsigned> &known = next[loop];
  if (known.size() <= number)
    known.resize(pasts.size());
  if (!known[number])
    known[number] = this->number(pasts[number].inNextRound(loop)) + 1;
  return known[number] - 1;
}

} // namespace kiln
