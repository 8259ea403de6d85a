//===- Wgmma.h - Matrix products of warpgroups ----------------------------===//
//
// wgmma.mma_async, section 2.2 of the emulator specification.  A product belongs to four warps.  It exists once all of
// them have issued it: warp i's n-th instruction takes part in the warpgroup's n-th product.  From the first of the
// four on it is a work in the block's AsyncQueue, which is ready after the last.  Products of a warpgroup are delivered
// in order; a delivery reads shared memory and writes the accumulators of the four warps.
//
// Registers.  Program and decoder know which registers are accumulators or fragments of A (and what is moved into
// them): the checked registers.  Ops that access one of them run after a guard (WgmmaGuard), which finds accesses to
// registers of products that were not waited for, and remembers accesses for the next product, which wants a
// wgmma.fence between. Within a straight piece of code a register is guarded where it is met first.  Other ops run as
// always.
//
// Compilers add plain movs around inline assembly, for which the assembler emits no instruction.  So what is known of
// its source holds for a mov's result, a constant may be moved between the fence and the first product, and a mov of a
// register that is in flight waits for it and leaves a note.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_MATRIX_WGMMA_H
#define KILN_RUNTIME_DEVICE_EMULATOR_MATRIX_WGMMA_H

#include "compiler/target/TensorMap.h"
#include "runtime/device/emulator/execute/Executor.h"
#include "runtime/device/emulator/matrix/MatrixModel.h"
#include "runtime/device/emulator/matrix/WgmmaDescriptor.h"

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::emulator {

constexpr unsigned warpgroupWarps = 4, wgmmaExtentM = 64, wgmmaFragments = 4;
/// Accumulator registers and pieces of an operand, at most.
constexpr unsigned wgmmaAccumulators = 128, wgmmaPiecesA = 2 * wgmmaExtentM, wgmmaPiecesB = 512;

struct WgmmaForm;
struct AsyncRange;

/// What one product works on.
struct WgmmaProduct {
  const WgmmaForm &form;
  MatrixMode mode;
  const std::byte *shared;      ///< byte at offset 0
  const std::uint32_t *piecesA; ///< offsets; null: A is in registers
  const std::uint32_t *piecesB;
  const std::uint32_t (*fragments)[wgmmaFragments][warpSize]; ///< by warp
  std::uint32_t *accumulators[warpgroupWarps][wgmmaAccumulators];
  bool addsD; ///< scale-d
};

/// One wgmma.mma_async, decoded.  Its Op has the descriptors of A (noSlot: registers) and B in s[0] and s[1], scale-d
/// in s[2], the accumulators and then the fragments of A at `aux` in the pool, and in `imm` the number of the form.
struct WgmmaForm {
  MatrixModel model;
  bool singleBits = false; ///< .b1: the population count of A and B; the model is not used
  WgmmaOperand a{false, wgmmaExtentM}, b;
  std::uint16_t k = 16; ///< elements; of .b1, words
  std::uint16_t accumulators = 4;
  bool fragments = false; ///< A is in registers
  bool negateA = false, negateB = false;
  std::vector<std::string_view> names;  ///< of accumulators and fragments
  std::vector<std::uint32_t> registers; ///< their numbers among the checked registers
  void (*multiply)(const WgmmaProduct &product) = nullptr;

  /// Products of one shape may follow each other on the same accumulators without a fence.
  std::uint32_t shape() const { return b.extent | std::uint32_t(k) << 16; }
};

/// What comes before an op that accesses checked registers.
struct WgmmaGuard {
  enum class Kind : std::uint8_t { Access, Move, MoveConstant };
  static constexpr std::uint32_t none = ~0u;
  Handler run = nullptr; ///< the op itself
  Kind kind = Kind::Access;
  std::uint32_t from = none, to = none; ///< of a move
  std::uint32_t first = 0, count = 0;   ///< of an access: in WgmmaProgram::accessed
};

/// Of a Program with wgmma.
struct WgmmaProgram {
  std::vector<WgmmaForm> forms;
  std::uint32_t numRegisters = 0;
  std::vector<WgmmaGuard> guards;
  std::vector<std::uint32_t> guardOf; ///< by op
  std::vector<std::uint32_t> accessed;
};

/// What a warp knows of a checked register.
struct WgmmaRegister {
  std::uint32_t touched = 0; ///< fences of the warp when it was accessed last
  std::uint32_t touchedPc = ~0u;
  std::uint32_t product = 0; ///< the last one that uses it; 0: none
  std::uint32_t productPc = 0, productFences = 0, shape = 0;
  bool fragment = false; ///< of that product
};

struct WgmmaWarp {
  std::uint32_t issued = 0; ///< products
  std::uint32_t done = 0;   ///< the first so many are waited for
  std::uint32_t committed = 0;
  std::uint32_t fences = 0, issuedAtFence = 0;
  std::uint32_t lastPc = 0;           ///< of the last product
  std::vector<std::uint32_t> commits; ///< products that precede each commit not yet waited for
  std::vector<WgmmaRegister> registers;
};

class WgmmaWork;
struct WgmmaState {
  std::vector<WgmmaWarp> warps;
  /// A tensor copy that wrote shared memory, and how.
  struct TensorWrite {
    std::uint32_t op = 0, lanes = 0;
    std::uint64_t block = 0; ///< whose warp `warp` issued it
    unsigned warp = 0;
    TensorMapSwizzle swizzle{};
    bool operator==(const TensorWrite &) const = default;
  };
  std::vector<TensorWrite> tensorWrites; ///< each once
  /// Of every 16 bytes of shared memory, what wrote to them last: a tensor copy's place in `tensorWrites` + 1, or 0.
  /// Empty as long as there was no bulk copy.
  std::vector<std::uint32_t> writtenBy;
  struct Warpgroup {
    std::uint32_t complete = 0;   ///< products that all four warps issued
    std::deque<WgmmaWork *> open; ///< those after them
  };
  std::vector<Warpgroup> groups;
};
std::shared_ptr<WgmmaState> makeWgmmaState(const Program &program, std::size_t warps);
void startWgmma(WgmmaState &state);

/// The executing lane of `w` issues a bulk copy to these offsets of the shared memory of `block`; of a tensor: with a
/// swizzle.
void noteBulkWrite(BlockState &block, std::span<const AsyncRange> offsets, const WarpState &w, const Op &op,
                   std::optional<TensorMapSwizzle> swizzle);

// Handlers.
Next wgmmaIssue(Warp &w, const Op &op);
Next wgmmaFence(Warp &w, const Op &op);
Next wgmmaCommit(Warp &w, const Op &op);
/// All but the newest `imm` groups.
Next wgmmaWait(Warp &w, const Op &op);
/// An op after its guard.
Next wgmmaGuarded(Warp &w, const Op &op);

/// The product is about to use its registers: finds missing fences (WgmmaRegisters.cpp).
void checkProductRegisters(WarpState &w, const Op &op, const WgmmaForm &form);
/// Waits until the products up to number `last` are delivered; what it returns, if it is not Advance, is what the
/// handler returns.
Next waitForProducts(WarpState &w, std::uint32_t last);
/// "group 2 of 3 pending", or that it was not committed.
std::string wgmmaGroupText(const WgmmaWarp &w, std::uint32_t product);

/// The block's warps have left.
void checkWgmmaAtExit(BlockState &block);
/// What lanes of `w` wait for that wait for products below `limit`.
std::string describeWgmmaWait(const BlockState &block, const WarpState &w, std::uint32_t limit);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_MATRIX_WGMMA_H
