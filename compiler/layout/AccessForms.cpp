#include "compiler/layout/AccessForms.h"

namespace kiln::layout {

namespace {

/// Log2 of how often the busiest bank is hit by the words that one phase spans (byte-address vectors).
unsigned logConflicts(std::span<const BitVector> vectors) {
  Subspace words, banks;
  for (BitVector v : vectors) {
    words.add(v >> 2);
    banks.add(v >> 2 & 31);
  }
  return words.dim() - banks.dim();
}

/// Lane bits whose lanes share a phase: 8-byte accesses run in 2 phases of 16 lanes, 16-byte ones in 4 of 8.
unsigned phaseLaneBits(unsigned bytes) {
  return bytes == 16 ? 3 : bytes == 8 ? 4 : 5;
}

} // namespace

unsigned activePhases(unsigned bytes, BitVector lanePredicate) {
  unsigned phases = 1;
  for (unsigned i = phaseLaneBits(bytes); i < laneBits; ++i)
    phases <<= lanePredicate >> i & 1 ? 0 : 1;
  return phases;
}

FormList formsFor(bool store, unsigned registerBits, unsigned logBytes, bool lanePredicate, bool matrices,
                  const Target &target) {
  FormList forms;
  for (unsigned k = 0; k <= std::min(4 - logBytes, registerBits); ++k)
    forms.push_back({store ? AccessForm::St : AccessForm::Ld, k});
  // A predicated lane cannot supply its part of a matrix.
  if (!matrices || lanePredicate || !target.has(store ? Capability::Stmatrix : Capability::Ldmatrix))
    return forms;
  if (logBytes <= 2)
    forms.push_back({store ? AccessForm::Stmatrix : AccessForm::Ldmatrix, 0});
  if (logBytes <= 1)
    forms.push_back({store ? AccessForm::StmatrixTrans : AccessForm::LdmatrixTrans, 0});
  return forms;
}

FormSize sizeOf(Form form, const SideVectors &side, unsigned logBytes) {
  FormSize s;
  unsigned have = side.registers.size();
  if (!isMatrix(form.form)) {
    s.bytes = 1u << (logBytes + form.k);
    s.logInstructions = have - form.k;
    s.ideal = activePhases(s.bytes, side.lanePredicate);
    s.directions = form.k;
    return s;
  }
  bool trans = isTrans(form.form);
  s.directions = matrixVectorBits(trans, logBytes) + trans;
  unsigned left = have > s.directions ? have - s.directions : 0, mats = std::min(2u, left);
  s.logInstructions = left - mats;
  s.ideal = 1u << mats;
  s.bytes = 4u << mats;
  return s;
}

bool bindAccess(Form form, const SideVectors &side, unsigned logBytes, std::span<const BitVector> rows,
                unsigned passBits, BoundAccess &out) {
  bool matrix = isMatrix(form.form), trans = isTrans(form.form);
  unsigned low = static_cast<unsigned>(rows.size()) - passBits;
  auto offsets = [&](const Columns &vectors) {
    Columns o;
    for (BitVector v : vectors)
      o.push_back(coordsOf(rows, v));
    return o;
  };
  out = BoundAccess();
  out.form = form;
  out.registerOffset = offsets(side.registers);
  out.lane = offsets(side.lanes);
  out.warp = offsets(side.warps);
  out.block = offsets(side.blocks);
  for (const Columns *part : {&out.lane, &out.warp, &out.block})
    for (BitVector o : *part)
      out.addressSpan |= o;
  if (out.addressSpan >> low)
    return false;

  // Copies in registers move once.  Directions below are over `moving`: bit i stands for register bit moving[i].
  Columns moving, offset;
  Span span;
  for (unsigned i = 0; i < side.registers.size(); ++i)
    if (!span.contains(out.registerOffset[i]) || side.keepAll) {
      span.add(out.registerOffset[i]);
      moving.push_back(side.registerBits[i]);
      offset.push_back(out.registerOffset[i]);
    }

  unsigned vectorBits = form.k, held = form.k; // `held` low bits belong to registers and, in matrices, to certain lanes
  BitVector fixedLanes = 0;
  if (matrix) {
    if (logBytes > (trans ? 1u : 2u) || side.lanePredicate || out.lane.size() != laneBits)
      return false;
    vectorBits = held = matrixVectorBits(trans, logBytes);
    for (unsigned j : matrixLanes(trans)) {
      if (out.lane[j] != unitVector(held++))
        return false;
      fixedLanes |= unitVector(j);
    }
    for (BitVector o : out.registerOffset)
      if (o & lowMask(held) & ~lowMask(vectorBits))
        return false;
  }
  BitVector touched = 0;
  for (unsigned j = 0; j < out.lane.size(); ++j)
    touched |= fixedLanes >> j & 1 ? 0 : out.lane[j];
  for (BitVector o : out.warp)
    touched |= o;
  for (BitVector o : out.block)
    touched |= o;
  if (touched & lowMask(held))
    return false;

  Columns vector; // over `moving`
  Subspace used;
  for (unsigned i = 0; i < vectorBits; ++i) {
    auto m = span.solve(unitVector(i));
    if (!m)
      return false;
    vector.push_back(*m);
    used.add(unitVector(i));
  }
  // The other directions, made free of vector bits; those that change the pass come last and one a pass bit.
  Columns rest, passes;
  Subspace passSpan;
  for (unsigned i = 0; i < moving.size(); ++i) {
    BitVector m = unitVector(i);
    for (unsigned v : bitsOf(offset[i] & lowMask(vectorBits)))
      m ^= vector[v];
    BitVector o = apply(offset, m);
    if (used.add(o) || side.keepAll)
      (passSpan.add(o >> low) ? passes : rest).push_back(m);
  }
  if (passes.size() != passBits)
    return false;
  if (passBits) {
    Span numbers;
    for (BitVector m : passes)
      numbers.add(apply(offset, m) >> low);
    for (BitVector &m : rest)
      for (unsigned j : bitsOf(numbers.reduce(apply(offset, m) >> low).second))
        m ^= passes[j];
  }

  unsigned taken = 0;
  BitVector halves = 0;
  Columns phase; // byte-address vectors that one phase spans
  if (matrix) {
    if (trans) {
      if (rest.empty())
        return false;
      halves = rest[taken++];
    }
    while (taken < rest.size() && out.matrices.size() < 2)
      out.matrices.push_back(rest[taken++]);
    if (isStore(form.form)) { // two rows of one store must not coincide
      Subspace rowSpan;
      bool distinct = true;
      for (BitVector o : out.lane)
        distinct &= rowSpan.add(o);
      for (BitVector m : out.matrices)
        distinct &= rowSpan.add(apply(offset, m));
      if (trans)
        distinct &= rowSpan.add(apply(offset, halves));
      if (!distinct)
        return false;
    }
    out.bytes = 4u << out.matrices.size();
    phase = {4, 8};
    if (trans)
      phase.push_back(apply(offset, halves) << logBytes);
    for (unsigned j = trans ? 0 : 2; j < (trans ? 2u : laneBits); ++j)
      phase.push_back(out.lane[j] << logBytes);
    out.ideal = out.bytes / 4;
  } else {
    out.bytes = 1u << (logBytes + form.k);
    for (unsigned b = 4; b < out.bytes; b *= 2)
      phase.push_back(b);
    for (unsigned j = 0; j < std::min(phaseLaneBits(out.bytes), out.lane.size()); ++j)
      if (!(side.lanePredicate >> j & 1))
        phase.push_back(out.lane[j] << logBytes);
    out.ideal = activePhases(out.bytes, side.lanePredicate);
  }
  out.wavefronts = out.ideal << logConflicts(phase);

  auto overRegisters = [&](BitVector m) {
    BitVector mask = 0;
    for (unsigned i : bitsOf(m))
      mask |= unitVector(static_cast<unsigned>(moving[i]));
    return mask;
  };
  Subspace constants;
  for (unsigned i = taken; i < rest.size() + passes.size(); ++i) {
    BitVector m = i < rest.size() ? rest[i] : passes[i - rest.size()];
    constants.add(apply(offset, m) & out.addressSpan);
    out.instruction.push_back(overRegisters(m));
  }
  out.constants = (1u << constants.dim()) - 1;
  out.halves = overRegisters(halves);
  for (BitVector m : vector)
    out.vector.push_back(overRegisters(m));
  for (BitVector &m : out.matrices)
    m = overRegisters(m);
  return true;
}

Access emitAccess(const BoundAccess &bound, const SideVectors &side, unsigned registerBits,
                  std::uint64_t instructions) {
  auto masks = [](const Columns &columns) {
    std::vector<Mask> out(columns.size());
    for (unsigned i = 0; i < columns.size(); ++i)
      out[i] = static_cast<Mask>(columns[i]);
    return out;
  };
  Access a;
  a.form = bound.form.form;
  a.bytes = bound.bytes;
  a.vector = masks(bound.vector);
  a.halves = static_cast<Mask>(bound.halves);
  a.matrices = masks(bound.matrices);
  a.instruction = masks(bound.instruction);
  a.lane = masks(bound.lane);
  a.warp = masks(bound.warp);
  a.block = masks(bound.block);
  a.registerOffset.resize(registerBits, 0);
  for (unsigned i = 0; i < side.registerBits.size(); ++i)
    a.registerOffset[side.registerBits[i]] = static_cast<Mask>(bound.registerOffset[i]);
  auto registerOffset = [&](Mask direction) { return applyColumns(a.registerOffset, direction); };
  if (isTrans(a.form))
    a.rowOffset = {registerOffset(a.halves), a.lane[0], a.lane[1]};
  else if (isMatrix(a.form))
    a.rowOffset = {a.lane[2], a.lane[3], a.lane[4]};
  for (Mask m : a.matrices)
    a.rowOffset.push_back(registerOffset(m));
  a.lanePredicate = static_cast<Mask>(side.lanePredicate);
  a.warpPredicate = static_cast<Mask>(side.warpPredicate);
  a.addressSpan = static_cast<Mask>(bound.addressSpan);
  a.constants = bound.constants;
  a.instructions = instructions;
  a.wavefronts = bound.wavefronts;
  a.ideal = bound.ideal;
  return a;
}

} // namespace kiln::layout
