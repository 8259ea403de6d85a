#include "compiler/layout/OffsetBasis.h"

#include <algorithm>

namespace kiln::layout {

namespace {

/// Which lanes are free to move: all (vector accesses), or those that a matrix form does not pin.
enum Moving : unsigned { AllLanes, NotPlain, NotTrans };

bool hasVector(std::span<const BitVector> list, BitVector v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

} // namespace

OffsetBasisSearch::OffsetBasisSearch(const SideVectors &store, const SideVectors &load, unsigned regionBits,
                                     unsigned logBytes)
    : store(store), load(load), n(regionBits), logBytes(logBytes), subWord(logBytes < 2 ? 2 - logBytes : 0) {
  for (const SideVectors *side : {&store, &load})
    for (const Columns *part : {&side->lanes, &side->warps, &side->blocks})
      outer.append(*part);
  // A functional either vanishes on a vector or cannot; vectors that depend on earlier ones decide nothing.
  Subspace span;
  auto offer = [&](const Columns &vectors) {
    for (BitVector v : vectors)
      if (span.add(v))
        prefer.push_back(v);
  };
  offer(load.lanes);
  offer(store.lanes);
  for (const Columns *part :
       {&load.warps, &load.blocks, &store.warps, &store.blocks, &load.registers, &store.registers})
    offer(*part);
  for (unsigned i = 0; i < n; ++i)
    if (span.add(unitVector(i)))
      prefer.push_back(unitVector(i));
}

OffsetBasisSearch::Demand OffsetBasisSearch::demandOf(Form form, const SideVectors &side) const {
  Demand d;
  d.form = form;
  if (!isMatrix(form.form)) {
    d.registerBits = d.length = form.k;
    d.moving = AllLanes;
    return d;
  }
  bool trans = isTrans(form.form);
  d.registerBits = d.length = matrixVectorBits(trans, logBytes);
  for (unsigned j : matrixLanes(trans))
    d.lane[d.length++] = side.lanes[j];
  d.moving = trans ? NotTrans : NotPlain;
  return d;
}

Columns OffsetBasisSearch::movingVectors(const SideVectors &side, unsigned moving) const {
  Columns out;
  for (unsigned j = 0; j < side.lanes.size(); ++j)
    if (moving == AllLanes || (moving == NotPlain) == (j >= 2))
      out.push_back(side.lanes[j]);
  out.append(side.warps);
  out.append(side.blocks);
  return out;
}

/// Vectors on which offset bit `bit` must vanish.  Registers are bound only on bits that lanes hold.
const Subspace &OffsetBasisSearch::zeros(const Demand &a, const Demand &b, unsigned bit) {
  auto state = [&](const Demand &d) -> unsigned {
    if (bit >= d.length)
      return 0;
    return bit < d.registerBits ? 1 + d.moving : 4 + d.moving;
  };
  unsigned sa = state(a), sb = state(b), at = sa * states + sb;
  if (!(zeroKnown >> at & 1)) {
    zeroKnown |= unitVector(at);
    Subspace &z = zeroCache[at];
    z = Subspace();
    for (auto [s, side] : {std::pair(sa, &store), std::pair(sb, &load)}) {
      if (s >= 1)
        z.add(movingVectors(*side, (s - 1) % 3));
      if (s >= 4)
        z.add(side->registers);
    }
  }
  return zeroCache[at];
}

/// No decided g_i lies in what must vanish on bit i, or among the other decided ones.
bool OffsetBasisSearch::separable(const Columns &g, BitVector decided, const Demand &a, const Demand &b) {
  for (unsigned i : bitsOf(decided)) {
    Subspace z = zeros(a, b, i);
    for (unsigned j : bitsOf(decided))
      if (j != i)
        z.add(g[j]);
    if (z.contains(g[i]))
      return false;
  }
  return true;
}

std::optional<OffsetBasisSearch::Low> OffsetBasisSearch::chooseLow(const Demand &a, const Demand &b) {
  unsigned length = std::max(a.length, b.length);
  Low low;
  Columns &g = low.g;
  g.resize(length, 0);
  BitVector decided = 0;
  for (const Demand *d : {&a, &b})
    for (unsigned i = d->registerBits; i < d->length; ++i) {
      if (decided >> i & 1 && g[i] != d->lane[i])
        return std::nullopt;
      g[i] = d->lane[i];
      decided |= unitVector(i);
    }
  auto wants = [&](const Demand &d, unsigned i) { return i < d.registerBits; };
  for (unsigned i : bitsOf(decided))
    if ((wants(a, i) && !Subspace(store.registers).contains(g[i])) ||
        (wants(b, i) && !Subspace(load.registers).contains(g[i])))
      return std::nullopt;
  if (!separable(g, decided, a, b))
    return std::nullopt;

  // Register directions for the others: those already paired in a word on both sides first, then the lowest.
  unsigned words = logBytes == 0 ? 2 : logBytes == 1 ? 1 : 0;
  auto unpaired = [&](const SideVectors &side, BitVector v) {
    return !hasVector({side.registers.data(), std::min(words, side.registers.size())}, v);
  };
  for (unsigned i = 0; i < length; ++i) {
    if (decided >> i & 1)
      continue;
    Columns space = wants(a, i) && wants(b, i) ? intersect(store.registers, load.registers)
                    : wants(a, i)              ? basis(store.registers)
                                               : basis(load.registers);
    auto rank = [&](BitVector v) { return std::pair(unpaired(store, v) + unpaired(load, v), v); };
    std::sort(space.begin(), space.end(), [&](BitVector x, BitVector y) { return rank(x) < rank(y); });
    bool found = false;
    for (BitVector v : space) {
      bool taken = false;
      for (unsigned j : bitsOf(decided))
        taken |= g[j] == v;
      if (taken)
        continue;
      g[i] = v;
      if ((found = separable(g, decided | unitVector(i), a, b)))
        break;
    }
    if (!found)
      return std::nullopt;
    decided |= unitVector(i);
  }

  // Bits inside a 32-bit word that nobody asked for.
  if (g.size() < std::min(subWord, n)) {
    Subspace span(g);
    auto fill = [&](std::span<const BitVector> vectors) {
      for (BitVector v : vectors)
        if (g.size() < std::min(subWord, n) && span.add(v))
          g.push_back(v);
    };
    fill(store.registers);
    fill(load.registers);
    fill(store.lanes);
    fill(load.lanes);
    for (unsigned i = 0; i < n; ++i)
      fill(std::span<const BitVector>(std::initializer_list<BitVector>{unitVector(i)}));
  }
  for (unsigned i = 0; i < g.size(); ++i) {
    Subspace z = zeros(a, b, i);
    for (unsigned j = 0; j < g.size(); ++j)
      if (j != i)
        z.add(g[j]);
    auto mu = functional(z.vectors(), g[i], n, prefer);
    if (!mu)
      return std::nullopt;
    low.mu.push_back(*mu);
  }
  return low;
}

/// What one phase of a side spans: its vector directions and the lanes (or matrix rows) of a phase.
std::optional<Columns> OffsetBasisSearch::footprint(const Low &low, const Demand &d, const SideVectors &side) const {
  Columns out(std::span(low.g.data(), d.length));
  if (!isMatrix(d.form.form)) {
    unsigned bytes = 1u << (logBytes + d.form.k), lanes = bytes == 16 ? 3 : bytes == 8 ? 4 : laneBits;
    out.append(std::span(side.lanes.data(), std::min(lanes, side.lanes.size())));
    return out;
  }
  if (!isTrans(d.form.form)) {
    out.append(std::span(side.lanes.data() + 2, 3));
    return out;
  }
  out.append(std::span(side.lanes.data(), 2));
  // The halves of a 32-bit register: the first direction that is not along the byte pair.
  for (BitVector r : side.registers)
    if (BitVector v = r ^ apply(low.g, coordsOf(std::span(low.mu.data(), d.registerBits), r))) {
      out.push_back(v);
      return out;
    }
  return std::nullopt;
}

std::optional<OffsetBasis> OffsetBasisSearch::find(Form storeForm, Form loadForm) {
  Demand a = demandOf(storeForm, store), b = demandOf(loadForm, load);
  if (store.registers.size() < a.registerBits || load.registers.size() < b.registerBits)
    return std::nullopt;
  auto low = chooseLow(a, b);
  if (!low)
    return std::nullopt;
  auto footA = footprint(*low, a, store), footB = footprint(*low, b, load);
  if (!footA || !footB)
    return std::nullopt;
  const Columns &g = low->g, &mu = low->mu;
  unsigned k = g.size(), u = std::min(subWord, k);
  auto project = [&](BitVector x) { return x ^ apply(g, coordsOf(mu, x)); }; // along g onto N

  // N: the common kernel of mu.
  Columns values;
  for (unsigned i = 0; i < n; ++i)
    values.push_back(coordsOf(mu, unitVector(i)));
  Columns N = kernel(values);
  unsigned have = k + logBytes, banks = std::min(have < 7 ? 7 - have : 0, N.size()); // bank bits still to assign

  // A: what a side's phase spans at equal word-in-vector bits, seen in N; at most `banks` dimensions can be spread.
  std::span<const BitVector> inWord(mu.data() + u, k - u);
  auto spread = [&](const Columns &foot) {
    Columns all = foot;
    all.append(std::span(g.data(), u));
    Columns out;
    Subspace span;
    for (BitVector x : whereZero(all, inWord))
      if (BitVector v = project(x); out.size() < banks && span.add(v))
        out.push_back(v);
    return out;
  };
  Columns A = spread(*footA), B = spread(*footB), quiet;
  for (const Columns *part : {&outer, &*footA, &*footB})
    for (BitVector v : *part)
      quiet.push_back(project(v));

  // Two bank spaces, one for each side, that differ as little as possible; the rows pair off their difference.
  auto grow = [&](std::initializer_list<const Columns *> lists) {
    Subspace span;
    Columns out;
    for (const Columns *list : lists)
      for (BitVector v : *list)
        if (out.size() < banks && span.add(v))
          out.push_back(v);
    return out;
  };
  Columns c1 = grow({&A, &B, &quiet, &N}), c2 = grow({&B, &c1, &quiet, &N}), both = intersect(c1, c2);
  auto modulo = [&](const Columns &c) {
    Subspace span(both);
    Columns out;
    for (BitVector v : c)
      if (span.add(v))
        out.push_back(v);
    return out;
  };
  Columns e = modulo(c1), f = modulo(c2);

  OffsetBasis out;
  out.basis = g;
  out.basis.append(c1);
  for (unsigned i = 0; i < std::min(e.size(), f.size()); ++i)
    out.basis.push_back(e[i] ^ f[i]);
  Subspace span(std::span(out.basis.data() + k, out.basis.size() - k));
  for (BitVector v : quiet)
    if (span.add(v))
      out.basis.push_back(v);
  out.fixedBits = out.basis.size();
  for (BitVector v : N)
    if (span.add(v))
      out.basis.push_back(v);
  return out;
}

} // namespace kiln::layout
