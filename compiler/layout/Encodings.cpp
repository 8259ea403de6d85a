#include "compiler/layout/Encodings.h"

#include "compiler/layout/Checks.h"
#include "support/Text.h"

#include <algorithm>
#include <numeric>

namespace kiln::layout {

EncodingRef::EncodingRef(const Encoding &encoding) : levels(encoding.depth()) {
  // The limit also bounds the recursion of lowering, comparing, printing and destroying.
  if (levels < maxEncodingDepth)
    target = std::make_shared<const Encoding>(encoding);
  else
    refused = true;
}

bool operator==(const EncodingRef &a, const EncodingRef &b) {
  if (a.target == b.target)
    return a.refused == b.refused;
  return a.target && b.target && *a.target == *b.target;
}

unsigned Encoding::depth() const {
  return std::visit(
      [](const auto &k) -> unsigned {
        if constexpr (requires { k.parent; })
          return 1 + k.parent.depth();
        else
          return 1;
      },
      kind);
}

std::string_view Encoding::keyword() const {
  return std::visit([](const auto &k) { return k.keyword; }, kind);
}

namespace {

Status checkParent(std::string_view keyword, const EncodingRef &parent) {
  if (parent.get())
    return {};
  if (parent.tooDeep())
    return Status::invalid(format("L00: encodings nest %u deep, the limit is %u", parent.depth() + 1, maxEncodingDepth),
                           "fold the inner slices and transposes into one 'linear' encoding");
  return Status::invalid(format("L00: %s has no parent encoding", std::string(keyword).c_str()),
                         "give it one of the encodings blocked, mma, dot, slice, transposed, linear");
}

/// Deals the bits of each dimension from low to high.
class Dealer {
public:
  static Result<Dealer> create(std::span<const std::int64_t> shape, const std::optional<CtaSplit> &cta);

  /// The next `count` bits of dimension d go to `where`.
  void take(InDim where, unsigned d, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      unsigned bit = next[d]++;
      if (bit < inBlock[d])
        put(where, tensor.unit(d, bit));
      else if (where != InDim::Register)
        put(where, 0);
    }
  }
  void zero(InDim where, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      put(where, 0);
  }
  /// Everything left over becomes registers.
  void repeat(std::span<const std::int64_t> order) {
    for (std::int64_t d : order)
      while (next[d] < inBlock[d])
        take(InDim::Register, static_cast<unsigned>(d), 1);
  }
  /// Bits of dimension d that one block holds.
  unsigned bitsOfDim(unsigned d) const { return inBlock[d]; }
  Result<LinearLayout> done();

private:
  void put(InDim where, BitVector basis) {
    ++wanted[index(where)];
    if (columns[index(where)].size() < maxBitsPerInput)
      columns[index(where)].push_back(basis);
  }

