#include "compiler/layout/LinearLayout.h"

#include "support/Text.h"

#include <algorithm>
#include <cstring>

namespace kiln::layout {

std::string_view inDimName(InDim d) {
  constexpr std::string_view names[] = {"register", "lane", "warp", "block", "offset"};
  return names[index(d)];
}

std::string shapeText(std::span<const std::uint32_t> shape) {
  if (shape.empty())
    return "scalar";
  std::string out;
  for (std::uint32_t extent : shape)
    out += (out.empty() ? "" : "x") + std::to_string(extent);
  return out;
}

namespace {

/// log2 of each extent, or the diagnostic.
Status checkShape(std::span<const std::uint32_t> shape, unsigned char *logs) {
  if (shape.size() > maxDims)
    return Status::invalid(
        format("L18: a tensor of rank %zu exceeds the limit of %u dimensions", shape.size(), maxDims),
        "merge dimensions with a reshape");
  unsigned total = 0;
  for (unsigned d = 0; d < shape.size(); ++d) {
    if (!std::has_single_bit(shape[d])) {
      std::uint64_t next = std::bit_ceil(std::uint64_t(shape[d]));
      return Status::invalid(format("L01: extent %u of dimension %u is no power of two", shape[d], d),
                             format("pad dimension %u through the view to %llu", d, (unsigned long long)next));
    }
    logs[d] = static_cast<unsigned char>(std::countr_zero(shape[d]));
    total += logs[d];
  }
  if (total > maxTensorBits)
    return Status::invalid(format("L18: a tile of %s has 2^%u elements, the limit is 2^%u", shapeText(shape).c_str(),
                                  total, maxTensorBits),
                           "use a smaller tile");
  return {};
}

} // namespace

void LinearLayout::setShape(std::span<const unsigned char> logs) {
  numDims = static_cast<unsigned char>(logs.size());
  tensorBits = 0;
  for (unsigned d = 0; d < logs.size(); ++d) {
    logShape[d] = logs[d];
    tensorBits = static_cast<unsigned char>(tensorBits + logs[d]);
  }
}

void LinearLayout::append(InDim d, BitVector basis) {
  // Inputs are filled in order, so everything after d is still empty.
  unsigned at = start[index(d) + 1];
  assert(at < maxInputBits && at == start[numInDims]);
  bases[at] = basis;
  for (unsigned e = index(d) + 1; e <= numInDims; ++e)
    start[e] = static_cast<unsigned char>(at + 1);
}

Result<LinearLayout> LinearLayout::create(std::span<const std::uint32_t> shape, const Bases &given) {
  LinearLayout out;
  unsigned char logs[maxDims];
  KILN_TRY(checkShape(shape, logs));
  out.setShape({logs, shape.size()});
  const std::span<const BitVector> lists[] = {given.registers, given.lanes, given.warps, given.blocks, given.offsets};
  std::size_t total = 0;
  for (unsigned d = 0; d < numInDims; ++d) {
    total += lists[d].size();
    if (lists[d].size() > maxBitsPerInput)
      return Status::invalid(format("L18: %zu %s bases exceed the limit of %u", lists[d].size(),
                                    std::string(inDimName(InDim(d))).c_str(), maxBitsPerInput),
                             "use more warps or a smaller tile");
  }
  if (total > maxInputBits)
    return Status::invalid(format("L18: a layout with %zu bases exceeds the limit of %u", total, maxInputBits),
                           "use more warps or a smaller tile");
  if (!given.offsets.empty() && total != given.offsets.size())
    return Status::invalid("L17: a layout has offset bases in addition to register, lane, warp or block bases",
                           "use offset bases alone for a shared-memory layout");
  for (unsigned d = 0; d < numInDims; ++d) {
    for (unsigned i = 0; i < lists[d].size(); ++i) {
      BitVector basis = lists[d][i];
      if (basis >> out.tensorBits)
        return Status::invalid(format("L08: basis %s[%u] = %llu leaves the tensor of shape %s",
                                      std::string(inDimName(InDim(d))).c_str(), i, (unsigned long long)basis,
                                      shapeText(shape).c_str()),
                               format("use flat indices below %u", out.numElements()));
      out.append(InDim(d), basis);
    }
  }
  return out;
}

Coords LinearLayout::shape() const {
  Coords out;
  for (unsigned d = 0; d < numDims; ++d)
    out.push_back(shape(d));
  return out;
}

Coords LinearLayout::coords(BitVector flatIndex) const {
  Coords out(numDims, 0);
  for (unsigned d = numDims; d-- > 0;) {
    out[d] = static_cast<std::uint32_t>(flatIndex & lowMask(logShape[d]));
    flatIndex >>= logShape[d];
  }
  return out;
}

BitVector LinearLayout::flat(std::span<const std::uint32_t> coords) const {
  BitVector t = 0;
  for (unsigned d = 0; d < numDims; ++d)
    t = t << logShape[d] | coords[d];
  return t;
}

BitVector LinearLayout::apply(unsigned reg, unsigned lane, unsigned warp, unsigned block) const {
  const unsigned places[] = {reg, lane, warp, block};
  BitVector t = 0;
  for (InDim d : hardwareDims)
    t ^= layout::apply(columns(d), places[index(d)] & lowMask(bits(d)));
  return t;
}

bool LinearLayout::isPermutation() const {
  BitVector seen = 0;
  for (BitVector c : everyColumn()) {
    if (c & (c - 1) || c & seen)
      return false;
    seen |= c;
  }
  return true;
}

Status LinearLayout::checkDistributed() const {
  Span span(allColumns());
  if (span.dim() == tensorBits)
    return {};
  std::string missing;
  for (unsigned i : bitsOf(lowMask(tensorBits) & ~span.pivots()))
    missing += (missing.empty() ? "" : " ") + basisText(unitVector(i));
  return Status::invalid(format("L07: the bases cover 2^%u of the 2^%u elements of %s; missing coordinate bits: %s",
                                span.dim(), tensorBits, shapeText(shape()).c_str(), missing.c_str()),
                         "add a register basis for each missing bit");
}

Status LinearLayout::checkShared() const {
  auto rows = inverseRows(columns(InDim::Offset), tensorBits);
  return rows.ok() ? Status() : rows.takeStatus();
}

std::array<BitVector, numInDims> LinearLayout::freeMasks() const {
  std::array<BitVector, numInDims> out = {};
  Span span;
  for (unsigned d = 0; d < numInDims; ++d)
    for (unsigned i = 0; i < bits(InDim(d)); ++i)
      if (!span.add(column(InDim(d), i)))
        out[d] |= unitVector(i);
  return out;
}

BitVector LinearLayout::freeMask(InDim d) const {
  return freeMasks()[index(d)];
}

Columns LinearLayout::ownerMap() const {
  Columns out;
  for (unsigned i = 0; i < hardwareBits(); ++i)
    out.push_back(unitVector(i));
  // h with free bit j set: moving along the kernel vector whose highest bit is j clears it and keeps the element.
  for (BitVector k : kernel(allColumns())) {
    unsigned j = highestBit(k);
    out[j] = k ^ unitVector(j);
  }
  return out;
}

Result<Columns> LinearLayout::composeInverse(const LinearLayout &source) const {
  if (shape() != source.shape())
    return Status::invalid(
        format("L12: shapes differ: %s and %s", shapeText(source.shape()).c_str(), shapeText(shape()).c_str()),
        "reshape one of them");
  Span span(source.allColumns());
  Columns out;
  for (InDim d : hardwareDims) {
    for (unsigned i = 0; i < bits(d); ++i) {
      auto x = span.solve(column(d, i));
      if (!x)
        return Status::invalid(format("L07: the source does not hold basis %s[%u] = %s of the destination",
                                      std::string(inDimName(d)).c_str(), i, basisText(column(d, i)).c_str()),
                               "use a source layout that covers the tensor");
      out.push_back(*x);
    }
  }
  return out;
}

Result<LinearLayout> LinearLayout::product(const LinearLayout &high) const {
  if (numDims != high.numDims)
    return Status::invalid(format("L12: a product of layouts of ranks %u and %u", numDims, high.numDims),
                           "expand the smaller one");
  bool fits = tensorBits + high.tensorBits <= maxTensorBits && start[numInDims] + high.start[numInDims] <= maxInputBits;
  for (unsigned d = 0; d < numInDims; ++d)
    fits = fits && bits(InDim(d)) + high.bits(InDim(d)) <= maxBitsPerInput;
  if (!fits)
    return Status::invalid(format("L18: a product of 2^%u and 2^%u elements with %u bases, the limits are 2^%u and %u",
                                  tensorBits, high.tensorBits, start[numInDims] + high.start[numInDims], maxTensorBits,
                                  maxInputBits),
                           "use a smaller tile");
  LinearLayout out;
  unsigned char logs[maxDims];
  for (unsigned d = 0; d < numDims; ++d)
    logs[d] = static_cast<unsigned char>(logShape[d] + high.logShape[d]);
  out.setShape({logs, numDims});
  for (unsigned i = 0; i < numInDims; ++i) {
    for (BitVector c : columns(InDim(i)))
      out.append(InDim(i), out.flat(coords(c)));
    for (BitVector c : high.columns(InDim(i))) {
      Coords x = high.coords(c);
      for (unsigned d = 0; d < numDims; ++d)
        x[d] <<= logShape[d];
      out.append(InDim(i), out.flat(x));
    }
  }
  return out;
}

std::optional<LinearLayout> LinearLayout::divideLeft(const LinearLayout &low) const {
  if (numDims != low.numDims)
    return std::nullopt;
  LinearLayout out;
  unsigned char logs[maxDims];
  for (unsigned d = 0; d < numDims; ++d) {
    if (logShape[d] < low.logShape[d])
      return std::nullopt;
    logs[d] = static_cast<unsigned char>(logShape[d] - low.logShape[d]);
  }
  out.setShape({logs, numDims});
  for (unsigned n = 0; n < numInDims; ++n) {
    InDim in = InDim(n);
    if (bits(in) < low.bits(in))
      return std::nullopt;
    for (unsigned i = 0; i < bits(in); ++i) {
      Coords x = coords(column(in, i));
      if (i < low.bits(in)) {
        if (x != low.coords(low.column(in, i)))
          return std::nullopt;
        continue;
      }
      for (unsigned d = 0; d < numDims; ++d) {
        if (x[d] & lowMask(low.logShape[d]))
          return std::nullopt;
        x[d] >>= low.logShape[d];
      }
      out.append(in, out.flat(x));
    }
  }
  return out;
}

Result<LinearLayout> LinearLayout::transpose(std::span<const unsigned> perm) const {
  unsigned seen = 0;
  bool good = perm.size() == numDims;
  std::string list;
  for (unsigned p : perm) {
    list += (list.empty() ? "" : ", ") + std::to_string(p);
    good = good && p < numDims && !(seen >> p & 1);
    seen |= p < numDims ? 1u << p : 0;
  }
  if (!good)
    return Status::invalid(format("L06: perm = [%s] is no permutation of 0 .. %d", list.c_str(), int(numDims) - 1),
                           "name each dimension once");
  LinearLayout out;
  unsigned char logs[maxDims];
  for (unsigned d = 0; d < numDims; ++d)
    logs[d] = logShape[perm[d]];
  out.setShape({logs, numDims});
  for (unsigned n = 0; n < numInDims; ++n) {
    for (BitVector c : columns(InDim(n))) {
      Coords x = coords(c), y;
      for (unsigned p : perm)
        y.push_back(x[p]);
      out.append(InDim(n), out.flat(y));
    }
  }
  return out;
}

Result<LinearLayout> LinearLayout::reshape(std::span<const std::uint32_t> newShape) const {
  unsigned char logs[maxDims];
  KILN_TRY(checkShape(newShape, logs));
  LinearLayout out = *this;
  std::fill(std::begin(out.logShape), std::end(out.logShape), 0);
  out.setShape({logs, newShape.size()});
  if (out.tensorBits != tensorBits)
    return Status::invalid(format("L11: a reshape of %s to %s changes the number of elements from %u to %u",
                                  shapeText(shape()).c_str(), shapeText(newShape).c_str(), numElements(),
                                  out.numElements()),
                           "keep the product of the extents");
  return out;
}

Result<LinearLayout> LinearLayout::slice(unsigned dim) const {
  if (dim >= numDims)
    return Status::invalid(format("L10: slice dimension %u of a layout of rank %u", dim, numDims),
                           numDims ? format("use a dimension in 0 .. %u", numDims - 1) : "a scalar has no dimensions");
  LinearLayout out;
  unsigned char logs[maxDims];
  unsigned kept = 0;
  for (unsigned d = 0; d < numDims; ++d)
    if (d != dim)
      logs[kept++] = logShape[d];
  out.setShape({logs, kept});
  unsigned at = bitPosition(dim), width = logShape[dim];
  for (unsigned n = 0; n < numInDims; ++n) {
    for (BitVector c : columns(InDim(n))) {
      BitVector cut = (c & lowMask(at)) | c >> (at + width) << at;
      if (cut || InDim(n) != InDim::Register)
        out.append(InDim(n), cut);
    }
  }
  return out;
}

Result<LinearLayout> LinearLayout::expand(unsigned dim) const {
  if (dim > numDims)
    return Status::invalid(format("L10: a new dimension at position %u of a layout of rank %u", dim, numDims),
                           format("use a position in 0 .. %u", numDims));
  Coords extents;
  for (unsigned d = 0; d < numDims + 1u; ++d) {
    if (extents.size() == maxDims)
      return Status::invalid(
          format("L18: a tensor of rank %u exceeds the limit of %u dimensions", numDims + 1, maxDims),
          "merge dimensions with a reshape");
    extents.push_back(d == dim ? 1 : shape(d - (d > dim)));
  }
  return reshape(extents);
}

Result<LinearLayout> LinearLayout::join() const {
  if (numDims == maxDims || tensorBits == maxTensorBits || start[numInDims] == maxInputBits ||
      bits(InDim::Register) == maxBitsPerInput)
    return Status::invalid(
        format("L18: joining two tensors of shape %s exceeds %u dimensions, 2^%u elements or %u bases",
               shapeText(shape()).c_str(), maxDims, maxTensorBits, maxInputBits),
        "use a smaller tile");
  LinearLayout out;
  unsigned char logs[maxDims];
  std::copy_n(logShape, numDims, logs);
  logs[numDims] = 1;
  out.setShape({logs, numDims + 1u});
  out.append(InDim::Register, 1);
  for (unsigned n = 0; n < numInDims; ++n)
    for (BitVector c : columns(InDim(n)))
      out.append(InDim(n), c << 1);
  return out;
}

Result<LinearLayout> LinearLayout::split() const {
  unsigned along = 0;
  bool inRegister = false;
  for (unsigned n = 0; n < numInDims; ++n)
    for (BitVector c : columns(InDim(n)))
      if (c & 1) {
        ++along;
        inRegister = InDim(n) == InDim::Register && c == 1;
      }
  if (numDims == 0 || logShape[numDims - 1] != 1 || along != 1 || !inRegister)
    return Status::invalid(format("L11: cannot split %s: the last dimension must have extent 2 and lie in one register "
                                  "bit of its own",
                                  shapeText(shape()).c_str()),
                           "convert to a layout with sizePerThread 2 along the last dimension");
  LinearLayout out;
  out.setShape({logShape, numDims - 1u});
  for (unsigned n = 0; n < numInDims; ++n)
    for (BitVector c : columns(InDim(n)))
      if (c != 1)
        out.append(InDim(n), c >> 1);
  return out;
}

LinearLayout LinearLayout::withoutRegisterCopies() const {
  LinearLayout out;
  out.setShape({logShape, numDims});
  Span span;
  for (unsigned n = 0; n < numInDims; ++n)
    for (BitVector c : columns(InDim(n)))
      if (InDim(n) != InDim::Register || span.add(c))
        out.append(InDim(n), c);
  return out;
}

std::string LinearLayout::basisText(BitVector basis) const {
  std::string out;
  Coords x = coords(basis);
  for (unsigned d = 0; d < numDims; ++d)
    if (x[d])
      out += (out.empty() ? "" : "+") + std::string(1, static_cast<char>('i' + d)) + std::to_string(x[d]);
  return out.empty() ? "0" : out;
}

std::string LinearLayout::text() const {
  std::string out;
  for (unsigned n = 0; n < numInDims; ++n) {
    if (bits(InDim(n)) == 0)
      continue;
    out += (out.empty() ? "" : "; ") + std::string(inDimName(InDim(n))) + ":";
    for (BitVector c : columns(InDim(n)))
      out += " " + basisText(c);
  }
  return out;
}

std::size_t LinearLayout::hash() const {
  // FNV-1a over words: columns are few and small, so one multiplication a column mixes enough.
  std::uint64_t h = 0xcbf29ce484222325u;
  auto mix = [&](std::uint64_t v) { h = (h ^ v) * 0x100000001b3u; };
  mix(numDims);
  for (unsigned d = 0; d < numDims; ++d)
    mix(logShape[d]);
  for (unsigned n = 1; n <= numInDims; ++n)
    mix(start[n]);
  for (BitVector c : everyColumn())
    mix(c);
  return static_cast<std::size_t>(h ^ h >> 32);
}

bool operator==(const LinearLayout &a, const LinearLayout &b) {
  return a.numDims == b.numDims && std::equal(a.start, a.start + numInDims + 1, b.start) &&
         std::equal(a.logShape, a.logShape + a.numDims, b.logShape) &&
         std::equal(a.bases, a.bases + a.start[numInDims], b.bases);
}

bool broadcastIsFree(const LinearLayout &source, const LinearLayout &result, unsigned d) {
  auto from = source.slice(d), to = result.slice(d);
  return from.ok() && to.ok() && from->withoutRegisterCopies() == to->withoutRegisterCopies();
}

} // namespace kiln::layout
