//===- ConversionPlan.h - Everything a layout conversion does, decided ----===//
//
// The planner's answer, plain data.  Cost model, scratch allocator, barrier insertion, lowering, `explain` and the CPU
// oracle of the tests all read this object and decide nothing again: walking the fields below is the whole conversion.
// Plans are *pull* plans: they say, for each destination thread and register, where its value comes from.
//
// Conventions.  A Mask holds bits over GF(2).  "Columns" are the images of bit 0, 1, .. of an index: applying columns
// to x means xor-ing the columns of the bits set in x.  A *register direction* is a Mask of register bits.  A *sigma*
// index is lane | warp << laneBits | block << (laneBits + warpBits); warps count from the role's first warp.  Offsets
// count elements of `storageBytes` bytes.  Every step is warp-synchronous: all lanes execute it, in converged control
// flow.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_CONVERSIONPLAN_H
#define KILN_LAYOUT_CONVERSIONPLAN_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::layout {

using Mask = std::uint32_t;

/// The xor of the columns at the set bits of x.
inline Mask applyColumns(std::span<const Mask> columns, Mask x) {
  Mask y = 0;
  for (unsigned i = 0; x; ++i, x >>= 1)
    if (x & 1)
      y ^= columns[i];
  return y;
}

/// How far data travels, smallest first.
enum class ConversionClass : unsigned char {
  None,     ///< destination register r is source register r
  Register, ///< another register of the same thread, the same for every lane and warp
  Thread,   ///< another register of the same thread, which one depends on the lane or warp
  Lane,     ///< another lane of the warp
  Warp,     ///< another warp of the block
  Block,    ///< another block of the cluster
};

/// In the order in which the planner tries them; equal costs go to the earlier one.
enum class Strategy : unsigned char { None, RegisterPermute, MmaToMma, WarpShuffle, Shared, SharedScalar };

/// Who shares one region of scratch memory.
enum class Scope : unsigned char {
  Warp,    ///< a region a warp, one after the other
  Cta,     ///< one region a block
  Cluster, ///< one region a block; loads address the region of any block of the cluster
};

enum class Barrier : unsigned char { None, Warp, Cta, Cluster };

enum class AccessForm : unsigned char { St, Ld, Stmatrix, StmatrixTrans, Ldmatrix, LdmatrixTrans };

constexpr bool isMatrix(AccessForm f) {
  return f >= AccessForm::Stmatrix;
}
constexpr bool isTrans(AccessForm f) {
  return f == AccessForm::StmatrixTrans || f == AccessForm::LdmatrixTrans;
}
constexpr bool isStore(AccessForm f) {
  return f == AccessForm::St || f == AccessForm::Stmatrix || f == AccessForm::StmatrixTrans;
}

std::string_view className(ConversionClass c); ///< "none", "register", "thread", "lane", "warp", "block"
std::string_view strategyName(Strategy s);     ///< "none", "register_permute", "mma_to_mma", "warp_shuffle", ...
std::string_view scopeName(Scope s);           ///< "warp", "cta", "cluster"
std::string_view barrierName(Barrier b);       ///< "none", "warp", "cta", "cluster"
std::string_view accessFormName(AccessForm f); ///< "st", "ld", "stmatrix", "stmatrix.trans", "ldmatrix", ...

/// A strategy that was not taken, and why: a reason, or its cost against the chosen plan's.
struct Rejected {
  std::string strategy; ///< strategyName, for shared memory with its scope: "shared (warp)"
  std::string reason;
};

//===----------------------------------------------------------------------===//
// Shuffle rounds (strategies MmaToMma and WarpShuffle)
//===----------------------------------------------------------------------===//

/// One conditional-swap term of a renaming network, on words that hold 2^slotBits elements each:
///   for w in `words`:  new[w] = parity(sigma & condition) ? permute(old[w ^ wordXor], slotXor) : old[w]
/// where permute moves the element of slot s ^ slotXor to slot s.  Terms run in order, each on the results of the one
/// before; all reads of a term see the words as they were before the term.  Words not listed are dead afterwards.
struct SwapTerm {
  Mask slotXor = 0;
  Mask wordXor = 0;
  Mask condition = 0;      ///< over sigma
  std::vector<Mask> words; ///< words whose new value is needed: one select (or byte permute) each
};

