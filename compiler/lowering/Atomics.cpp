// Atomic operations on global memory.  All are inline PTX: LLVM's atomicrmw loses order and scope on this target.
//
// Each element acts once, by its owner, and masked elements do not act (their result is zero).  Copies of a result
// inside a warp take it from the owner by shuffles; where several warps need it expand-shared has made the owner write
// it to shared memory, and only the owner's value counts here.
#include "compiler/lowering/GlobalAccess.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

using layout::BitVector;
using layout::InDim;
using layout::TileLayout;
using tile::Rmw;

std::string orderAndScope(tile::Order order, tile::Scope scope) {
  return "." + tile::stringifyOrder(order).str() + "." + tile::stringifyScope(scope).str();
}

/// The constraint letter of a scalar of inline assembly.
const char *constraint(Type t) {
  if (t.isF32())
    return "f";
  if (t.isF64())
    return "d";
  switch (t.getIntOrFloatBitWidth()) {
  case 16:
    return "h";
  case 32:
    return "r";
  default:
    return "l";
  }
}

Value assembly(const Emit &e, llvm::StringRef text, llvm::StringRef constraints, ValueRange operands, Type result) {
  auto op = LLVM::InlineAsmOp::create(e.b, e.loc, result ? TypeRange(result) : TypeRange(), operands, text,
                                      (constraints + ",~{memory}").str(), /*has_side_effects=*/true,
                                      /*is_align_stack=*/false, LLVM::TailCallKind::None, LLVM::AsmDialectAttr(),
                                      ArrayAttr());
  return result ? op.getResult(0) : Value();
}

/// atom.cas of integers of 16, 32 or 64 bits.
Value compareAndSwap(const Emit &e, const std::string &how, Value address, Value expected, Value desired) {
  const Type t = expected.getType();
  const std::string c = constraint(t), width = std::to_string(t.getIntOrFloatBitWidth());
  return assembly(e, "atom" + how + ".global.cas.b" + width + " $0, [$1], $2, $3;", "=" + c + ",l," + c + "," + c,
                  {address, expected, desired}, t);
}

//===----------------------------------------------------------------------===//
// Read, operation, write
//===----------------------------------------------------------------------===//

/// The suffix of atom that does it in hardware, or nothing: then it is a loop around compare and swap.
std::optional<std::string> hardwareForm(Rmw kind, Type t) {
  const std::string width = t.isIntOrFloat() ? std::to_string(t.getIntOrFloatBitWidth()) : "";
  if (isa<FloatType>(t)) {
    if (kind == Rmw::Exchange)
      return "exch.b" + width;
    if (kind != Rmw::Add || t.isBF16())
      return std::nullopt;
    return t.isF16() ? "add.noftz.f16" : "add.f" + width;
  }
  switch (kind) {
  case Rmw::Add:
    return "add.u" + width;
  case Rmw::Min:
    return "min.s" + width;
  case Rmw::Max:
    return "max.s" + width;
  case Rmw::UMin:
    return "min.u" + width;
  case Rmw::UMax:
    return "max.u" + width;
  case Rmw::And:
    return "and.b" + width;
  case Rmw::Or:
    return "or.b" + width;
  case Rmw::Xor:
    return "xor.b" + width;
  case Rmw::Exchange:
    return "exch.b" + width;
  }
  return std::nullopt;
}

Value combine(const Emit &e, Rmw kind, Value x, Value y) {
  switch (kind) {
  case Rmw::Min:
    return arith::MinNumFOp::create(e.b, e.loc, x, y);
  case Rmw::Max:
    return arith::MaxNumFOp::create(e.b, e.loc, x, y);
  default:
    return arith::AddFOp::create(e.b, e.loc, x, y);
  }
}

