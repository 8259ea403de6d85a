// tile_gpu.warpgroup_*: wgmma, descriptors of its operands in shared memory, and waits for its results.
#include "compiler/lowering/Emit.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

using layout::Coords;
using layout::SharedTile;
using tile_gpu::WarpgroupDotOp;

/// An operand in shared memory.
struct Operand {
  const SharedTile tile;
  const unsigned k; ///< its dimension along K
  const layout::Tma tma;

  Operand(SharedTile lowered, unsigned k)
      : tile(std::move(lowered)), k(k), tma(std::get<layout::Tma>(tile.encoding().kind)) {}
  unsigned inner() const { return tma.order.empty() ? 1 : static_cast<unsigned>(tma.order[0]); }
  bool isKMajor() const { return inner() == k; }

  /// Where the elements from `other` and `k` on begin; both begin an instruction's part.
  uint64_t byteAt(unsigned other, unsigned atK) const {
    Coords at;
    at.resize(2, 0);
    at[k] = atK, at[1 - k] = other;
    return tile.byteOffset(at);
  }
  /// The descriptor of these elements for a buffer at address 0 (PTX, "Matrix descriptor format").
  uint64_t descriptorAt(unsigned other, unsigned atK) const { return constantBits() + byteAt(other, atK) / 16; }

private:
  uint64_t constantBits() const {
    const auto swizzle = static_cast<uint64_t>(tma.swizzle);
    const uint64_t stride = 8 * swizzle, code = swizzle == 128 ? 1 : swizzle == 64 ? 2 : 3;
    // From one group of `swizzle` bytes along M or N to the next; with K contiguous it is not read.
    uint64_t leading = 16;
    const unsigned group = static_cast<unsigned>(swizzle) * 8 / tile.bits();
    if (!isKMajor() && tile.tile().extent(inner()) > group)
      leading = byteAt(group, 0);
    return leading / 16 << 16 | stride / 16 << 32 | code << 62;
  }
};

/// Assembly that writes as many sums (or words), in place if it reads them too, and reads `more`, of 64 or 32 bits
/// each.
Scalars assembly(const Emit &e, const std::string &text, llvm::ArrayRef<Value> sums, llvm::ArrayRef<Value> more,
                 bool readsSums = true) {
  std::string all;
  for (Value v : sums)
    all += std::string(all.empty() ? "=" : ",=") + (v.getType().isInteger(32) ? "r" : "f");
  for (Value v : more)
    all += std::string(all.empty() ? "" : ",") + (v.getType().isInteger(64) ? "l" : "r");
  llvm::SmallVector<Value> operands(more);
  if (readsSums)
    for (auto [i, v] : llvm::enumerate(sums)) {
      all += "," + std::to_string(i);
      operands.push_back(v);
    }
  const auto types = llvm::map_to_vector(sums, [](Value v) { return v.getType(); });
  const Type result = LLVM::LLVMStructType::getLiteral(e.b.getContext(), types); // of 4 at least
  auto made = LLVM::InlineAsmOp::create(
      e.b, e.loc, sums.empty() ? Type() : result, operands, text, all, /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(e.b.getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr());
  Scalars out;
  for (std::size_t i = 0; i < sums.size(); ++i)
    out.push_back(LLVM::ExtractValueOp::create(e.b, e.loc, made.getRes(), static_cast<int64_t>(i)));
  return out;
}

/// The sums are the wait's: nothing that reads them can go before it.
/// `kept`: what products read from registers until then, which assemblers before CUDA 13.3 would write again earlier.
Scalars waitFor(const Emit &e, const Scalars &sums, unsigned leave, const Scalars &kept = {}) {
  return assembly(e, "wgmma.wait_group.sync.aligned " + std::to_string(leave) + ";", sums, kept);
}

using Place = std::pair<unsigned, unsigned>;

/// A tile in registers, neighbours along K that fill a word, `each` of them: by row and column.
std::map<Place, Value> wordsOf(const Emit &e, const layout::TileLayout &layout, ValueRange registers, unsigned each) {
  std::map<Place, Value> out;
  for (unsigned r = 0; r + each <= layout.registers(); r += each) {
    const Coords c = layout.coords(r, 0, 0, 0);
    out[{c[0], c[1]}] = e.joinWord(llvm::map_to_vector(registers.slice(r, each), [&](Value v) { return e.toBits(v); }));
  }
  return out;
}
unsigned perWord(Type tile) {
  return 32 / tile::storageBits(cast<RankedTensorType>(tile).getElementType());
}

/// As wgmma names it.
std::string typeName(Type element) {
  return element.isF16()                  ? "f16"
         : element.isBF16()               ? "bf16"
         : isa<Float8E4M3FNType>(element) ? "e4m3"
         : isa<Float8E5M2Type>(element)   ? "e5m2"
                                          : "tf32";
}

struct LowerWarpgroupBegin : Lowering<tile_gpu::WarpgroupBeginOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::WarpgroupBeginOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    // Their values come from nothing that can be computed again: neither where a loop is entered nor where it is passed
    // by are registers written that a product may be in flight on.
    const Emit e(rewriter, op.getLoc());
    const auto isRead = [](Operation *user) {
      auto product = dyn_cast<WarpgroupDotOp>(user);
      return !product || !product.getFromZero();
    };
    const Scalars tile(adaptor.getTile());
    replace(rewriter, op, llvm::any_of(op->getUsers(), isRead) ? assembly(e, "", tile, {}) : tile);
    return success();
  }
};

