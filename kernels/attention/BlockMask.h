//===- BlockMask.h - Which blocks of pairs a call visits --------------------------===//
//
// Pairs of queries and keys in blocks of `rows` x `keys`.  Of each block of rows a list names the blocks of keys in
// which some pairs may be hidden (partial: the mask function is asked) and those in which it hides none (full: it is
// not asked).  What neither list names is hidden and costs nothing.  The built-in mask and the ends of sequences hold
// inside of named blocks.
//
// Blocks are counted from a sequence's first row and key, of packed sequences too.  The batch and the heads of a list
// may be 1, for all; heads are those of q.  A list names a block at most once, in any order; its entries after the
// count are not read.
//
//   // Keys of the query's own document: lists for both directions, from a function of the host.
//   KILN_ASSIGN(const BlockMaskOnHost blocks, BlockMaskOnHost::from(extents, {128, 128}, sees));
//   KILN_ASSIGN(const OwnedBlockMask lists, blocks.upload(device));
//   operation.run({.q = q, .., .functions = functions, .blockMask = lists.view()});
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_BLOCKMASK_H
#define KILN_KERNELS_ATTENTION_BLOCKMASK_H

#include "kiln/OwnedTensor.h"

#include <functional>
#include <optional>

namespace kiln::kernels {

/// Of each block of one side, those of the other.
struct BlockLists {
  Tensor counts; ///< i32 [B, H, blocks]
  Tensor blocks; ///< i32 [B, H, blocks, most], the last dimension dense
};

struct BlockMask {
  std::int64_t rows = 128, keys = 128; ///< of a block: multiples of 16
  /// Blocks of keys of each block of rows; at least one of the two.
  std::optional<BlockLists> partial = {}, full = {};
  /// Blocks of rows of each block of keys, the same pairs of blocks: what the backward direction needs besides.
  std::optional<BlockLists> partialOfKeys = {}, fullOfKeys = {};
};

/// Of a mask on the host.
struct BlockMaskExtents {
  std::int64_t batch = 1, heads = 1, queries = 0, keys = 0; ///< the longest sequence's; batch, heads: 1 for all
};
struct BlockSize {
  std::int64_t rows = 128, keys = 128;
};

/// Refuses other sizes than multiples of 16 from 16 to 65,536, by name.
Status checkBlockSize(std::string_view operation, const BlockSize &block);

/// The lists of a BlockMask with their memory.
class OwnedBlockMask {
public:
  const BlockMask &view() const { return mask; }
  operator const BlockMask &() const { return mask; }

private:
  friend class BlockMaskOnHost;
  std::vector<OwnedTensor> memory;
  BlockMask mask;
};

/// Lists of all four kinds in host memory.
class BlockMaskOnHost {
public:
  /// Whether query i sees key j.
  using Predicate = std::function<bool(std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j)>;
  /// What of a block is seen.
  enum class Kind : std::uint8_t { Hidden, Partial, Full };

  /// Writes which keys query i sees: not 0.
  using RowPredicate =
      std::function<void(std::int64_t batch, std::int64_t head, std::int64_t i, std::span<std::uint8_t> seen)>;
  /// Asks for every row.  Refuses wrong sizes of blocks.
  static Result<BlockMaskOnHost> fromRows(const BlockMaskExtents &extents, const BlockSize &block,
                                          const RowPredicate &row);
  /// Asks for every pair.
  static Result<BlockMaskOnHost> from(const BlockMaskExtents &extents, const BlockSize &block, const Predicate &sees);
  /// From [batch, heads, queries, keys] in C order: not 0 where a query sees a key.  Refuses another number of
  /// elements.
  static Result<BlockMaskOnHost> from(const BlockMaskExtents &extents, const BlockSize &block,
                                      std::span<const std::uint8_t> matrix);

  const BlockSize &size() const { return block; }
  std::int64_t rowBlocks() const { return blocksOf(extents.queries, block.rows); }
  std::int64_t keyBlocks() const { return blocksOf(extents.keys, block.keys); }
  Kind kind(std::int64_t batch, std::int64_t head, std::int64_t rowBlock, std::int64_t keyBlock) const {
    return kinds[static_cast<std::size_t>(((batch * extents.heads + head) * rowBlocks() + rowBlock) * keyBlocks() +
                                          keyBlock)];
  }
  /// Blocks that are visited: of all batches and heads.
  std::int64_t visited() const;

  /// Of each block of rows, or (`ofKeys`) of keys, the blocks of the other side of this kind: [batch, heads, blocks]
  /// and [batch, heads, blocks, most] in C order, 0 after a list's end.
  struct Lists {
    std::vector<std::int32_t> counts, blocks;
    std::int64_t own = 0, most = 0;
  };
  Lists lists(Kind wanted, bool ofKeys) const;

  /// All four on a device.
  Result<OwnedBlockMask> upload(Device &device) const;

private:
  static std::int64_t blocksOf(std::int64_t length, std::int64_t size) { return (length + size - 1) / size; }
  BlockMaskExtents extents;
  BlockSize block;
  std::vector<Kind> kinds; ///< [batch, heads, row blocks, key blocks]
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_BLOCKMASK_H