/// The old value.
Value loopAround(const Emit &e, Rmw kind, const std::string &how, tile::Scope scope, Value address, Value value) {
  const Type type = value.getType(), bits = e.i(type.getIntOrFloatBitWidth());
  const std::string c = constraint(bits), width = std::to_string(bits.getIntOrFloatBitWidth());
  const Value first =
      assembly(e, "ld.relaxed." + tile::stringifyScope(scope).str() + ".global.b" + width + " $0, [$1];",
               "=" + c + ",l", {address}, bits);
  // Until memory still holds what the new value was computed from.
  auto loop = scf::WhileOp::create(e.b, e.loc, TypeRange(bits), ValueRange(first));
  OpBuilder::InsertionGuard guard(e.b);
  Block *before = e.b.createBlock(&loop.getBefore(), {}, {bits}, {e.loc});
  const Value seen = before->getArgument(0);
  const Value next = e.bitcast(combine(e, kind, e.bitcast(seen, type), value), bits);
  const Value found = compareAndSwap(e, how, address, seen, next);
  scf::ConditionOp::create(e.b, e.loc, e.compare(arith::CmpIPredicate::ne, found, seen), ValueRange(found));
  Block *after = e.b.createBlock(&loop.getAfter(), {}, {bits}, {e.loc});
  scf::YieldOp::create(e.b, e.loc, ValueRange(after->getArgument(0)));
  e.b.setInsertionPointAfter(loop);
  return e.bitcast(loop.getResult(0), type);
}

/// Adds neighbouring f32.
void addNeighbours(const Emit &e, tile::AtomicRmwOp op, Value address, ArrayRef<Value> values) {
  std::string list, constraints;
  Scalars operands;
  const auto add = [&](Value v, const char *constraint) {
    operands.push_back(v);
    constraints += (constraints.empty() ? "" : ",") + std::string(constraint);
    return "$" + std::to_string(operands.size() - 1);
  };
  const std::string where = add(address, "l");
  for (Value v : values)
    list += (list.empty() ? "" : ", ") + add(v, "f");
  assembly(e,
           "red" + orderAndScope(op.getOrder(), op.getScope()) + ".global.add.v" + std::to_string(values.size()) +
               ".f32 [" + where + "], {" + list + "};",
           constraints, operands, Type());
}

