#include "compiler/layout/Gf2.h"

#include "support/Text.h"

namespace kiln::layout {

unsigned rank(std::span<const BitVector> vectors) {
  return Span(vectors).dim();
}

Columns basis(std::span<const BitVector> vectors) {
  Span span;
  Columns out;
  for (BitVector v : vectors)
    if (span.add(v))
      out.push_back(v);
  return out;
}

Columns kernel(std::span<const BitVector> cols) {
  Span span;
  Columns out;
  for (unsigned j = 0; j < cols.size(); ++j) {
    auto [rest, made] = span.reduce(cols[j]);
    if (rest == 0)
      out.push_back(made | unitVector(j));
    span.add(cols[j]);
  }
  return out;
}

Columns intersect(std::span<const BitVector> a, std::span<const BitVector> b) {
  Columns both = basis(a);
  unsigned fromA = both.size();
  both.append(basis(b));
  Columns out;
  // A dependency between the two bases is a common vector; its part in a is independent for independent dependencies.
  for (BitVector k : kernel(both))
    out.push_back(layout::apply(std::span(both.data(), fromA), k & lowMask(fromA)));
  return basis(out);
}

Columns whereZero(std::span<const BitVector> vectors, std::span<const BitVector> masks) {
  Columns independent = basis(vectors);
  Columns values;
  for (BitVector v : independent)
    values.push_back(coordsOf(masks, v));
  Columns out;
  for (BitVector k : kernel(values))
    out.push_back(apply(independent, k));
  return basis(out);
}

Result<Columns> inverseRows(std::span<const BitVector> cols, unsigned n) {
  if (cols.size() != n || n > Columns::capacity())
    return Status::invalid(
        format("L17: a shared-memory layout must be a bijection; it has %zu offset bits for a tensor "
               "of %u bits",
               cols.size(), n),
        "give one offset basis for each bit of the tensor");
  Span span(cols);
  if (span.dim() != n || span.pivots() != lowMask(n))
    return Status::invalid(
        format("L17: a shared-memory layout must be a bijection; its bases have rank %u of %u bits", span.dim(), n),
        "replace the bases that are xors of others");
  Columns rows(n, 0);
  for (unsigned j = 0; j < n; ++j)
    for (unsigned i : bitsOf(*span.solve(unitVector(j))))
      rows[i] |= unitVector(j);
  return rows;
}

Columns compose(std::span<const BitVector> outer, std::span<const BitVector> inner) {
  Columns out;
  for (BitVector x : inner)
    out.push_back(apply(outer, x));
  return out;
}

std::optional<BitVector> functional(std::span<const BitVector> zeroOn, BitVector oneOn, unsigned n,
                                    std::span<const BitVector> prefer) {
  // Grow the kernel of the functional: everything offered joins unless oneOn would fall into it.
  Span zeros(zeroOn);
  auto rest = zeros.reduce(oneOn).first;
  if (rest == 0)
    return std::nullopt;
  // v joins iff oneOn stays outside span(zeros, v), that is, iff v's residual is not oneOn's residual.
  Span kernelSpan = zeros;
  auto offer = [&](BitVector v) {
    BitVector vRest = kernelSpan.reduce(v).first;
    if (vRest == 0 || vRest == rest)
      return;
    kernelSpan.add(vRest);
    rest = kernelSpan.reduce(oneOn).first;
  };
  for (BitVector v : prefer)
    offer(v);
  for (unsigned i = 0; i < n; ++i)
    offer(unitVector(i));
  // The kernel is now a hyperplane; its annihilator has one non-zero element m.  In the fully reduced basis every
  // coordinate but one (q) is a pivot, so row_p = e_p ^ c_p e_q and m = e_q ^ xor of c_p e_p.
  BitVector q = lowMask(n) & ~kernelSpan.pivots();
  BitVector mask = q;
  for (unsigned p : bitsOf(kernelSpan.pivots()))
    if (kernelSpan.row(p) & q)
      mask |= unitVector(p);
  return mask;
}

} // namespace kiln::layout