struct LowerWarpgroupWait : Lowering<tile_gpu::WarpgroupWaitOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::WarpgroupWaitOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    Scalars kept;
    for (auto [tile, registers] : llvm::zip_equal(op.getKept(), adaptor.getKept()))
      for (const auto &[at, word] : wordsOf(e, context.layout(tile.getType()), registers, perWord(tile.getType())))
        kept.push_back(word);
    replace(rewriter, op, waitFor(e, Scalars(adaptor.getSums()), op.getLeave(), kept));
    return success();
  }
};

struct LowerWarpgroupDot : Lowering<WarpgroupDotOp> {
  using Lowering::Lowering;

  LogicalResult matchAndRewrite(WarpgroupDotOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const auto buffer = dyn_cast<tile_gpu::BufferType>(op.getLhs().getType());
    Result<SharedTile> b = op.getRhs().getType().lowered(), a = buffer ? buffer.lowered() : b;
    if (!a || !b)
      return tile_gpu::report(op, a ? b.status() : a.status());
    const Operand lhs(std::move(*a), 1), rhs(std::move(*b), 0);
    const Emit e(rewriter, op.getLoc());
    const layout::TileLayout &sums = context.layout(op.tile());
    const auto &mma = std::get<layout::Mma>(tile_gpu::layoutAttrOf(op.tile()).encoding().kind);
    const Value startA = buffer ? startOf(e, lhs, adaptor.getLhs().front(), sums, 0) : Value(),
                startB = startOf(e, rhs, adaptor.getRhs().front(), sums, 1);
    const auto k = static_cast<unsigned>(op.getRhs().getType().getShape()[0]);
    const MatrixInstruction &one = *WarpgroupDotOp::instructionOf(op.elementType());
    const unsigned each = buffer ? 1 : perWord(op.getLhs().getType());
    std::map<Place, Value> words =
        buffer ? std::map<Place, Value>() : wordsOf(e, context.layout(op.getLhs().getType()), adaptor.getLhs(), each);
    const Type element =
        buffer ? buffer.getElementType() : cast<RankedTensorType>(op.getLhs().getType()).getElementType();
    const std::string types = "f32." + typeName(element) + "." + typeName(op.elementType());
    const bool fromZero = op.getFromZero();

    Scalars left = llvm::map_to_vector(words, [](const auto &word) { return word.second; });

    Scalars out(adaptor.getAccumulator().begin(), adaptor.getAccumulator().end());
    // Through the fence, so that nothing is written to these registers after it.
    Scalars fenced(fromZero ? Scalars() : out);
    fenced.append(left);
    fenced = assembly(e, "wgmma.fence.sync.aligned;", fenced, {});
    if (!fromZero)
      out.assign(fenced.begin(), fenced.begin() + static_cast<std::ptrdiff_t>(out.size()));
    left.assign(fenced.end() - static_cast<std::ptrdiff_t>(left.size()), fenced.end());
    for (auto [word, value] : llvm::zip_equal(words, left))
      word.second = value;
    for (const auto &[at, registers] : instructions(sums, static_cast<unsigned>(mma.instrN))) {
      Scalars part;
      for (unsigned r : registers)
        part.push_back(out[r]);
      for (unsigned i = 0; i < k; i += one.k) {
        const Source a = buffer ? Source{{startA}, lhs.descriptorAt(at.first, i)}
                                : Source{fragment(words, at.first, i, 4 * each), 0};
        part =
            multiply(e, one, types, lhs, rhs, a, {{startB}, rhs.descriptorAt(at.second, i)}, part, fromZero && i == 0);
      }
      for (auto [r, value] : llvm::zip_equal(registers, part))
        out[r] = value;
    }
    assembly(e, "wgmma.commit_group.sync.aligned;", {}, {});
    if (!op.goesOn())
      out = waitFor(e, out, 0, left);
    replace(rewriter, op, std::move(out));
    return success();
  }

private:
  /// Where an instruction finds an operand: where this warpgroup's part of the buffer starts, and the descriptor of
  /// what is read less that; or the words of a fragment.
  struct Source {
    Scalars values;
    uint64_t descriptor;
    bool isShared() const { return values.size() == 1; }
  };