Value readModifyWrite(const Emit &e, tile::AtomicRmwOp op, Value address, Value value, bool used) {
  const Type type = value.getType();
  const std::string how = orderAndScope(op.getOrder(), op.getScope());
  const std::optional<std::string> form = hardwareForm(op.getKind(), type);
  if (!form)
    return loopAround(e, op.getKind(), how, op.getScope(), address, value);
  const bool asBits = type.isF16() || op.getKind() == Rmw::Exchange;
  const Value operand = asBits ? e.bitcast(value, e.i(type.getIntOrFloatBitWidth())) : value;
  const std::string c = constraint(operand.getType());
  // `red` knows no acquire, and no exchange.
  const bool reduction = !used && op.getKind() != Rmw::Exchange &&
                         (op.getOrder() == tile::Order::Relaxed || op.getOrder() == tile::Order::Release);
  if (reduction) {
    assembly(e, "red" + how + ".global." + *form + " [$0], $1;", "l," + c, {address, operand}, Type());
    return {};
  }
  const Value old = assembly(e, "atom" + how + ".global." + *form + " $0, [$1], $2;", "=" + c + ",l," + c,
                             {address, operand}, operand.getType());
  return e.bitcast(old, type);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Gives every copy inside a warp the value of its element's owner.
class WarpBroadcast {
public:
  WarpBroadcast(const LoweringContext &context, const Emit &e, const TileLayout &layout)
      : context(context), e(e), layout(layout) {
    const layout::LinearLayout &core = layout.core();
    const layout::Columns owners = core.ownerMap();
    const unsigned registerBits = core.bits(InDim::Register);
    llvm::SmallVector<BitVector> lanes;
    for (unsigned i = 0; i < core.bits(InDim::Lane); ++i) {
      const BitVector owner = owners[core.hardwareStart(InDim::Lane) + i];
      lanes.push_back(owner >> registerBits & layout::lowMask(layout::laneBits));
      if (BitVector registers = owner & layout::lowMask(registerBits))
        otherRegister.push_back({i, static_cast<unsigned>(registers)});
    }
    ownerLane = context.linear(lanes, {});
  }

  Scalars run(ArrayRef<Value> values) {
    Scalars out;
    for (unsigned r : representatives(layout))
      out.push_back(pick(values, r, otherRegister.size()));
    return out;
  }

private:
  /// The element of register r; the first `bits` entries of otherRegister are still open.
  Value pick(ArrayRef<Value> values, unsigned r, size_t bits) {
    if (bits == 0) {
      Value &known = shuffled[r];
      if (!known)
        known = e.shuffle(NVVM::ShflKind::idx, values[r], ownerLane ? ownerLane : e.i32(0));
      return known;
    }
    const auto &[lane, registers] = otherRegister[bits - 1];
    const Value there = pick(values, r ^ registers, bits - 1), here = pick(values, r, bits - 1);
    return e.select(context.parity(1u << lane, 0), there, here);
  }

  const LoweringContext &context;
  const Emit &e;
  const TileLayout &layout;
  Value ownerLane;
  llvm::SmallVector<std::pair<unsigned, unsigned>> otherRegister; ///< lane bit, registers that the owner's differ by
  llvm::DenseMap<unsigned, Value> shuffled;
};

/// Only the threads that act know the result; other uses than writing it to shared memory need expand-shared.
template <typename Allowed> LogicalResult checkUses(Operation *op, llvm::StringRef who) {
  for (Operation *user : op->getResult(0).getUsers())
    if (!isa<Allowed>(user)) {
      InFlightDiagnostic d = op->emitOpError()
                             << "has a result that only " << who << " knows, and other threads use it";
      d.attachNote() << "run kiln-expand-shared before kiln-lower-tiles";
      return d;
    }
  return success();
}

/// What is common to both atomics: who acts, masks, and the way of the results.
template <typename Op> struct LowerAtomic : Lowering<Op> {
  using Lowering<Op>::Lowering;
  using Adaptor = typename Lowering<Op>::Adaptor;

  LogicalResult matchAndRewrite(Op op, Adaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    const LoweringContext &context = this->context;
    const Emit e(rewriter, op.getLoc());
    const bool used = !op.getResult().use_empty();
    auto tile = dyn_cast<RankedTensorType>(op.getPointer().getType());
    const TileLayout *layout = tile ? &context.layout(tile) : nullptr;
    const bool acrossWarps = layout && layout->core().freeMask(InDim::Warp) != 0;
    if (!layout && failed(checkUses<tile::SplatOp>(op, "thread 0")))
      return failure();
    if (acrossWarps && failed(checkUses<tile_gpu::LocalStoreOp>(op, "its owner")))
      return failure();

    const analysis::VectorAccess together =
        layout && context.target().has(Capability::VectorAtomics) ? context.access(op) : analysis::VectorAccess();
    const Value owner = layout ? context.owns(layout->core()) : context.firstThread();
    const llvm::SmallVector<AccessGroup> groups =
        layout ? groupRegisters(*layout, together.dim, together.elements) : llvm::SmallVector<AccessGroup>{{0}};
    const Value zero = e.zero(scalarType(tile::elementTypeOf(op.getResult().getType())));
    Scalars out(adaptor.getPointer().size(), zero);
    for (const AccessGroup &group : groups) {
      const unsigned r = group.front();
      const Value condition = e.both(owner, maskOf(adaptor, r));
      if (group.size() > 1) {
        // A branch even for one instruction: those of one condition become one.
        e.guarded(condition, [&](Emit &inside) { actTogether(inside, op, adaptor, group); });
        continue;
      }
      if (!used) {
        e.guarded(condition, [&](Emit &inside) { act(inside, op, adaptor, r, false); });
        continue;
      }
      out[r] = e.guarded(condition, {zero}, [&](Emit &inside) -> Scalars {
                  return {act(inside, op, adaptor, r, true)};
                }).front();
    }
    if (used && layout) {
      if (acrossWarps || layout::Owners(layout->core()).everyThread()) {
        const Scalars owned = out;
        for (auto [r, from] : llvm::enumerate(representatives(*layout)))
          out[r] = owned[from];
      } else {
        out = WarpBroadcast(context, e, *layout).run(out);
      }
    }
    replace(rewriter, op, std::move(out));
    return success();
  }

private:
  static void actTogether(const Emit &e, tile::AtomicRmwOp op, Adaptor adaptor, const AccessGroup &group) {
    Scalars values;
    for (unsigned r : group)
      values.push_back(adaptor.getValue()[r]);
    addNeighbours(e, op, adaptor.getPointer()[group.front()], values);
  }
  /// A comparison is one element's.
  static void actTogether(const Emit &, tile::AtomicCasOp, Adaptor, const AccessGroup &) {}

  static Value maskOf(typename tile::AtomicRmwOp::template GenericAdaptor<ArrayRef<ValueRange>> adaptor, unsigned r) {
    return adaptor.getMask().empty() ? Value() : adaptor.getMask()[r];
  }
  static Value maskOf(typename tile::AtomicCasOp::template GenericAdaptor<ArrayRef<ValueRange>>, unsigned) {
    return {};
  }
  static Value act(const Emit &e, tile::AtomicRmwOp op, Adaptor adaptor, unsigned r, bool used) {
    return readModifyWrite(e, op, adaptor.getPointer()[r], adaptor.getValue()[r], used);
  }
  static Value act(const Emit &e, tile::AtomicCasOp op, Adaptor adaptor, unsigned r, bool) {
    const Type type = adaptor.getExpected()[r].getType();
    const Value old = compareAndSwap(e, orderAndScope(op.getOrder(), op.getScope()), adaptor.getPointer()[r],
                                     e.toBits(adaptor.getExpected()[r]), e.toBits(adaptor.getDesired()[r]));
    return e.fromBits(old, type);
  }
};

/// Reads until the count is large enough; `seen`: what was read of it already.
void awaitCount(const Emit &e, Value counter, Value before, Value seen) {
  const Type i32 = before.getType();
  auto loop = scf::WhileOp::create(e.b, e.loc, TypeRange(), ValueRange(seen));
  OpBuilder::InsertionGuard guard(e.b);
  Block *ask = e.b.createBlock(&loop.getBefore(), {}, {i32}, {e.loc});
  scf::ConditionOp::create(e.b, e.loc, e.compare(arith::CmpIPredicate::slt, ask->getArgument(0), before), ValueRange());
  e.b.createBlock(&loop.getAfter());
  const Value now = assembly(e, "ld.acquire.gpu.global.b32 $0, [$1];", "=r,l", {counter}, i32);
  scf::YieldOp::create(e.b, e.loc, ValueRange(now));
}

struct LowerAwait : Lowering<tile_gpu::AwaitOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::AwaitOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    e.guarded(context.firstThread(), [&](Emit &inside) {
      awaitCount(inside, adaptor.getCounter().front(), adaptor.getBefore().front(), inside.i32(0));
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerCount : Lowering<tile_gpu::CountOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::CountOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const Value counter = adaptor.getCounter().front(), counts = adaptor.getCounts().front();
    const auto count = [&](const Emit &where, const std::string &order) {
      where.guarded(counts, [&](Emit &inside) {
        assembly(inside, "red." + order + ".gpu.global.add.u32 [$0], $1;", "l,r", {counter, inside.i32(1)}, Type());
      });
    };
    e.guarded(context.isElected(op) ? Value() : context.firstThread(), [&](Emit &inside) {
      if (!op.getNext())
        return count(inside, "release");
      // The fence orders what is counted before the count, and what comes after the number that was read.
      const Value next = adaptor.getNext().front(), before = adaptor.getBefore().front();
      const Value seen = assembly(inside, "ld.relaxed.gpu.global.b32 $0, [$1];", "=r,l", {next}, before.getType());
      assembly(inside, "fence.acq_rel.gpu;", "", {}, Type());
      count(inside, "relaxed");
      awaitCount(inside, next, before, seen);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void populateAtomicPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                            const LoweringContext &context) {
  patterns.add<LowerAtomic<tile::AtomicRmwOp>, LowerAtomic<tile::AtomicCasOp>, LowerAwait, LowerCount>(converter,
                                                                                                       context);
}

} // namespace kiln::lowering
