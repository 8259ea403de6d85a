#include "compiler/layout/AccessForms.h"

#include <bit>
#include <utility>

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

bool BoundAccess::hasNeighbours() const {
  BitVector together = halves, apart = 0;
  for (const Columns *directions : {&vector, &matrices})
    for (BitVector m : *directions)
      together |= m;
  for (BitVector m : instruction)
    apart |= m & ~together;
  return !apart || !together || together < (apart & -apart);
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

namespace {

/// Binds one side to an offset map, step by step.  Directions are over `moving`: bit i stands for the register bit
/// moving[i], which lies at offset[i].
class Binder {
public:
  Binder(Form form, const SideVectors &side, unsigned logBytes, BoundAccess &out)
      : form(form), side(side), logBytes(logBytes), matrix(isMatrix(form.form)), trans(isTrans(form.form)), out(out) {}

  bool run(std::span<const BitVector> rows, unsigned passBits) {
    low = static_cast<unsigned>(rows.size()) - passBits;
    if (!computeOffsets(rows) || !checkLowBits() || !chooseVector() || !chooseDirections(passBits) ||
        (matrix && !chooseMatrices()))
      return false;
    countWavefronts();
    finish();
    return true;
  }

private:
  BitVector offsetOf(BitVector direction) const { return apply(offset, direction); }

  bool computeOffsets(std::span<const BitVector> rows) {
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
    if (out.addressSpan >> low) // a lane or warp would change the pass
      return false;
    for (unsigned i = 0; i < side.registers.size(); ++i) { // copies in registers move once
      if (span.contains(out.registerOffset[i]) && !side.keepAll)
        continue;
      span.add(out.registerOffset[i]);
      moving.push_back(side.registerBits[i]);
      offset.push_back(out.registerOffset[i]);
    }
    return true;
  }

  /// The low bits belong to registers and, in matrix forms, to certain lanes; nothing else may touch them.
  bool checkLowBits() {
    unsigned held = vectorBits = form.k;
    BitVector fixedLanes = 0;
    if (matrix) {
      if (logBytes > (trans ? 1u : 2u) || side.lanePredicate || out.lane.size() != laneBits)
        return false;
      held = vectorBits = matrixVectorBits(trans, logBytes);
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
    for (const Columns *part : {&out.warp, &out.block})
      for (BitVector o : *part)
        touched |= o;
    return !(touched & lowMask(held));
  }

  bool chooseVector() {
    for (unsigned i = 0; i < vectorBits; ++i) {
      auto m = span.solve(unitVector(i));
      if (!m)
        return false;
      vector.push_back(*m);
    }
    return true;
  }

  /// The other directions, free of vector bits; those that change the pass are set apart, one a pass bit.
  bool chooseDirections(unsigned passBits) {
    Subspace used, passSpan;
    for (unsigned i = 0; i < vectorBits; ++i)
      used.add(unitVector(i));
    for (unsigned i = 0; i < moving.size(); ++i) {
      BitVector m = unitVector(i);
      for (unsigned v : bitsOf(offset[i] & lowMask(vectorBits)))
        m ^= vector[v];
      BitVector o = offsetOf(m);
      if (used.add(o) || side.keepAll)
        (passSpan.add(o >> low) ? passes : rest).push_back(m);
    }
    if (passes.size() != passBits)
      return false;
    if (passBits == 0)
      return true;
    Span numbers;
    for (BitVector m : passes)
      numbers.add(offsetOf(m) >> low);
    for (BitVector &m : rest)
      for (unsigned j : bitsOf(numbers.reduce(offsetOf(m) >> low).second))
        m ^= passes[j];
    return true;
  }

  /// Log2 of the distinct constants that instructions xor into addresses, if the directions of `rest` in `chosen`
  /// number the matrices.  A row's address has their offsets, so an instruction's constant must not be added there.
  unsigned constantBits(const Columns &rest, BitVector chosen, BitVector addressSpan) const {
    for (unsigned i : bitsOf(chosen))
      addressSpan |= offsetOf(rest[i]);
    Subspace constants;
    for (unsigned i = 0; i < rest.size(); ++i)
      if (!(chosen >> i & 1))
        constants.add(offsetOf(rest[i]) & addressSpan);
    for (BitVector m : passes)
      constants.add(offsetOf(m) & addressSpan);
    return constants.dim();
  }

  /// `rest` and `passes` with as few common offset bits as possible, outside of what lanes and warps set.
  void separate(Columns &rest, Columns &passes) const {
    BitVector outside = lowMask(low) & ~out.addressSpan;
    for (unsigned i = 0; i < rest.size(); ++i) {
      BitVector bits = offsetOf(rest[i]) & outside;
      if (!bits)
        continue;
      BitVector pivot = unitVector(highestBit(bits));
      for (unsigned j = 0; j < rest.size(); ++j)
        if (j != i && offsetOf(rest[j]) & pivot)
          rest[j] ^= rest[i];
      for (BitVector &m : passes)
        if (offsetOf(m) & pivot)
          m ^= rest[i];
    }
  }

  /// Takes the halves (trans) and up to two matrix directions out of `rest`.
  bool chooseMatrices() {
    BitVector lanesOnly = out.addressSpan;
    if (trans) {
      if (rest.empty())
        return false;
      halves = rest[0];
      Columns others(std::span<const BitVector>(rest.data() + 1, rest.size() - 1));
      rest = others;
      out.addressSpan |= offsetOf(halves);
    }
    unsigned count = std::min(2u, rest.size());
    BitVector chosen = lowMask(count); // the lowest ones ..
    unsigned bits = constantBits(rest, chosen, out.addressSpan);
    Columns ideal(std::span<const BitVector>(rest.data() + count, rest.size() - count));
    if (bits > constantBits(ideal, 0, lanesOnly)) { // .. unless other ones cost fewer constants
      Columns cleanRest = rest, cleanPasses = passes;
      separate(cleanRest, cleanPasses);
      std::swap(passes, cleanPasses);
      bool better = false;
      for (unsigned i = 0; i < cleanRest.size(); ++i)
        for (unsigned j = i; j < cleanRest.size(); ++j) {
          BitVector pair = unitVector(i) | unitVector(j);
          if (std::popcount(pair) != int(count))
            continue;
          if (unsigned b = constantBits(cleanRest, pair, out.addressSpan); b < bits) {
            bits = b;
            chosen = pair;
            better = true;
          }
        }
      if (better)
        rest = cleanRest;
      else
        std::swap(passes, cleanPasses);
    }
    Columns others;
    for (unsigned i = 0; i < rest.size(); ++i)
      (chosen >> i & 1 ? out.matrices : others).push_back(rest[i]);
    rest = others;
    for (BitVector m : out.matrices)
      out.addressSpan |= offsetOf(m);
    if (!isStore(form.form))
      return true;
    Subspace rowSpan(out.lane); // two rows of one store must not coincide
    unsigned rows = out.lane.size() + out.matrices.size() + trans;
    for (BitVector m : out.matrices)
      rowSpan.add(offsetOf(m));
    if (trans)
      rowSpan.add(offsetOf(halves));
    return rowSpan.dim() == rows;
  }

  void countWavefronts() {
    Columns phase; // byte-address vectors that one phase spans
    if (matrix) {
      out.bytes = 4u << out.matrices.size();
      out.ideal = out.bytes / 4;
      phase = {4, 8};
      if (trans)
        phase.push_back(offsetOf(halves) << logBytes);
      for (unsigned j = trans ? 0 : 2; j < (trans ? 2u : laneBits); ++j)
        phase.push_back(out.lane[j] << logBytes);
    } else {
      out.bytes = 1u << (logBytes + form.k);
      out.ideal = activePhases(out.bytes, side.lanePredicate);
      for (unsigned b = 4; b < out.bytes; b *= 2)
        phase.push_back(b);
      for (unsigned j = 0; j < std::min(phaseLaneBits(out.bytes), out.lane.size()); ++j)
        if (!(side.lanePredicate >> j & 1))
          phase.push_back(out.lane[j] << logBytes);
    }
    out.wavefronts = out.ideal << logConflicts(phase);
  }

  /// Writes the directions, over register bits.
  void finish() {
    out.constants = (1u << constantBits(rest, 0, out.addressSpan)) - 1;
    auto overRegisters = [&](BitVector m) {
      BitVector mask = 0;
      for (unsigned i : bitsOf(m))
        mask |= unitVector(static_cast<unsigned>(moving[i]));
      return mask;
    };
    out.halves = overRegisters(halves);
    for (BitVector m : vector)
      out.vector.push_back(overRegisters(m));
    for (BitVector &m : out.matrices)
      m = overRegisters(m);
    for (const Columns *part : {&rest, &passes})
      for (BitVector m : *part)
        out.instruction.push_back(overRegisters(m));
  }

  const Form form;
  const SideVectors &side;
  const unsigned logBytes;
  const bool matrix, trans;
  BoundAccess &out;
  unsigned low = 0, vectorBits = 0;
  Columns moving, offset;
  Span span; ///< of `offset`
  Columns vector, rest, passes;
  BitVector halves = 0;
};

} // namespace

bool bindAccess(Form form, const SideVectors &side, unsigned logBytes, std::span<const BitVector> rows,
                unsigned passBits, BoundAccess &out) {
  return Binder(form, side, logBytes, out).run(rows, passBits);
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
