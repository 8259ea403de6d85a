#include "compiler/layout/SharedEncodings.h"

#include "compiler/layout/Checks.h"
#include "support/Text.h"

namespace kiln::layout {

std::string_view SharedEncoding::keyword() const {
  return std::visit([](const auto &k) { return k.keyword; }, kind);
}

namespace {

/// The tensor's bits split into column bits (order[0]) and row bits (the other dimensions in order), low bits first.
struct Matrix {
  LinearLayout tensor; // only its shape
  unsigned col = 0, colBits = 0;
  Columns rows;

  BitVector colUnit(unsigned i) const { return tensor.unit(col, i); }
};

Result<Matrix> matrixOf(const Sizes &order, std::span<const std::int64_t> shape) {
  Matrix out;
  KILN_ASSIGN(Coords extents, checkExtents(shape));
  if (shape.empty())
    return Status::invalid("L02: a shared buffer of rank 0", "give the buffer at least one dimension");
  KILN_ASSIGN(Sizes dims, permutationOf("order", order, lastDimFirst(shape.size()), shape.size()));
  KILN_ASSIGN(out.tensor, LinearLayout::create(extents, {}));
  out.col = static_cast<unsigned>(dims[0]);
  out.colBits = out.tensor.log2Shape(out.col);
  for (std::size_t i = 1; i < dims.size(); ++i)
    for (unsigned b = 0; b < out.tensor.log2Shape(static_cast<unsigned>(dims[i])); ++b)
      out.rows.push_back(out.tensor.unit(static_cast<unsigned>(dims[i]), b));
  return out;
}

Result<LinearLayout> finish(const Matrix &m, const Columns &offsets) {
  return LinearLayout::create(m.tensor.shape(), {{}, {}, {}, {}, offsets});
}

Result<LinearLayout> lowerKind(const Swizzled &e, std::span<const std::int64_t> shape, unsigned) {
  KILN_ASSIGN(unsigned vec, log2Of("L14", "vec", e.vec));
  KILN_ASSIGN(unsigned perPhase, log2Of("L14", "perPhase", e.perPhase));
  KILN_ASSIGN(unsigned phases, log2Of("L14", "maxPhase", e.maxPhase));
  KILN_ASSIGN(Matrix m, matrixOf(e.order, shape));
  if (vec + phases > m.colBits)
    return Status::invalid(
        format("L14: vec * maxPhase = 2^%u exceeds the row of %u elements", vec + phases, 1u << m.colBits),
        vec <= m.colBits ? format("use maxPhase <= %u", 1u << (m.colBits - vec))
                         : format("use vec <= %u and maxPhase = 1", 1u << m.colBits));
  Columns offsets;
  for (unsigned i = 0; i < m.colBits; ++i)
    offsets.push_back(m.colUnit(i));
  for (unsigned i = 0; i < m.rows.size(); ++i) {
    bool swizzles = i >= perPhase && i < perPhase + phases;
    offsets.push_back(m.rows[i] ^ (swizzles ? m.colUnit(vec + i - perPhase) : 0));
  }
  return finish(m, offsets);
}

Result<LinearLayout> lowerKind(const Tma &e, std::span<const std::int64_t> shape, unsigned bits) {
  KILN_ASSIGN(Matrix m, matrixOf(e.order, shape));
  Columns offsets;
  std::int64_t rowBytes = std::int64_t(storageBytes(bits)) << m.colBits;
  if (e.swizzle != 0 && e.swizzle != 32 && e.swizzle != 64 && e.swizzle != 128)
    return Status::invalid(format("L14: swizzle = %lld bytes", static_cast<long long>(e.swizzle)),
                           "use 0, 32, 64 or 128");
  if (e.swizzle > rowBytes) {
    std::int64_t largest = rowBytes >= 64 ? 64 : rowBytes >= 32 ? 32 : 0;
    return Status::invalid(format("L14: swizzle = %lld needs an innermost extent of at least %lld bytes (its power of "
                                  "two), it has %lld",
                                  static_cast<long long>(e.swizzle), static_cast<long long>(e.swizzle),
                                  static_cast<long long>(rowBytes)),
                           format("the largest legal swizzle is %lld", static_cast<long long>(largest)));
  }
  if (e.swizzle == 0) {
    for (unsigned i = 0; i < m.colBits; ++i)
      offsets.push_back(m.colUnit(i));
    offsets.append(m.rows);
    return finish(m, offsets);
  }
  // Columns of [rows][S bytes]; address bit 7 + j, a bit of the row (of the column where there are fewer than 8 rows),
  // adds 16-byte unit bit j.
  unsigned logS = static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(e.swizzle)));
  unsigned logBytes = static_cast<unsigned>(std::countr_zero(storageBytes(bits))), inner = logS - logBytes;
  unsigned granuleBits = logS - 4;
  for (unsigned i = 0; i < inner; ++i)
    offsets.push_back(m.colUnit(i));
  auto add = [&](BitVector unit) {
    int j = static_cast<int>(logBytes + offsets.size()) - 7;
    bool swizzles = j >= 0 && j < static_cast<int>(granuleBits);
    offsets.push_back(unit ^ (swizzles ? m.colUnit(inner - granuleBits + static_cast<unsigned>(j)) : 0));
  };
  for (BitVector row : m.rows)
    add(row);
  for (unsigned i = inner; i < m.colBits; ++i)
    add(m.colUnit(i));
  return finish(m, offsets);
}