  LinearLayout tensor; // only its shape
  CtaSplit cta;
  InlineVector<unsigned, maxDims> inBlock, next, blockBits;
  std::array<Columns, numHardwareDims> columns;
  std::array<unsigned, numHardwareDims> wanted = {};
};

Result<Dealer> Dealer::create(std::span<const std::int64_t> shape, const std::optional<CtaSplit> &cta) {
  Dealer out;
  KILN_ASSIGN(Coords extents, checkExtents(shape));
  KILN_ASSIGN(out.tensor, LinearLayout::create(extents, {}));
  std::size_t rank = shape.size();
  out.next.resize(static_cast<unsigned>(rank), 0);
  for (unsigned d = 0; d < rank; ++d)
    out.inBlock.push_back(out.tensor.log2Shape(d));
  if (!cta)
    return out;
  out.cta = *cta;
  KILN_TRY(checkLength("cta.ctas", cta->ctas, rank));
  KILN_TRY(checkLength("cta.split", cta->split, rank));
  KILN_ASSIGN(out.cta.order, permutationOf("cta.order", cta->order, lastDimFirst(rank), rank));
  for (unsigned d = 0; d < rank; ++d) {
    KILN_ASSIGN(unsigned ctas, log2Of("L03", "cta.ctas", cta->ctas[d]));
    KILN_ASSIGN(unsigned split, log2Of("L03", "cta.split", cta->split[d]));
    if (split > ctas)
      return Status::invalid(
          format("L07: cta.split = %lld along dimension %u exceeds cta.ctas = %lld: some parts would "
                 "have no block",
                 static_cast<long long>(cta->split[d]), d, static_cast<long long>(cta->ctas[d])),
          format("use cta.split <= %lld", static_cast<long long>(cta->ctas[d])));
    out.blockBits.push_back(ctas);
    out.inBlock[d] -= std::min(split, out.inBlock[d]);
  }
  return out;
}

Result<LinearLayout> Dealer::done() {
  if (!blockBits.empty()) {
    // Blocks take the top bits; blocks beyond the split hold copies.
    for (std::int64_t d64 : cta.order) {
      unsigned d = static_cast<unsigned>(d64), top = inBlock[d];
      for (unsigned i = 0; i < blockBits[d]; ++i)
        put(InDim::Block, top + i < tensor.log2Shape(d) ? tensor.unit(d, top + i) : 0);
    }
  }
  for (InDim d : hardwareDims)
    if (wanted[index(d)] > maxBitsPerInput)
      return Status::invalid(format("L18: 2^%u %ss exceed the limit of 2^%u", wanted[index(d)],
                                    std::string(inDimName(d)).c_str(), maxBitsPerInput),
                             "use smaller counts");
  return LinearLayout::create(tensor.shape(), {columns[0], columns[1], columns[2], columns[3], {}});
}

using Logs = InlineVector<unsigned, maxDims>;

Result<Logs> logsOf(std::string_view name, const Sizes &list, std::size_t rank) {
  KILN_TRY(checkLength(name, list, rank));
  Logs out;
  for (std::int64_t x : list) {
    KILN_ASSIGN(unsigned log, log2Of("L03", name, x));
    out.push_back(log);
  }
  return out;
}

struct BlockedLogs {
  Logs registers, lanes, warps;
  Sizes order;
};

/// The parameters of a blocked encoding, checked; rank <= maxDims.
Result<BlockedLogs> checkBlocked(const Blocked &e, std::size_t rank) {
  BlockedLogs out;
  KILN_ASSIGN(out.registers, logsOf("sizePerThread", e.sizePerThread, rank));
  KILN_ASSIGN(out.lanes, logsOf("threadsPerWarp", e.threadsPerWarp, rank));
  KILN_ASSIGN(out.warps, logsOf("warpsPerCTA", e.warpsPerCTA, rank));
  KILN_ASSIGN(out.order, permutationOf("order", e.order, lastDimFirst(rank), rank));
  unsigned lanes = std::accumulate(out.lanes.begin(), out.lanes.end(), 0u);
  if (lanes == laneBits)
    return out;
  // Propose the nearest list that fits: grow or shrink along the fastest dimensions.
  Logs fits = out.lanes;
  for (std::int64_t d : out.order) {
    unsigned shrink = lanes > laneBits ? std::min(lanes - laneBits, fits[d]) : 0;
    fits[d] -= shrink;
    lanes -= shrink;
  }
  if (rank && lanes < laneBits)
    fits[out.order[0]] += laneBits - lanes;
  Sizes proposal;
  for (unsigned f : fits)
    proposal.push_back(std::int64_t(1) << f);
  unsigned product = std::accumulate(out.lanes.begin(), out.lanes.end(), 0u);
  return Status::invalid(
      format("L04: threadsPerWarp = %s has 2^%u lanes, a warp has 32", listText(e.threadsPerWarp).c_str(), product),
      rank ? "use for example threadsPerWarp = " + listText(proposal)
           : std::string("give the tensor a dimension; a scalar has no threads to count"));
}

Status checkRank(std::span<const std::int64_t> shape) {
  if (shape.size() <= maxDims)
    return {};
  return checkExtents(shape).takeStatus();
}

Result<LinearLayout> lowerKind(const Blocked &e, std::span<const std::int64_t> shape) {
  KILN_ASSIGN(BlockedLogs logs, checkBlocked(e, shape.size()));
  KILN_ASSIGN(Dealer deal, Dealer::create(shape, e.cta));
  for (std::int64_t d : logs.order)
    deal.take(InDim::Register, static_cast<unsigned>(d), logs.registers[d]);
  for (std::int64_t d : logs.order)
    deal.take(InDim::Lane, static_cast<unsigned>(d), logs.lanes[d]);
  for (std::int64_t d : logs.order)
    deal.take(InDim::Warp, static_cast<unsigned>(d), logs.warps[d]);
  deal.repeat(logs.order);
  return deal.done();
}

struct MmaLogs {
  Logs warps;
  Sizes warpOrder, batch;
  unsigned M = 0, N = 0;
  unsigned moreN = 0; // log2(instrN / 8)
};

Result<MmaLogs> checkMma(const Mma &e, std::size_t rank) {
  MmaLogs out;
  if (e.version != 2 && e.version != 3)
    return Status::invalid(format("L00: mma version %lld is unknown", static_cast<long long>(e.version)),
                           "use version 2 (mma.sync) or 3 (wgmma)");
  if (rank < 2)
    return Status::invalid(format("L02: an mma layout has dimensions M and N, the tensor has rank %zu", rank),
                           "expand the tensor to rank 2, or use a slice of the mma encoding");
  KILN_ASSIGN(out.warps, logsOf("warpsPerCTA", e.warpsPerCTA, rank));
  out.M = static_cast<unsigned>(rank) - 2;
  out.N = out.M + 1;
  Sizes standard = e.version == 2 ? Sizes{out.N, out.M} : Sizes{out.M, out.N};
  for (unsigned d = out.M; d-- > 0;) {
    out.batch.push_back(d);
    standard.push_back(d);
  }
  KILN_ASSIGN(out.warpOrder, permutationOf("warpOrder", e.warpOrder, standard, rank));
  if (e.version == 3 && out.warps[out.M] < 2)
    return Status::invalid(format("L15: warpsPerCTA = %s has %lld warps along M; wgmma needs a multiple of 4",
                                  listText(e.warpsPerCTA).c_str(), static_cast<long long>(e.warpsPerCTA[out.M])),
                           "use 4 or more warps along M, or mma version 2");
  if (e.instrN < 8 || e.instrN > 256)
    return Status::invalid(format("L15: instrN = %lld is outside 8 .. 256", static_cast<long long>(e.instrN)),
                           "use 8, 16, 32, 64, 128 or 256");
  KILN_ASSIGN(unsigned logN, log2Of("L03", "instrN", e.instrN));
  out.moreN = logN - 3;
  return out;
}

/// Warp bits in order; dimensions outside `along` replicate.  The two bits of a warpgroup always run along M, first.
void dealWarps(Dealer &deal, const Mma &e, const MmaLogs &logs, unsigned along) {
  Logs left = logs.warps;
  if (e.version == 3) {
    deal.take(InDim::Warp, logs.M, 2);
    left[logs.M] -= 2;
  }
  for (std::int64_t d : logs.warpOrder) {
    if (along >> d & 1)
      deal.take(InDim::Warp, static_cast<unsigned>(d), left[d]);
    else
      deal.zero(InDim::Warp, left[d]);
  }
}

Sizes repetitionOrder(unsigned first, unsigned second, const Sizes &batch) {
  Sizes out = {first, second};
  out.insert(out.end(), batch.begin(), batch.end());
  return out;
}

Result<LinearLayout> lowerKind(const Mma &e, std::span<const std::int64_t> shape) {
  KILN_ASSIGN(MmaLogs logs, checkMma(e, shape.size()));
  KILN_ASSIGN(Dealer deal, Dealer::create(shape, e.cta));
  unsigned M = logs.M, N = logs.N;
  deal.take(InDim::Register, N, 1);
  deal.take(InDim::Lane, N, 2);
  deal.take(InDim::Lane, M, 3);
  deal.take(InDim::Register, M, 1);
  deal.take(InDim::Register, N, logs.moreN);
  dealWarps(deal, e, logs, ~0u);
  deal.repeat(repetitionOrder(N, M, logs.batch));
  return deal.done();
}

Result<LinearLayout> lowerOperandOfBlocked(const DotOperand &e, const Blocked &parent,
                                           std::span<const std::int64_t> shape) {
  std::size_t rank = shape.size();
  if (rank < 2)
    return Status::invalid(format("L02: a dot operand has two dimensions, the tensor has rank %zu", rank),
                           "expand the tensor to rank 2");
  KILN_ASSIGN(BlockedLogs logs, checkBlocked(parent, rank));
  KILN_ASSIGN(Dealer deal, Dealer::create(shape, e.cta));
  unsigned K = static_cast<unsigned>(e.op == 0 ? rank - 1 : rank - 2);
  deal.take(InDim::Register, K, deal.bitsOfDim(K));
  const Logs *counts[] = {&logs.registers, &logs.lanes, &logs.warps};
  for (InDim where : {InDim::Register, InDim::Lane, InDim::Warp}) {
    for (std::int64_t d : logs.order) {
      unsigned count = (*counts[index(where)])[d];
      if (d != K)
        deal.take(where, static_cast<unsigned>(d), count);
      else if (where != InDim::Register)
        deal.zero(where, count);
    }
  }
  deal.repeat(logs.order);
  return deal.done();
}

Result<LinearLayout> lowerKind(const DotOperand &e, std::span<const std::int64_t> shape) {
  KILN_TRY(checkParent(e.keyword, e.parent));
  if (e.op != 0 && e.op != 1)
    return Status::invalid(format("L09: dot operand op = %lld", static_cast<long long>(e.op)), "use 0 (A) or 1 (B)");
  KILN_ASSIGN(unsigned kBits, log2Of("L09", "kWidth", e.kWidth));
  if (const auto *blocked = std::get_if<Blocked>(&e.parent.get()->kind))
    return lowerOperandOfBlocked(e, *blocked, shape);
  const auto *mma = std::get_if<Mma>(&e.parent.get()->kind);
  if (!mma)
    return Status::invalid(
        format("L00: a dot operand of '%s' is unknown", std::string(e.parent.get()->keyword()).c_str()),
        "use a parent of kind mma or blocked");
  KILN_ASSIGN(MmaLogs logs, checkMma(*mma, shape.size()));
  if (mma->version == 3 && e.op == 1)
    return Status::invalid("L09: wgmma (mma version 3) reads operand B from shared memory only",
                           "keep operand B in a shared buffer with a tma encoding");
  KILN_ASSIGN(Dealer deal, Dealer::create(shape, e.cta));
  unsigned M = logs.M, N = logs.N;
  unsigned batch = (1u << M) - 1; // dimensions before M
  if (e.op == 0) {                // M x K: the last dimension is K
    deal.take(InDim::Register, N, kBits);
    deal.take(InDim::Lane, N, 2);
    deal.take(InDim::Lane, M, 3);
    deal.take(InDim::Register, M, 1);
    deal.take(InDim::Register, N, 1);
    dealWarps(deal, *mma, logs, batch | 1u << M);
    deal.repeat(repetitionOrder(N, M, logs.batch));
  } else { // K x N
    deal.take(InDim::Register, M, kBits);
    deal.take(InDim::Lane, M, 2);
    deal.take(InDim::Lane, N, 3);
    deal.take(InDim::Register, M, 1);
    deal.take(InDim::Register, N, logs.moreN);
    dealWarps(deal, *mma, logs, batch | 1u << N);
    deal.repeat(repetitionOrder(M, N, logs.batch));
  }
  return deal.done();
}

Result<LinearLayout> lowerKind(const Slice &e, std::span<const std::int64_t> shape) {
  KILN_TRY(checkParent(e.keyword, e.parent));
  auto rank = static_cast<std::int64_t>(shape.size());
  if (e.dim < 0 || e.dim > rank)
    return Status::invalid(format("L10: slice dimension %lld of a parent of rank %lld", static_cast<long long>(e.dim),
                                  static_cast<long long>(rank + 1)),
                           format("use a dimension in 0 .. %lld", static_cast<long long>(rank)));
  // The parent's extent along the deleted dimension does not matter, unless its bases are bound to one.
  std::int64_t extent = 1;
  if (auto bound = boundShape(*e.parent.get()); bound && static_cast<std::size_t>(e.dim) < bound->size())
    extent = (*bound)[e.dim];
  Sizes full(shape.begin(), shape.end());
  full.insert(full.begin() + e.dim, extent);
  KILN_ASSIGN(LinearLayout parent, lower(*e.parent.get(), full));
  return parent.slice(static_cast<unsigned>(e.dim));
}

Result<LinearLayout> lowerKind(const Transposed &e, std::span<const std::int64_t> shape) {
  KILN_TRY(checkParent(e.keyword, e.parent));
  KILN_TRY(checkLength("perm", e.perm, shape.size()));
  KILN_ASSIGN(Sizes perm, permutationOf("perm", e.perm, lastDimFirst(shape.size()), shape.size()));
  Sizes inner(shape.size());
  InlineVector<unsigned, maxDims> dims;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    inner[perm[i]] = shape[i];
    dims.push_back(static_cast<unsigned>(perm[i]));
  }
  KILN_ASSIGN(LinearLayout parent, lower(*e.parent.get(), inner));
  return parent.transpose(dims);
}