/// One shuffle.  Word `index` of the receiving lane's round file is the picked word `sourceWord`, its slots permuted by
/// `sourceSlot` (element of slot s ^ sourceSlot moves to slot s), of lane
///   apply(laneColumns, lane) ^ apply(outerColumns, sigma >> laneBits) ^ laneXor.
struct ShuffleRound {
  Mask index = 0;
  Mask sourceWord = 0;
  Mask sourceSlot = 0;
  Mask laneXor = 0;
  bool moves = true; ///< false: the source lane is the own lane, so there is no instruction
};

/// Pick, shuffle, place.
///  0. Form source words: slot s of word q is source register apply(sourceSlot, s) ^ apply(sourceWord, q).  A word has
///     4 / storageBytes slots of which 2^slotBits are filled; a 64-bit element is a word of two 32-bit halves.
///  1. Run `pick` on the source words.
///  2. Run `rounds`, from picked words to round words.  An index is at most 2^roundBits - 1.
///  3. Run `place` on the round words (a word whose partner w ^ wordXor was never made is never listed).
///  4. Destination register r is slot apply(outputSlot, r) of round word apply(outputWord, r).
struct ShufflePlan {
  unsigned slotBits = 0;
  std::vector<Mask> sourceSlot; ///< columns: slot bit -> source register
  std::vector<Mask> sourceWord; ///< columns: source word bit -> source register
  std::vector<SwapTerm> pick;
  std::vector<ShuffleRound> rounds;
  std::vector<SwapTerm> place;
  unsigned roundBits = 0;
  unsigned extraRoundBits = 0;   ///< of them, bits by which a lane sends a second register
  std::vector<Mask> outputSlot;  ///< columns: destination register bit -> slot; duplicates of a register come out equal
  std::vector<Mask> outputWord;  ///< columns: destination register bit -> round word
  std::vector<Mask> laneColumns; ///< columns: lane bit -> source lane
  std::vector<Mask> outerColumns; ///< columns: warp bits, then block bits -> source lane
  bool butterfly = false;         ///< laneColumns is the identity and outerColumns zero: shfl.bfly, else shfl.idx
  Mask lanesTouched = 0;          ///< lane bits that take part; only bits 0 and 1: nothing leaves a quad
  unsigned mixedSwaps = 0;        ///< register/lane swaps of the conversion (how hard it is)
};

//===----------------------------------------------------------------------===//
// Shared memory (strategies Shared and SharedScalar, and buffers of a given layout)
//===----------------------------------------------------------------------===//

/// One side of a movement through shared memory: the same instruction 2^|instruction| times.
///
/// Instruction i of a thread works on base register b = apply(instruction, i).  The element offset that a thread adds
/// is
///   o = apply(lane, lane) ^ apply(warp, warp) ^ apply(block, block) ^ apply(registerOffset, b)
/// of which the bits below regionBits - passBits are the place and those above number the pass.
///
/// St, Ld: element s of the vector (s < 2^|vector|) is register b ^ apply(vector, s) at offset o + s.
///
/// Matrix forms: 2^|matrices| 8x8 matrices of 16-bit units, one 32-bit register of each lane a matrix.  The word of
/// matrix j holds, low bytes first, registers b ^ apply(matrices, j) ^ h ^ apply(vector, s): s the fastest, then (trans
/// only) h in {0, halves}.  Lane i supplies the 16-byte row at offset
///   apply(rowOffset, i) ^ apply(warp, warp) ^ apply(block, block) ^ apply(registerOffset, b)
/// (rowOffset has 3 + |matrices| columns: lane 8j + r names row r of matrix j; higher lane bits are ignored).
///
/// Address arithmetic: bits of `addressSpan` may be set in the thread's base, so an instruction's constant is xor-ed
/// there; its other bits are an immediate.
struct Access {
  AccessForm form = AccessForm::St;
  unsigned bytes = 0;               ///< a lane moves with one instruction
  std::vector<Mask> vector;         ///< register directions along offset bits 0, 1, ..
  Mask halves = 0;                  ///< trans: register direction of the upper half of a 32-bit register
  std::vector<Mask> matrices;       ///< register directions of the matrix number
  std::vector<Mask> instruction;    ///< register directions of the instruction number; a pass's bits are the last ones
  std::vector<Mask> lane;           ///< columns: lane bit -> offset
  std::vector<Mask> warp;           ///< columns: warp bit -> offset
  std::vector<Mask> block;          ///< columns: block bit -> offset (loads; empty means no part)
  std::vector<Mask> registerOffset; ///< columns: register bit -> offset (0 for copies, which no direction contains)
  std::vector<Mask> rowOffset;      ///< matrix forms: columns: lane bit -> offset of the row that the lane supplies
  Mask lanePredicate = 0;           ///< lane bits that must be 0 to take part (stores: only owners)
  Mask warpPredicate = 0;           ///< warp bits that must be 0 to take part
  Mask addressSpan = 0;             ///< offset bits that lane (or row), warp and block parts may set
  unsigned constants = 0;           ///< distinct xor constants within addressSpan, less one
  std::uint64_t instructions = 0;   ///< of a warp, in all passes together
  unsigned wavefronts = 0;          ///< of one instruction of one warp, closed form
  unsigned ideal = 0;               ///< wavefronts without bank conflicts
};

