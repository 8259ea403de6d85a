// tile.dot: mma.sync where the accumulator has an mma layout, multiply-adds of each thread where it has a blocked one.
//
// Registers are found by what they hold: the layouts of operands and accumulator give each thread's part of a
// coordinate the same way, so the coordinates that the registers add decide which of them belong together.
#include "compiler/lowering/Emit.h"

#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/Purpose.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <algorithm>

using namespace mlir;

namespace kiln::lowering {
namespace {

using layout::Coords;
using layout::TileLayout;

/// The registers of a tile by the coordinates that they add to their thread's.
class Registers {
public:
  explicit Registers(const TileLayout &layout) : rank(layout.dims()) {
    for (unsigned d = 0; d < rank; ++d)
      extents.push_back(layout.shape(d));
    for (unsigned r = 0; r < layout.registers(); ++r) {
      const Coords c = layout.coords(r, 0, 0, 0);
      at.try_emplace({rank == 3 ? c[0] : 0, c[rank - 2], c[rank - 1]}, r);
    }
  }
  /// The register there; nothing if no register adds these coordinates.
  std::optional<unsigned> find(unsigned batch, unsigned row, unsigned column) const {
    const auto it = at.find({batch, row, column});
    return it == at.end() ? std::nullopt : std::optional(it->second);
  }
  /// The distinct coordinates along one dimension (0 batch, 1 row, 2 column), rising.
  llvm::SmallVector<unsigned> along(unsigned dim) const {
    llvm::SmallVector<unsigned> out;
    for (const auto &[c, r] : at)
      out.push_back(c[dim]);
    llvm::sort(out);
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

private:
  unsigned rank;
  llvm::SmallVector<unsigned> extents;
  std::map<std::array<unsigned, 3>, unsigned> at;
};

/// The instruction that multiplies, and the operands' type.
struct Unit {
  MatrixInstruction instruction;
  Type element;
  unsigned perWord() const { return 32 / instruction.bits(); } ///< neighbours along K in a word
  bool halfRows() const { return instruction.m == 8; }         ///< a word of rows, not two
};

struct LowerDot : Lowering<tile::DotOp> {
  using Lowering::Lowering;

  LogicalResult matchAndRewrite(tile::DotOp op, Adaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    const TileLayout &a = context.layout(op.getLhs().getType()), &b = context.layout(op.getRhs().getType()),
                     &c = context.layout(op.getType());
    const auto layout = tile_gpu::layoutAttrOf(op.getType());
    const auto *mma = std::get_if<layout::Mma>(&layout.encoding().kind);
    const Registers lhs(a), rhs(b), sums(c);
    const auto ks = lhs.along(2);
    if (const Status status = checkLayouts(op); !status.ok())
      return tile_gpu::report(op, status);
    const Emit e(rewriter, op.getLoc());
    Scalars out(adaptor.getAccumulator().begin(), adaptor.getAccumulator().end());
    if (!mma) {
      multiplyAdd(e, op, adaptor, lhs, rhs, sums, ks, out);
    } else {
      if (tile_gpu::matrixUnitOf(layout) != MatrixUnit::MmaSync)
        return tile_gpu::report(op, Status(StatusCode::Unsupported, "a dot in an mma layout of version 3 (wgmma)",
                                           "use version=2, or leave the layout to kiln-accelerate-dot"));
      Result<Unit> unit = unitFor(op, ks);
      if (!unit)
        return tile_gpu::report(op, unit.takeStatus());
      matrixUnit(e, op, adaptor, lhs, rhs, sums, ks, *unit, out);
    }
    replace(rewriter, op, std::move(out));
    return success();
  }

private:
  /// The operands lie as the accumulator's layout says, K dealt out alike.
  static Status checkLayouts(tile::DotOp op) {
    const tile_gpu::LayoutAttr work = tile_gpu::layoutAttrOf(op.getType());
    if (!std::holds_alternative<layout::Mma>(work.encoding().kind) &&
        !std::holds_alternative<layout::Blocked>(work.encoding().kind))
      return Status(StatusCode::CompileError, "a dot in the layout #tile_gpu." + work.text().str(),
                    "give its result an mma or a blocked layout");
    std::int64_t widths[2] = {0, 0};
    for (unsigned i = 0; i < 2; ++i) {
      OpOperand &operand = op->getOpOperand(i);
      const tile_gpu::LayoutAttr have = tile_gpu::layoutAttrOf(operand.get().getType());
      const std::optional<tile_gpu::LayoutAttr> need = tile_gpu::operandLayout(operand, work);
      if (need && tile_gpu::sameLayout(operand.get().getType(), have, *need))
        continue;
      const auto *dot = std::get_if<layout::DotOperand>(&have.encoding().kind);
      if (!dot || dot->op != i || tile_gpu::workLayout(operand, have) != work)
        return Status(StatusCode::CompileError,
                      "operand " + std::to_string(i) + " of a dot has the layout #tile_gpu." + have.text().str(),
                      "convert it to " + (need ? "#tile_gpu." + need->text().str() : std::string("a dot layout")));
      widths[i] = dot->kWidth;
    }
    if (widths[0] == widths[1])
      return {};
    return Status(StatusCode::CompileError, "the operands of a dot deal out K differently",
                  "give both operands' dot layouts one kWidth");
  }