Result<LinearLayout> lowerKind(const Linear &e, std::span<const std::int64_t> shape) {
  KILN_ASSIGN(Coords extents, checkExtents(shape));
  if (!e.shape.empty() && !std::equal(shape.begin(), shape.end(), e.shape.begin(), e.shape.end()))
    return Status::invalid(format("L12: a linear encoding of shape %s is used on a tensor of %s",
                                  shapeText(e.shape).c_str(), shapeText(shape).c_str()),
                           "give bases for this shape");
  if (e.lanes.size() != laneBits)
    return Status::invalid(format("L04: %zu lane bases, the 32 lanes of a warp need 5", e.lanes.size()),
                           "add lane bases; zero bases replicate");
  KILN_ASSIGN(LinearLayout tensor, LinearLayout::create(extents, {}));
  std::array<Columns, numHardwareDims> columns;
  const std::vector<Sizes> *lists[] = {&e.registers, &e.lanes, &e.warps, &e.blocks};
  for (InDim in : hardwareDims) {
    const auto &list = *lists[index(in)];
    if (list.size() > maxBitsPerInput)
      return Status::invalid(format("L18: %zu %s bases exceed the limit of %u", list.size(),
                                    std::string(inDimName(in)).c_str(), maxBitsPerInput),
                             "use more warps or a smaller tile");
    for (std::size_t i = 0; i < list.size(); ++i) {
      KILN_TRY(checkLength(format("basis %s[%zu]", std::string(inDimName(in)).c_str(), i), list[i], shape.size()));
      Coords at;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        if (list[i][d] < 0 || list[i][d] >= shape[d])
          return Status::invalid(format("L08: basis %s[%zu] = %s leaves the tensor: extent %lld along dimension %zu",
                                        std::string(inDimName(in)).c_str(), i, listText(list[i]).c_str(),
                                        static_cast<long long>(shape[d]), d),
                                 format("use a coordinate in 0 .. %lld", static_cast<long long>(shape[d] - 1)));
        at.push_back(static_cast<std::uint32_t>(list[i][d]));
      }
      columns[index(in)].push_back(tensor.flat(at));
    }
  }
  KILN_ASSIGN(LinearLayout out, LinearLayout::create(extents, {columns[0], columns[1], columns[2], columns[3], {}}));
  KILN_TRY(out.checkDistributed());
  return out;
}

} // namespace

