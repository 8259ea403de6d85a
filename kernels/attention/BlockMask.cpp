#include "kernels/attention/BlockMask.h"

#include <algorithm>

namespace kiln::kernels {

Status checkBlockSize(std::string_view operation, const BlockSize &block) {
  constexpr std::int64_t unit = 16, most = 1 << 16;
  for (const auto &[name, size] : {std::pair("rows", block.rows), std::pair("keys", block.keys)})
    if (size < unit || size > most || size % unit)
      return Status::invalid(std::string(operation) + ": blocks of " + std::to_string(size) + " " + name +
                                 ": a multiple of 16 from 16 to 65536",
                             "give 128, which is fast for most head dims");
  return {};
}

Result<BlockMaskOnHost> BlockMaskOnHost::from(const BlockMaskExtents &extents, const BlockSize &block,
                                              const Predicate &sees) {
  return fromRows(extents, block, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::span<std::uint8_t> seen) {
    for (std::size_t j = 0; j < seen.size(); ++j)
      seen[j] = sees(b, h, i, static_cast<std::int64_t>(j));
  });
}

Result<BlockMaskOnHost> BlockMaskOnHost::fromRows(const BlockMaskExtents &extents, const BlockSize &block,
                                                  const RowPredicate &row) {
  KILN_TRY(checkBlockSize("block mask", block));
  BlockMaskOnHost out;
  out.extents = extents, out.block = block;
  std::vector<std::uint8_t> seen(static_cast<std::size_t>(extents.keys));
  for (std::int64_t b = 0; b < extents.batch; ++b)
    for (std::int64_t h = 0; h < extents.heads; ++h)
      for (std::int64_t row0 = 0; row0 < extents.queries; row0 += block.rows) {
        const std::int64_t endRow = std::min(row0 + block.rows, extents.queries);
        std::vector<std::int64_t> counts(static_cast<std::size_t>(out.keyBlocks()));
        for (std::int64_t i = row0; i < endRow; ++i) {
          row(b, h, i, seen);
          for (std::size_t j = 0; j < seen.size(); ++j)
            counts[j / static_cast<std::size_t>(block.keys)] += seen[j] != 0;
        }
        for (std::size_t at = 0; at < counts.size(); ++at) {
          const std::int64_t key0 = static_cast<std::int64_t>(at) * block.keys,
                             all = (endRow - row0) * (std::min(key0 + block.keys, extents.keys) - key0);
          out.kinds.push_back(counts[at] == 0 ? Kind::Hidden : counts[at] == all ? Kind::Full : Kind::Partial);
        }
      }
  return out;
}

Result<BlockMaskOnHost> BlockMaskOnHost::from(const BlockMaskExtents &e, const BlockSize &block,
                                              std::span<const std::uint8_t> matrix) {
  const std::int64_t wanted = e.batch * e.heads * e.queries * e.keys;
  if (std::ssize(matrix) != wanted)
    return Status::invalid("a mask of " + std::to_string(matrix.size()) + " elements for " + std::to_string(e.batch) +
                               " x " + std::to_string(e.heads) + " x " + std::to_string(e.queries) + " x " +
                               std::to_string(e.keys) + " pairs",
                           "give " + std::to_string(wanted));
  return from(e, block, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    return matrix[static_cast<std::size_t>(((b * e.heads + h) * e.queries + i) * e.keys + j)] != 0;
  });
}

std::int64_t BlockMaskOnHost::visited() const {
  return std::ssize(kinds) - std::count(kinds.begin(), kinds.end(), Kind::Hidden);
}

BlockMaskOnHost::Lists BlockMaskOnHost::lists(Kind wanted, bool ofKeys) const {
  const std::int64_t others = ofKeys ? rowBlocks() : keyBlocks();
  Lists out;
  out.own = ofKeys ? keyBlocks() : rowBlocks();
  out.most = std::max<std::int64_t>(1, others); // a tensor without elements has no memory
  for (std::int64_t b = 0; b < extents.batch; ++b)
    for (std::int64_t h = 0; h < extents.heads; ++h)
      for (std::int64_t at = 0; at < out.own; ++at) {
        const std::size_t begin = out.blocks.size();
        for (std::int64_t other = 0; other < others; ++other)
          if ((ofKeys ? kind(b, h, other, at) : kind(b, h, at, other)) == wanted)
            out.blocks.push_back(static_cast<std::int32_t>(other));
        out.counts.push_back(static_cast<std::int32_t>(out.blocks.size() - begin));
        out.blocks.resize(begin + static_cast<std::size_t>(out.most));
      }
  return out;
}

Result<OwnedBlockMask> BlockMaskOnHost::upload(Device &device) const {
  OwnedBlockMask out;
  out.mask.rows = block.rows, out.mask.keys = block.keys;
  for (const auto &[member, wanted, ofKeys] :
       {std::tuple(&BlockMask::partial, Kind::Partial, false), std::tuple(&BlockMask::full, Kind::Full, false),
        std::tuple(&BlockMask::partialOfKeys, Kind::Partial, true),
        std::tuple(&BlockMask::fullOfKeys, Kind::Full, true)}) {
    const Lists made = lists(wanted, ofKeys);
    KILN_ASSIGN(OwnedTensor counts, device.tensor({extents.batch, extents.heads, made.own}, made.counts));
    KILN_ASSIGN(OwnedTensor blocks, device.tensor({extents.batch, extents.heads, made.own, made.most}, made.blocks));
    out.mask.*member = BlockLists{counts, blocks};
    out.memory.push_back(std::move(counts));
    out.memory.push_back(std::move(blocks));
  }
  return out;
}

} // namespace kiln::kernels