Result<LinearLayout> lowerKind(const Padded &e, std::span<const std::int64_t> shape, unsigned) {
  KILN_ASSIGN(unsigned interval, log2Of("L03", "interval", e.interval));
  KILN_ASSIGN(unsigned pad, log2Of("L03", "pad", e.pad));
  if (interval > maxTensorBits || pad > maxTensorBits)
    return Status::invalid(
        format("L18: interval = 2^%u or pad = 2^%u exceeds 2^%u elements", interval, pad, maxTensorBits),
        "use an interval of one row and a pad of 16 bytes");
  return lowerKind(Swizzled{.order = e.order}, shape, 0);
}

Result<LinearLayout> lowerKind(const SharedLinear &e, std::span<const std::int64_t> shape, unsigned) {
  KILN_ASSIGN(Matrix m, matrixOf({}, shape));
  Columns offsets;
  if (e.offsets.size() > maxBitsPerInput)
    return Status::invalid(format("L18: %zu offset bases exceed the limit of %u", e.offsets.size(), maxBitsPerInput),
                           "use a smaller buffer");
  for (std::size_t i = 0; i < e.offsets.size(); ++i) {
    KILN_TRY(checkLength(format("basis offset[%zu]", i), e.offsets[i], shape.size()));
    Coords at;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (e.offsets[i][d] < 0 || e.offsets[i][d] >= shape[d])
        return Status::invalid(format("L08: basis offset[%zu] = %s leaves the tensor: extent %lld along dimension %zu",
                                      i, listText(e.offsets[i]).c_str(), static_cast<long long>(shape[d]), d),
                               format("use a coordinate in 0 .. %lld", static_cast<long long>(shape[d] - 1)));
      at.push_back(static_cast<std::uint32_t>(e.offsets[i][d]));
    }
    offsets.push_back(m.tensor.flat(at));
  }
  KILN_ASSIGN(LinearLayout out, finish(m, offsets));
  KILN_TRY(out.checkShared());
  return out;
}

} // namespace

Result<LinearLayout> lowerShared(const SharedEncoding &encoding, std::span<const std::int64_t> shape, unsigned bits) {
  KILN_TRY(checkElementBits(bits));
  return std::visit([&](const auto &k) { return lowerKind(k, shape, bits); }, encoding.kind);
}

std::uint64_t paddedOffset(const SharedEncoding &encoding, std::uint64_t offset) {
  if (const auto *padded = std::get_if<Padded>(&encoding.kind))
    return offset + offset / static_cast<std::uint64_t>(padded->interval) * static_cast<std::uint64_t>(padded->pad);
  return offset;
}

unsigned baseAlignment(const SharedEncoding &encoding) {
  if (const auto *tma = std::get_if<Tma>(&encoding.kind))
    return tma->swizzle ? 8u * static_cast<unsigned>(tma->swizzle) : 128u;
  return 16;
}

} // namespace kiln::layout
