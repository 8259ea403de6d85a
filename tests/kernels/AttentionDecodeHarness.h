//===- AttentionDecodeHarness.h - Attention over a cache against float64 -----------===//
//
// Each sequence is one of the definition of attention (AttentionProblem.h), of its own number of keys; tolerances are
// those of AttentionHarness.h.  Everything in a cache that is no key is NaN, and entries of page tables that are not to
// be looked at are far outside the cache.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_ATTENTIONDECODEHARNESS_H
#define KILN_TESTS_KERNELS_ATTENTIONDECODEHARNESS_H

#include "kernels/attention_decode/AttentionDecodeOperation.h"
#include "tests/kernels/AttentionHarness.h"

#include <functional>

namespace kiln::test {

struct DecodeProblem {
  Problem of = {};                        ///< `keys`: the room of a sequence
  std::vector<std::int64_t> lengths = {}; ///< cached keys of each sequence; empty: no table, all rows
  std::int64_t pageSize = 0;              ///< 0: no pages
  std::int64_t newTokens = 0, rotary = 0;
  bool interleaved = false, anglesAsQ = false;
  std::vector<std::int64_t> leftPad = {}, batchIndex = {};
  std::int64_t splits = 0;
  kernels::Tiling tiling = {};

  std::int64_t cached(std::int64_t b) const {
    const auto at = static_cast<std::size_t>(b);
    return lengths.empty() ? of.keys - (leftPad.empty() ? 0 : leftPad[at]) : lengths[at];
  }
  /// Rows of the tables of angles: as many as a sequence has room for, and a query's beyond.
  std::int64_t positions() const {
    const std::int64_t room = pageSize ? (of.keys + pageSize - 1) / pageSize * pageSize : of.keys;
    return room + std::max<std::int64_t>(0, of.queries - newTokens);
  }
  bool masked() const { return of.causal || of.left >= 0 || of.right >= 0; }
  std::string text() const;
};

/// So many tokens of each sequence, with these cached keys.
DecodeProblem decoding(std::int64_t tokens, std::vector<std::int64_t> lengths, DType type = DType::BF16);

/// Values of a call, in C order.
struct DecodeData {
  Numbers q;              ///< [batch, token, head, dim]
  std::vector<Data> keys; ///< k, v of each sequence: cached ones, then new ones as k_new has them; sink, alibi
  Numbers cosines, sines; ///< [position, pair]
  bool isProbe = false;
};
DecodeData randomDecodeData(const DecodeProblem &p, std::mt19937_64 &random);
/// q = 0, v one-hot (AttentionProblem.h), keys that nothing rotates.
DecodeData decodeProbe(const DecodeProblem &p, std::int64_t by, std::mt19937_64 &random);

/// A call's tensors on a device, and where rows lie in the cache.
struct PreparedDecode {
  Operand q, kCache, vCache, o, lse, kNew, vNew;
  std::vector<Operand> tables;
  kernels::AttentionDecodeArguments arguments;
  std::vector<std::vector<std::size_t>> rowOf; ///< of each sequence, counted through the cache
};
PreparedDecode prepare(Device &device, const DecodeProblem &p, const DecodeData &d, std::mt19937_64 &random);

/// The definition, of all sequences: [batch, token, head, dim] and [batch, head, token].
Results define(const DecodeProblem &p, const DecodeData &d, bool roundSteps = false);

class AttentionDecode : public AttentionForward {
protected:
  /// `launch`: does it in place of an operation of its own.
  Results run(const PreparedDecode &call, const std::function<Status()> &launch = {});
  /// Runs it; the cache is to have the new rows and nothing else new.
  Results runAndCheckCache(const DecodeProblem &p, const DecodeData &d, PreparedDecode &call,
                           const std::function<Status()> &launch = {});
  /// Random numbers against the definition, and the probe, twice.
  void both(const DecodeProblem &p);
  /// The same bits under seeds of every schedule, with every warp late somewhere, and in a workspace of NaN.
  void underEverySchedule(const DecodeProblem &p);
};

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_ATTENTIONDECODEHARNESS_H
