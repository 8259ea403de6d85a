//===- CacheRows.h - Where the rows of a sequence lie in a cache ----------------===//
//
// Row t of a sequence is row t + leftpad of its part of the cache.  That part is a batch of a tensor [batch, row, key
// head, dim]; or pages of a tensor [page, row, key head, dim], which a table lists in their order.
//
// Rows from `count` on may hold anything: they read as zero, and what the table says of pages that no row before it
// lies in is not looked at.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_DECODE_CACHEROWS_H
#define KILN_KERNELS_ATTENTION_DECODE_CACHEROWS_H

#include "compiler/language/Language.h"
#include "kernels/attention_decode/AttentionDecode.h"

namespace kiln::kernels {

/// What tables say of a sequence.
struct SequenceInCache {
  using Number = language::Scalar<language::i32>;
  using Table = language::TensorView<language::i32, 1>;

  Number pageRows;       ///< of a page
  Number part, leftPad;  ///< the batch of the cache that is this sequence's, and row of the table of pages
  Number room, capacity; ///< rows, and without those of padding
  Number length, count;  ///< cached keys, as given and as there is room for

  template <language::Element T>
  SequenceInCache(const AttentionDecodeConfig &c, const language::TensorView<T, 4> &k,
                  const language::TensorView<language::i32, 2> &table, const Table &lengths, const Table &batchIndex,
                  const Table &leftPads, const Number &batch)
      : pageRows(c.place == CachePlace::Gathered ? language::constant<language::i32>(c.pageSize)
                                                 : language::cast<language::i32>(k.extent(1))),
        part(c.batchIndex ? load(batchIndex.at(batch).pointer()) : batch),
        leftPad(c.leftPad ? load(leftPads.at(batch).pointer()) : language::constant<language::i32>(0)),
        room(c.place == CachePlace::Rows ? language::cast<language::i32>(k.extent(1))
                                         : language::cast<language::i32>(table.extent(1)) * pageRows),
        capacity(room - leftPad), length(c.lengths ? load(lengths.at(batch).pointer()) : capacity),
        count(c.lengths ? min(length, capacity) : capacity) {}

  /// Of a checked call: stops the kernel if an entry cannot be.  `parts`: batches of the cache; `added`: new rows.
  void check(const AttentionDecodeConfig &c, const language::Scalar<language::i64> &parts, const Number &added) const {
    using namespace language;
    if (c.checked && c.batchIndex)
      deviceAssert((part >= 0) & (cast<i64>(part) < parts),
                   "attention_decode: an entry of cache_batch_idx is no sequence of the cache");
    if (c.checked && c.leftPad)
      deviceAssert((leftPad >= 0) & (leftPad <= room),
                   "attention_decode: an entry of leftpad_k is below 0, or more rows than a sequence has");
    if (c.checked && c.lengths)
      deviceAssert((length >= 0) & (length <= capacity - added),
                   "attention_decode: an entry of cache_seqlens is below 0, or more than there is room for");
  }
};

class CacheRows {
public:
  using Number = language::Scalar<language::i32>;
  using Numbers = language::Tile<language::i32>;

  /// `count`: rows that are keys.
  CacheRows(const AttentionDecodeConfig &c, const language::TensorView<language::i32, 2> &table,
            const SequenceInCache &sequence, const Number &count)
      : c(c), table(table), pageRows(sequence.pageRows), part(sequence.part), leftPad(sequence.leftPad), count(count) {}

  /// Stops the kernel if a page that counts does not exist; `added`: rows from `count` on that count as well.  Before
  /// any of them is read: copies are ahead of what uses them.
  void checkPages(const language::Scalar<language::i64> &pages, const Number &added) const {
    using namespace language;
    constexpr int atOnce = 128;
    const auto rows = count + added;
    const auto first = leftPad / pageRows, end = select(rows > 0, ceilDiv(leftPad + rows, pageRows), first);
    const auto entries = table.at(part, all);
    loop(over(first, end, atOnce).stages(1), [&](auto at) {
      const auto number = at + range(0, atOnce);
      const auto counts = number < end;
      const auto page = load(entries.pointer() + cast<i64>(number) * entries.stride(0), counts);
      deviceAssert(!counts | ((page >= 0) & (cast<i64>(page) < pages)),
                   "attention_decode: an entry of page_table is no page of the cache");
    });
  }

  /// Rows first .. first + rows - 1: [rows, width].  Of a block of keys from a multiple of its size on; or, with
  /// `fromEnd`, of one that ends before `count`.
  template <language::Element T>
  language::Tile<T> tile(const language::TensorView<T, 4> &cache, const Number &kvHead, const Number &first, int rows,
                         int width, const language::Scalar<language::i64> &columns) const {
    using namespace language;
    if (c.place == CachePlace::Gathered) {
      const auto row = expandDims(first + range(0, rows), 1);
      const auto column = expandDims(range(0, width), 0);
      const auto inside = row < count;
      return load(at(cache, kvHead, row, inside) + column, inside & (cast<i64>(column) < columns));
    }
    if (c.place == CachePlace::Pages) {
      const auto inPage = first % pageRows;
      const auto page = load(table.at(part, first / pageRows).pointer());
      const auto view = cache.at(page, all, kvHead, all).withExtents(cache.extent(1), columns);
      return loadView(view.narrow(along(0), 0, min(pageRows, count - (first - inPage))).tiles({rows, width}),
                      {inPage, 0});
    }
    const auto view = cache.at(part, all, kvHead, all).withExtents(cache.extent(1), columns);
    return loadView((c.fromEnd ? view : view.narrow(along(0), leftPad, count)).tiles({rows, width}), {first, 0});
  }

  /// Addresses of rows, [rows, 1], that are there where `inside` is true.
  template <language::Element T>
  language::Tile<language::Pointer<T>> at(const language::TensorView<T, 4> &cache, const Number &kvHead,
                                          const Numbers &rows, const language::Tile<language::i1> &inside) const {
    using namespace language;
    const auto row = c.leftPad ? rows + leftPad : rows;
    if (c.place == CachePlace::Rows)
      return cache.at(part, 0, kvHead, 0).pointer() + cast<i64>(row) * cache.stride(1);
    // As unsigned numbers, which a constant divides in an instruction or two.
    const auto number = cast<u32>(row);
    const auto size = cast<u32>(pageRows);
    const auto pages = table.at(part, all);
    const auto page = load(pages.pointer() + cast<i64>(number / size) * pages.stride(0), inside);
    return cache.at(0, 0, kvHead, 0).pointer() + cast<i64>(page) * cache.stride(0) +
           cast<i64>(number % size) * cache.stride(1);
  }

private:
  const AttentionDecodeConfig &c;
  language::TensorView<language::i32, 2> table;
  Number pageRows, part, leftPad, count;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_DECODE_CACHEROWS_H