  //===--- multiply-adds ---------------------------------------------------===//

  static void multiplyAdd(const Emit &e, tile::DotOp op, Adaptor adaptor, const Registers &lhs, const Registers &rhs,
                          const Registers &sums, llvm::ArrayRef<unsigned> ks, Scalars &out) {
    const Type sum = op.getType().getElementType();
    const auto widened = [&](ValueRange values) {
      Scalars list(values.begin(), values.end());
      for (Value &v : list)
        if (v.getType() != sum)
          v = isa<FloatType>(sum) ? Value(arith::ExtFOp::create(e.b, e.loc, sum, v))
                                  : Value(arith::ExtSIOp::create(e.b, e.loc, sum, v));
      return list;
    };
    const Scalars x = widened(adaptor.getLhs()), y = widened(adaptor.getRhs());
    for (unsigned batch : sums.along(0))
      for (unsigned m : sums.along(1))
        for (unsigned n : sums.along(2)) {
          Value &v = out[*sums.find(batch, m, n)];
          for (unsigned k : ks) {
            const Value p = x[*lhs.find(batch, m, k)], q = y[*rhs.find(batch, k, n)];
            v = isa<FloatType>(sum) ? Value(math::FmaOp::create(e.b, e.loc, p, q, v)) : e.add(e.mul(p, q), v);
          }
        }
  }

  //===--- mma.sync --------------------------------------------------------===//

  /// Of the target's instructions whose K divides that of the tile, the one of the most rows and the longest K.
  Result<Unit> unitFor(tile::DotOp op, llvm::ArrayRef<unsigned> ks) const {
    const Target &target = context.target();
    const Type element = op.getLhs().getType().getElementType();
    const std::optional<MatrixElements> elements = tile_gpu::matrixElementsOf(op);
    std::optional<Unit> best;
    if (elements) {
      const unsigned perWord = 32 / element.getIntOrFloatBitWidth();
      // The threads of a row hold four words side by side along K.
      const auto extent = unsigned(op.getLhs().getType().getDimSize(op.getType().getRank() - 1));
      if ((extent & -extent) < 4 * perWord || ks.size() % perWord)
        return Status(StatusCode::CompileError,
                      "a dot of " + std::to_string(extent) +
                          " along K is not for mma.sync, which needs a multiple of " + std::to_string(4 * perWord),
                      "use a blocked layout, or leave the layout to kiln-accelerate-dot");
      for (const MatrixInstruction &i : matrixInstructions(target, MatrixUnit::MmaSync, *elements))
        if (ks.size() / perWord % i.wordsOfK() == 0 &&
            (!best || std::pair(i.m, i.k) > std::pair(best->instruction.m, best->instruction.k)))
          best = Unit{i, element};
    }
    if (best)
      return *best;
    return Status(StatusCode::Unsupported,
                  "mma.sync of " + std::string(target.name) + " takes no such operands (" +
                      std::to_string(element.getIntOrFloatBitWidth()) + " bits, precision " +
                      stringifyPrecision(op.getPrecision()).str() + ")",
                  "use a blocked layout, or leave the layout to kiln-accelerate-dot");
  }

  /// perWord elements as the instruction wants them.
  static Value wordOf(const Emit &e, const Unit &unit, llvm::ArrayRef<Value> parts) {
    if (unit.element.isF32()) // tf32, made before
      return parts.front();
    Scalars bits;
    for (Value v : parts)
      bits.push_back(e.toBits(v));
    const Value word = e.joinWord(bits);
    return unit.element.isF16() ? e.bitcast(word, VectorType::get({2}, unit.element)) : word;
  }

