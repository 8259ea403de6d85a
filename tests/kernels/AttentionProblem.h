//===- AttentionProblem.h - A call of attention, and its definition in float64 ---===//
#ifndef KILN_TESTS_KERNELS_ATTENTIONPROBLEM_H
#define KILN_TESTS_KERNELS_ATTENTIONPROBLEM_H

#include "kernels/attention/AttentionOperation.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {

using Numbers = std::vector<double>;

/// Columns of q and k, and of v: of every width of tiles, and less than that.
inline constexpr std::pair<std::int64_t, std::int64_t> headDimsToTry[] = {{8, 8},     {40, 40},   {80, 80},   {96, 96},
                                                                          {128, 128}, {192, 128}, {256, 256}, {64, 24}};

/// A pair of a query and a key, counted from its sequence's first ones.
struct Pair {
  std::int64_t batch, head, i, j;
};
/// Functions of the caller, what they read, and what they compute in float64.
struct Hooks {
  struct Aux {
    DType type;
    std::vector<std::int64_t> shape;
    Numbers values;
  };
  kernels::AttentionFunctions functions = {};
  std::vector<Aux> aux = {};
  std::optional<kernels::BlockSize> blocks = {};                        ///< with lists of such blocks, made of `mask`
  std::function<double(double x, const Pair &)> score = {}, slope = {}; ///< none: x, 1
  std::function<bool(const Pair &)> mask = {};                          ///< none: every pair
  double cap = 0;                                                       ///< of scores, by an approximate tanh
};

/// One call, dense or packed.
struct Problem {
  DType type = DType::BF16;
  std::int64_t batch = 1, queries = 64, keys = 64, heads = 2, keyHeads = 2, dim = 64, dimV = 64;
  bool causal = false;
  std::int64_t left = -1, right = -1;
  kernels::Alignment alignment = kernels::Alignment::BottomRight;
  std::optional<std::int64_t> offset = {}; ///< of the first row's position among the keys; none: by the alignment
  float softcap = 0, scale = 0;            ///< scale 0: the default
  bool sink = false, alibi = false, lse = true;
  bool descale = false;
  std::optional<unsigned> biasOf = {}; ///< a bias; bit d: it differs along dimension d of [sequence, head, row, key]
  DType biasType = DType::F32;
  float dropoutP = 0;
  std::uint64_t seed = 0x9E3779B97F4A7C15u, dropoutOffset = 7;
  std::vector<std::int64_t> lengthsQ = {}, lengthsK = {}; ///< packed: of each sequence
  std::vector<std::int64_t> usedQ = {}, usedK = {};
  std::int64_t slack = 0;                     ///< packed: what max_queries is too large by
  std::vector<unsigned> order = {0, 1, 2, 3}; ///< of the dense tensors' dimensions in memory, outermost first
  std::int64_t pad = 0, around = 0;           ///< elements after each row of o, before and after o and lse
  std::shared_ptr<const Hooks> hooks = {};
  bool deterministic = false; ///< backward

  DType output() const { return kernels::outputOf(type); }
  std::int64_t sequences() const { return packed() ? std::ssize(lengthsQ) : batch; }
  bool packed() const { return !lengthsQ.empty(); }
  std::int64_t rowsQ() const; ///< of all sequences
  std::int64_t rowsK() const;
  std::vector<std::int64_t> biasShape() const;
  std::string text() const;
  /// Of scores; 0: none.
  double cap() const { return std::max<double>(softcap, hooks ? hooks->cap : 0); }
  bool hasPair(const Pair &pair) const { return !hooks || !hooks->mask || hooks->mask(pair); }
};

/// A dense call with so many queries and keys of one sequence.
Problem with(std::int64_t queries, std::int64_t keys, DType type = DType::BF16);

/// A cap (bit 0), a sink (1), slopes (2), a causal mask with another scale (3).
Problem withOptions(unsigned options);

/// Values in C order, already rounded to the problem's type.
struct Data {
  Numbers q, k, v, sink, alibi;
  Numbers descaleQ = {}, descaleK = {}, descaleV = {}; ///< [sequence, key head]
  Numbers bias = {};                                   ///< of biasShape, some of it minus infinity
};
struct Results {
  Numbers o, lse;
  /// Of a definition of 8-bit floats: what lse may be off by since matrix units keep 14 bits of a product's sum.  Of 32
  /// terms and the sum before them an instruction drops what is below 2^-13 of the largest.
  Numbers slack = {};
};

Data randomData(const Problem &p, std::mt19937_64 &random);

/// Rows of q, k and v that are not used become NaN.
void poisonUnused(const Problem &p, Data &d);

/// q = 0, slopes of 0, a bias that only hides, v[j][c] = 1 where (j + by) mod Dv is c, every key's weight alike: o
/// counts the visible keys by class.
Data probeData(const Problem &p, std::int64_t by, std::mt19937_64 &random);

/// What a bias adds becomes 0, what it hides stays hidden.
void onlyHide(Numbers &bias);

/// Where the bias has its element for a pair, counted from its sequence's first row and key.
std::size_t atBias(const Problem &p, std::int64_t sequence, std::int64_t head, std::int64_t i, std::int64_t j);

/// What dropout multiplies a pair's probability by.
double keptShare(const Problem &p, std::int64_t sequence, std::int64_t head, std::int64_t i, std::int64_t j);

/// The definition in float64; `roundSteps`: each step rounded to the problem's type; of 8-bit floats only
/// powers, and o to its own.  Rows that are not to be written
/// are NaN.
Results define(const Problem &p, const Data &d, bool roundSteps = false);

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_ATTENTIONPROBLEM_H