/// Region coordinates are the index of an element inside the sub-tile that one region holds, regionBits bits; the
/// element with coordinates t lies at offset  sum over i of parity(t & offsetRows[i]) << i.
///
/// For each pass: stores of that pass, a barrier, loads of that pass; a barrier between passes; scope Cluster ends with
/// one more.  Region of a warp: byte warp * regionBytes (scope Warp), else byte 0.  Scope Cluster: a load reads the
/// region of the block that `remote` names, any other scope the own one. Afterwards destination register r is the
/// loaded register apply(registerCopy, r).
struct SharedPlan {
  Scope scope = Scope::Cta;
  unsigned regionBits = 0;
  unsigned passBits = 0;         ///< passes = 2^passBits: the top offset bits number the pass
  std::uint64_t regionBytes = 0; ///< of one pass of one region
  unsigned regions = 1;          ///< warps for scope Warp, else 1
  bool predicatedPasses = false; ///< SharedScalar in passes: lanes of one instruction may belong to different passes,
                                 ///< each access is predicated on (o >> (regionBits - passBits)) == pass.  Otherwise
                                 ///< the pass of an instruction is that of apply(registerOffset, b).
  std::vector<Mask> offsetBasis; ///< columns: offset bit -> region coordinates
  std::vector<Mask> offsetRows;  ///< its inverse's rows
  std::vector<Mask> source[4];   ///< region coordinates of each register, lane, warp, block bit; 0 for copies
  std::vector<Mask> destination[4]; ///< the same for the destination
  std::vector<Mask> remote[4];      ///< scope Cluster: block part of each destination bit; the block read from is the
                                    ///< xor of the parts of all destination register, lane, warp and block bits set
                                    ///< (a bit of the own block that stays contributes itself).  Else empty.
  std::vector<Mask> registerCopy;   ///< columns: destination register bit -> register that is loaded
  Access store, load;
};

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

struct ConversionPlan {
  ConversionClass cls = ConversionClass::None;
  Strategy strategy = Strategy::None;
  std::string target;        ///< name of the target it was planned for
  unsigned elementBits = 0;  ///< 1, 4, 8, 16, 32, 64
  unsigned storageBytes = 0; ///< bytes of one element in shared memory and in shuffles: max(8, elementBits) / 8

  unsigned tensorBits = 0;
  unsigned sourceRegisterBits = 0, destinationRegisterBits = 0;
  unsigned laneBits = 5, warpBits = 0, blockBits = 0;

  /// Strategies None and RegisterPermute: destination register r is source register apply(registerSource, r).
  std::vector<Mask> registerSource;
  ShufflePlan shuffle; ///< MmaToMma, WarpShuffle
  SharedPlan shared;   ///< Shared, SharedScalar

  /// Tiles of m * 2^k (TileLayout.h): this plan is run once a repetition of the tile's core.  Through shared memory
  /// they go in rounds, `perRound` of them (the last round may hold fewer): all their stores, a barrier, all their
  /// loads, a barrier.  If the core needs several passes, perRound is 1.
  unsigned repetitions = 1, perRound = 1;
  double cost = 0; ///< SM cycles of one block for all repetitions, for ranking only

  // Counts of one repetition.
  unsigned shuffles = 0;        ///< shuffle instructions a warp
  unsigned selects = 0;         ///< lane-dependent selects or byte permutes a warp
  std::uint64_t permutes = 0;   ///< byte permutes a warp that form or split 32-bit words (estimate)
  std::uint64_t wavefronts = 0; ///< of shared memory, whole block
  std::uint64_t conflicts = 0;  ///< of them, caused by bank conflicts

  std::uint64_t scratchBytes = 0; ///< shared memory, aligned to 16; all regions together
  unsigned passes = 0;            ///< 0 unless shared memory is used
  Barrier barrier = Barrier::None;
  unsigned barriers = 0;

  std::vector<Rejected> rejected;

  unsigned rounds() const { return (repetitions + perRound - 1) / perRound; }
};

} // namespace kiln::layout

#endif // KILN_LAYOUT_CONVERSIONPLAN_H