  /// f32 rounded to tf32, as the bits of a word.
  static Value tf32(const Emit &e, Value v) {
    return NVVM::ConvertFloatToTF32Op::create(e.b, e.loc, e.i(32), v, NVVM::FPRoundingMode::RNA,
                                              NVVM::SaturationMode::NONE, false);
  }

  void matrixUnit(const Emit &e, tile::DotOp op, Adaptor adaptor, const Registers &lhs, const Registers &rhs,
                  const Registers &sums, llvm::ArrayRef<unsigned> ks, const Unit &unit, Scalars &out) const {
    Scalars x(adaptor.getLhs().begin(), adaptor.getLhs().end()), y(adaptor.getRhs().begin(), adaptor.getRhs().end());
    Scalars restX, restY; // what rounding to tf32 took away
    const bool isRounded = op->hasAttr(tile_gpu::roundedOperands);
    const bool rounds = unit.element.isF32(), three = rounds && op.getPrecision() == tile::Precision::Tf32x3;
    if (three) {
      restX.resize(x.size());
      restY.resize(y.size());
    }
    const auto round = [&](Scalars &values, Scalars &rests, llvm::SmallVector<unsigned> registers) {
      llvm::sort(registers);
      registers.erase(std::unique(registers.begin(), registers.end()), registers.end());
      for (unsigned r : registers) {
        const Value whole = values[r];
        values[r] = isRounded ? e.bitcast(whole, e.b.getI32Type()) : tf32(e, whole);
        if (three)
          rests[r] = tf32(e, arith::SubFOp::create(e.b, e.loc, whole, e.bitcast(values[r], whole.getType())));
      }
    };
    const auto rowsOfC = sums.along(1), columns = sums.along(2);
    const bool hasNeighbour = op.getType().getShape().back() % 2 == 0;
    const unsigned words = unit.instruction.wordsOfK(), perWord = unit.perWord();
    const auto operand = [&](const Scalars &values, auto &&registerAt, unsigned step) {
      llvm::SmallVector<Value> parts;
      for (unsigned i = 0; i < perWord; ++i)
        parts.push_back(values[registerAt(ks[step * perWord + i])]);
      return wordOf(e, unit, parts);
    };
    for (unsigned batch : sums.along(0))
      for (unsigned step = 0; step < ks.size() / perWord; step += words) {
        // Words of rhs by column, of lhs by row, made once.
        std::map<unsigned, llvm::SmallVector<Value>> ofColumn[2], ofRow[2];
        const auto fill = [&](unsigned which, const Scalars &l, const Scalars &r) {
          for (unsigned w = 0; w < words; ++w) {
            for (unsigned m : rowsOfC)
              ofRow[which][m].push_back(operand(l, [&](unsigned k) { return *lhs.find(batch, m, k); }, step + w));
            for (unsigned n : columns)
              if (rhs.find(batch, ks.front(), n))
                ofColumn[which][n].push_back(operand(r, [&](unsigned k) { return *rhs.find(batch, k, n); }, step + w));
          }
        };
        if (rounds) {
          // Of this step alone: all of both operands in parts would be alive at once.
          llvm::SmallVector<unsigned> ofLhs, ofRhs;
          for (unsigned k : llvm::ArrayRef(ks).slice(step * perWord, words * perWord)) {
            for (unsigned m : rowsOfC)
              ofLhs.push_back(*lhs.find(batch, m, k));
            for (unsigned n : columns)
              if (rhs.find(batch, ks.front(), n))
                ofRhs.push_back(*rhs.find(batch, k, n));
          }
          round(x, restX, std::move(ofLhs));
          round(y, restY, std::move(ofRhs));
        }
        fill(0, x, y);
        if (three)
          fill(1, restX, restY);
        for (auto &[n, unused] : ofColumn[0]) {
          llvm::SmallVector<bool> done(rowsOfC.size());
          for (unsigned i = 0; i < rowsOfC.size(); ++i) {
            if (done[i])
              continue;
            // The second half of the rows; a tile without it repeats the first.
            const auto other = llvm::find(rowsOfC, rowsOfC[i] + 8);
            const bool pair = other != rowsOfC.end() && !done[other - rowsOfC.begin()];
            done[i] = true;
            if (pair)
              done[other - rowsOfC.begin()] = true;
            const unsigned m0 = rowsOfC[i], m1 = pair ? *other : m0;
            // The neighbour along N is of this instruction unless the tile's core is one column, which all lanes hold.
            const unsigned n1 = hasNeighbour ? n + 1 : n;
            const unsigned at[] = {*sums.find(batch, m0, n), *sums.find(batch, m0, n1), *sums.find(batch, m1, n),
                                   *sums.find(batch, m1, n1)};
            Scalars sum;
            for (unsigned r : at)
              sum.push_back(out[r]);
            const auto multiply = [&](unsigned l, unsigned r) {
              multiplyOnce(e, op, unit, ofRow[l][m0], ofRow[l][m1], ofColumn[r][n], sum);
            };
            if (three) { // small products first
              multiply(1, 0);
              multiply(0, 1);
            }
            multiply(0, 0);
            for (unsigned j = 4; j-- > 0;) // the first of equal registers wins
              out[at[j]] = sum[j];
          }
        }
      }
  }