Result<LinearLayout> lower(const Encoding &encoding, std::span<const std::int64_t> shape) {
  KILN_TRY(checkRank(shape));
  return std::visit([&](const auto &k) { return lowerKind(k, shape); }, encoding.kind);
}

std::optional<Sizes> boundShape(const Encoding &encoding) {
  if (const auto *linear = std::get_if<Linear>(&encoding.kind)) {
    if (linear->shape.empty())
      return std::nullopt;
    return linear->shape;
  }
  if (const auto *slice = std::get_if<Slice>(&encoding.kind); slice && slice->parent.get()) {
    auto shape = boundShape(*slice->parent.get());
    if (!shape || slice->dim < 0 || static_cast<std::size_t>(slice->dim) >= shape->size())
      return std::nullopt;
    shape->erase(shape->begin() + slice->dim);
    return shape;
  }
  if (const auto *transposed = std::get_if<Transposed>(&encoding.kind); transposed && transposed->parent.get()) {
    auto shape = boundShape(*transposed->parent.get());
    if (!shape || shape->size() != transposed->perm.size())
      return std::nullopt;
    Sizes out;
    for (std::int64_t p : transposed->perm) {
      if (p < 0 || static_cast<std::size_t>(p) >= shape->size())
        return std::nullopt;
      out.push_back((*shape)[p]);
    }
    return out;
  }
  return std::nullopt;
}

Encoding asLinear(const LinearLayout &layout) {
  Linear out;
  std::vector<Sizes> *lists[] = {&out.registers, &out.lanes, &out.warps, &out.blocks};
  for (InDim in : hardwareDims)
    for (BitVector c : layout.columns(in)) {
      Coords x = layout.coords(c);
      lists[index(in)]->emplace_back(x.begin(), x.end());
    }
  Coords shape = layout.shape();
  out.shape.assign(shape.begin(), shape.end());
  return out;
}

bool isInstructionOperand(const Encoding &encoding) {
  if (const auto *transposed = std::get_if<Transposed>(&encoding.kind)) // keeps its registers
    return transposed->parent.get() && isInstructionOperand(*transposed->parent.get());
  const auto *dot = std::get_if<DotOperand>(&encoding.kind);
  return dot && dot->parent.get() && std::holds_alternative<Mma>(dot->parent.get()->kind);
}

} // namespace kiln::layout