  /// In descriptors' units of 16 bytes; warps beyond the first four add to the rows or columns.
  Value startOf(const Emit &e, const Operand &operand, Value base, const layout::TileLayout &sums, unsigned dim) const {
    Value address = LLVM::PtrToIntOp::create(e.b, e.loc, e.i(32), base);
    for (unsigned bit = 2; 1u << bit < context.numWarps(); ++bit)
      if (const unsigned at = sums.coords(0, 0, 1u << bit, 0)[dim]) {
        const Value isOn = e.and_(e.shr(context.warp(), bit), e.i32(1));
        address = e.add(address, e.mul(isOn, e.i32(static_cast<int64_t>(operand.byteAt(at, 0)))));
      }
    return e.widen(e.shr(e.and_(address, e.i32(0x3FFFF)), 4)); // 18 bits of the address
  }

  /// The rows and columns at which the instructions of a warpgroup begin, and the registers of each in the order in
  /// which it names them.
  static std::vector<std::pair<Place, llvm::SmallVector<unsigned>>> instructions(const layout::TileLayout &sums,
                                                                                 unsigned n) {
    std::map<Place, std::map<Place, unsigned>> found; // in an instruction: column, row
    for (unsigned r = 0; r < sums.registers(); ++r) {
      const Coords c = sums.coords(r, 0, 0, 0);
      const unsigned row = c[0] & 8, column = c[1] % n;
      found[{c[0] - row, c[1] - column}].try_emplace({column / 8, row + column % 8}, r);
    }
    std::vector<std::pair<Place, llvm::SmallVector<unsigned>>> out;
    for (const auto &[place, registers] : found) {
      out.push_back({place, {}});
      for (const auto &[at, r] : registers)
        out.back().second.push_back(r);
    }
    return out;
  }

  /// Operand A of an instruction: rows 8 apart first, then columns, those of a row's four threads apart.
  static Scalars fragment(const std::map<Place, Value> &words, unsigned row, unsigned column, unsigned ofThreads) {
    return {words.at({row, column}), words.at({row + 8, column}), words.at({row, column + ofThreads}),
            words.at({row + 8, column + ofThreads})};
  }

  /// Descriptors are computed in the assembly: LLVM would keep those of a loop's every instruction in registers.
  static Scalars multiply(const Emit &e, const MatrixInstruction &one, const std::string &types, const Operand &lhs,
                          const Operand &rhs, const Source &a, const Source &b, llvm::ArrayRef<Value> sums,
                          bool isFirst) {
    const std::size_t count = sums.size();
    std::string list;
    for (std::size_t i = 0; i < count; ++i)
      list += (i ? ", $" : "$") + std::to_string(i);
    std::string left;
    for (std::size_t i = 0; i < a.values.size(); ++i)
      left += (i ? ", $" : "$") + std::to_string(count + i);
    const std::string right = "$" + std::to_string(count + a.values.size());
    const auto transposed = [](const Operand &operand) { return operand.isKMajor() ? ", 0" : ", 1"; };
    const auto describe = [](const std::string &name, const std::string &start, const Source &source) {
      return "add.s64 " + name + ", " + start + ", " + std::to_string(source.descriptor) + "; ";
    };
    const std::string text =
        "{ .reg .pred p; .reg .b64 a, b; setp.ne.b32 p, " + std::string(isFirst ? "0" : "1") + ", 0; " +
        (a.isShared() ? describe("a", left, a) : std::string()) + describe("b", right, b) +
        "wgmma.mma_async.sync.aligned." + one.shape(static_cast<unsigned>(2 * count)) + "." + types + " {" + list +
        "}, " + (a.isShared() ? "a" : "{" + left + "}") + ", b, p, 1, 1" +
        (rhs.tile.bits() == 16 ? std::string(a.isShared() ? transposed(lhs) : "") + transposed(rhs) : std::string()) +
        "; }";
    Scalars more = a.values;
    more.append(b.values);
    return assembly(e, text, sums, more, /*readsSums=*/!isFirst);
  }
};

} // namespace

void populateWarpgroupDotPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                                  const LoweringContext &context) {
  patterns.add<LowerWarpgroupDot, LowerWarpgroupBegin, LowerWarpgroupWait>(converter, context);
}

} // namespace kiln::lowering