  void multiplyOnce(const Emit &e, tile::DotOp op, const Unit &unit, llvm::ArrayRef<Value> upper,
                    llvm::ArrayRef<Value> lower, llvm::ArrayRef<Value> column, Scalars &sum) const {
    const Type type = sum.front().getType();
    if (unit.halfRows()) { // an instruction of 8 rows, twice
      for (unsigned half = 0; half < 2; ++half) {
        const Scalars two =
            instruction(e, op, unit, half ? lower : upper, column, llvm::ArrayRef<Value>(sum).slice(2 * half, 2), type);
        sum[2 * half] = two[0];
        sum[2 * half + 1] = two[1];
      }
      return;
    }
    llvm::SmallVector<Value> words;
    for (unsigned w = 0; w < upper.size(); ++w) {
      words.push_back(upper[w]);
      words.push_back(lower[w]);
    }
    sum = instruction(e, op, unit, words, column, sum, type);
  }

  Scalars instruction(const Emit &e, tile::DotOp op, const Unit &unit, llvm::ArrayRef<Value> a, llvm::ArrayRef<Value> b,
                      llvm::ArrayRef<Value> c, Type type) const {
    MLIRContext *mlir = e.b.getContext();
    const Type result = LLVM::LLVMStructType::getLiteral(mlir, llvm::SmallVector<Type>(c.size(), type));
    Value made;
    if (isa<Float8E4M3FNType, Float8E5M2Type>(unit.element)) {
      // NVVM's operation does not take these types; LLVM's intrinsic does.
      const auto name = [](Type t) { return isa<Float8E4M3FNType>(t) ? "e4m3" : "e5m2"; };
      const std::string intrinsic = "llvm.nvvm.mma." + unit.instruction.shape(unit.instruction.leastN) +
                                    ".row.col.f32." + name(unit.element) + "." +
                                    name(op.getRhs().getType().getElementType()) + ".f32";
      llvm::SmallVector<Value> operands(a);
      operands.append(b.begin(), b.end());
      operands.append(c.begin(), c.end());
      made = LLVM::CallIntrinsicOp::create(e.b, e.loc, result, e.b.getStringAttr(intrinsic), operands).getResult(0);
    } else {
      std::optional<std::array<NVVM::MMATypes, 2>> types;
      std::optional<NVVM::MMAIntOverflow> overflow;
      if (unit.element.isInteger(8)) {
        types = {NVVM::MMATypes::s8, NVVM::MMATypes::s8};
        overflow = NVVM::MMAIntOverflow::wrapped;
      } else if (unit.element.isBF16()) {
        types = {NVVM::MMATypes::bf16, NVVM::MMATypes::bf16};
      } else if (unit.element.isF32()) {
        types = {NVVM::MMATypes::tf32, NVVM::MMATypes::tf32};
      }
      made =
          NVVM::MmaOp::create(e.b, e.loc, result, a, b, c,
                              llvm::ArrayRef<int64_t>{unit.instruction.m, unit.instruction.leastN, unit.instruction.k},
                              std::nullopt, overflow, types, std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
    }
    made.getDefiningOp()->setAttr(tile_gpu::purposeAttr, e.b.getStringAttr(tile_gpu::purpose::product));
    Scalars out;
    for (unsigned i = 0; i < c.size(); ++i)
      out.push_back(LLVM::ExtractValueOp::create(e.b, e.loc, made, i));
    return out;
  }
};

} // namespace

void populateDotPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                         const LoweringContext &context) {
  patterns.add<LowerDot>(converter, context);
}

} // namespace kiln::lowering
