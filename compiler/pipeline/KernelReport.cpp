#include "compiler/pipeline/KernelReport.h"

#include "compiler/analysis/AxisAnalysis.h"
#include "compiler/layout/Explain.h"
#include "compiler/layout/MemoryAccess.h"
#include "compiler/passes/shared/SharedBuffers.h"
#include "compiler/tile_gpu/Exchange.h"
#include "compiler/tile_gpu/LayoutInference.h"

#include "llvm/Support/JSON.h"

#include <bit>

using namespace mlir;

namespace kiln {

using namespace tile_gpu;
using layout::TileLayout;

namespace {

/// "1x1024xf32": a tile without its layout; the type itself otherwise.
std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto tile = dyn_cast<RankedTensorType>(type)) {
    for (int64_t extent : tile.getShape())
      os << extent << 'x';
    if (auto pointer = dyn_cast<tile::PtrType>(tile.getElementType()))
      os << "ptr<" << pointer.getPointee() << '>';
    else
      os << tile.getElementType();
  } else {
    os << type;
  }
  return text;
}

llvm::StringRef ref(std::string_view s) {
  return {s.data(), s.size()};
}

class KernelReport {
public:
  KernelReport(func::FuncOp kernel, const Target &target)
      : kernel(kernel), target(target), axes(kernel), os(text), json(os) {}

  std::string write() {
    json.object([&] {
      json.attributeArray("operations", [&] { each([&](Operation *op) { operation(op); }); });
      json.attributeArray("memory", [&] { each([&](Operation *op) { access(op); }); });
      json.attributeArray("conversions", [&] { each([&](Operation *op) { conversion(op); }); });
      json.attributeArray("reductions", [&] { each([&](Operation *op) { reduction(op); }); });
      json.attributeArray("roles", [&] { roles(); });
      json.attributeArray("pipelines", [&] { each([&](Operation *op) { pipeline(op); }); });
      json.attributeObject("shared", [&] { shared(); });
      json.attributeArray("shared_accesses", [&] { each([&](Operation *op) { sharedAccess(op); }); });
      json.attributeArray("barriers", [&] { barriers(); });
    });
    return text;
  }

private:
  template <typename F> void each(F f) {
    kernel.walk<WalkOrder::PreOrder>([&](Operation *op) { f(op); });
  }

  void place(Operation *op) {
    const auto at = op->getLoc()->findInstanceOf<FileLineColLoc>();
    json.attribute("file", at ? llvm::json::fixUTF8(at.getFilename().getValue()) : "");
    json.attribute("line", at ? int64_t(at.getLine()) : 0);
    json.attribute("op", op->getName().getStringRef());
  }

  void error(const Status &status) { json.attribute("error", llvm::json::fixUTF8(status.toString())); }

  /// The tile that an operation makes, or writes.
  void operation(Operation *op) {
    Type shown;
    for (Type t : op->getResultTypes())
      if (!shown && layoutAttrOf(t))
        shown = t;
    if (!shown && op->getNumResults() == 0)
      for (Type t : op->getOperandTypes()) // of a store the value: pointers come before it, the mask after
        if (!shown && layoutAttrOf(t) && !isa<tile::PtrType>(tile::elementTypeOf(t)))
          shown = t;
    if (!shown || op->hasTrait<OpTrait::IsTerminator>() || op->hasTrait<OpTrait::ConstantLike>())
      return;
    json.object([&] {
      place(op);
      json.attribute("type", typeText(shown));
      json.attribute("layout", layoutAttrOf(shown).text());
      if (const Result<TileLayout> lowered = layoutOf(shown))
        json.attribute("registers", int64_t(lowered->registers()));
    });
  }

  void access(Operation *op) {
    const std::optional<tile::MemoryAccess> access = tile::globalAccessOf(op);
    if (!access)
      return;
    const Type tile = access->tile;
    json.object([&] {
      place(op);
      if (!tile) {
        json.attribute("type", "scalar");
        return;
      }
      Type element = tile::elementTypeOf(tile);
      if (auto pointer = dyn_cast<tile::PtrType>(element))
        element = pointer.getPointee();
      const unsigned bits = tile::storageBits(element);
      const Result<TileLayout> lowered = layoutOf(tile);
      const std::optional<analysis::AccessFacts> facts = axes.access(op);
      analysis::VectorAccess vector = axes.vectorAccess(op), whole = vector;
      if (facts && lowered)
        whole = analysis::unmaskedAccess(op, *facts, *lowered);
      if (access->inFlight && isa<tile::ViewType>(access->memory.getType())) // a copy leaves out the ends of runs
        vector = whole;
      json.attribute("type", typeText(tile::withElementType(tile, element)));
      json.attribute("dimension", int64_t(vector.dim));
      json.attribute("elements", int64_t(vector.elements));
      json.attribute("bytes", int64_t(vector.elements * bits / 8));
      if (!lowered)
        return error(lowered.status());
      json.attribute("layout", layoutAttrOf(tile).text());
      json.attribute("accesses", int64_t(lowered->registers() / vector.elements));
      if (whole.elements > vector.elements)
        json.attribute("whole_elements", int64_t(whole.elements));
      if (facts) {
        json.attribute("contiguous", int64_t(facts->address.contiguity(vector.dim)));
        json.attribute("aligned_bytes", int64_t(facts->address.divisibility(vector.dim)) * bits / 8);
      }
    });
  }

  void conversion(Operation *op) {
    Result<layout::TileConversionPlan> plan = Status();
    Value value;
    Type from;
    std::string to;
    if (auto convert = dyn_cast<ConvertLayoutOp>(op)) {
      value = convert.getSource();
      from = value.getType();
      to = layoutAttrOf(convert.getType()).text();
      const Result<TileLayout> source = layoutOf(from), destination = layoutOf(convert.getType());
      if (source && destination)
        plan = layout::planTileConversion(*source, *destination, planBits(from), target,
                                          planOptions(layoutAttrOf(convert.getType())));
      else
        plan = source ? destination.status() : source.status();
    } else if (auto store = dyn_cast<ExchangeStoreOp>(op); store && store.getPass() == 0) {
      value = store.getValue();
      from = value.getType();
      to = cast<LayoutAttr>(store.getDestination()).text();
      plan = exchangePlan(store);
    } else {
      return;
    }
    json.object([&] {
      place(op);
      json.attribute("type", typeText(from));
      // What expand-shared made of a reduction or scan across warps, or a conversion of the kernel's own tiles.
      const bool partial = isa_and_nonnull<ReducePartialOp, ScanPartialOp, ScanBeforeOp>(value.getDefiningOp());
      json.attribute("of", partial ? "partial results" : "a tile");
      json.attribute("from", layoutAttrOf(from).text());
      json.attribute("to", to);
      if (!plan)
        return error(plan.status());
      json.attribute("text", layout::explain(*plan));
      json.attributeBegin("plan");
      json.rawValue(layout::toJson(*plan));
      json.attributeEnd();
    });
  }

  /// The order in which a reduction combines, on which the last bits of a float result depend.
  void reduction(Operation *op) {
    unsigned axis = 0;
    if (auto partial = dyn_cast<ReducePartialOp>(op))
      axis = partial.getAxis();
    else if (auto reduce = dyn_cast<tile::ReduceOp>(op))
      axis = reduce.getAxis();
    else
      return;
    const Type source = op->getOperand(0).getType();
    json.object([&] {
      place(op);
      json.attribute("type", typeText(source));
      json.attribute("axis", int64_t(axis));
      const Result<TileLayout> lowered = layoutOf(source);
      if (!lowered)
        return error(lowered.status());
      const Result<layout::ReductionPlan> plan =
          layout::planReduction(lowered->core(), axis, planBits(source), target, layout::defaultScratchBytes,
                                lowered->repetitions() / lowered->tile().counts[axis]);
      if (!plan)
        return error(plan.status());
      json.attribute("text", layout::explain(*plan));
    });
  }

  /// Who does what.
  void roles() {
    const unsigned copyWarps = tile::numCopyWarps(kernel);
    const std::optional<RoleRegisters> registers = registersOfRoles(kernel, target);
    std::vector<std::string> copies, work;
    const auto add = [&](std::string what, bool copied = false) {
      std::vector<std::string> &of = copied && copyWarps ? copies : work;
      if (!llvm::is_contained(of, what))
        of.push_back(std::move(what));
    };
    const auto addProducts = [&](std::optional<MatrixUnit> unit) {
      add("matrix products (" + std::string(unit ? matrixUnitName(*unit) : "multiply-adds") + ")");
    };
    each([&](Operation *op) {
      for (const tile::MemoryAccess &access : tile::accessesOf(op))
        if (access.agent == tile::Agent::AsyncCopy)
          add("asynchronous copies to shared memory (cp.async)");
        else if (access.agent == tile::Agent::BulkCopy)
          add("bulk copies (TMA)", isElected(op));
        else if (access.agent == tile::Agent::BulkStore)
          add("sums by the copy engine");
        else if (access.agent == tile::Agent::MatrixUnit)
          addProducts(MatrixUnit::Wgmma);
      if (auto dot = dyn_cast<tile::DotOp>(op))
        addProducts(matrixUnitOf(layoutAttrOf(dot.getType())));
    });
    const auto role = [&](llvm::StringRef name, unsigned warps, unsigned registersOfThread,
                          const std::vector<std::string> &what) {
      json.object([&] {
        if (copyWarps)
          json.attribute("name", name);
        json.attribute("warps", int64_t(warps));
        if (registersOfThread)
          json.attribute("registers", int64_t(registersOfThread));
        json.attributeArray("work", [&] {
          for (const std::string &w : what)
            json.value(w);
        });
      });
    };
    if (copyWarps)
      role("copies", copyWarps, registers ? registers->copies : 0, copies);
    role("computes", warpsOf(kernel).count, registers ? registers->computes : 0, work);
  }

  /// Buffers that copies fill some rounds ahead of their use.
  void pipeline(Operation *op) {
    auto alloc = dyn_cast<LocalAllocOp>(op);
    auto type = alloc ? dyn_cast<BufferType>(alloc.getType()) : BufferType();
    if (!type || type.getCount() < 2)
      return;
    const Result<layout::SharedTile> slot = type.lowered();
    json.object([&] {
      place(op);
      json.attribute("name", llvm::json::fixUTF8(type.getName()));
      json.attribute("slots", type.getCount());
      json.attribute("bytes", slot ? int64_t(slot->bytes()) : 0);
    });
  }

  void shared() {
    auto bytes = kernel->getAttrOfType<IntegerAttr>(sharedBytesAttr);
    json.attribute("bytes", bytes ? bytes.getInt() : 0);
    json.attribute("limit", int64_t(target.sharedOptIn));
    llvm::SmallVector<SharedBuffer> buffers;
    const bool good = succeeded(collectSharedBuffers(kernel, buffers));
    json.attributeArray("buffers", [&] {
      for (SharedBuffer &b : good ? buffers : llvm::SmallVector<SharedBuffer>())
        json.object([&] {
          place(b.op);
          json.attribute("type", typeText(b.op.getType()));
          json.attribute("offset", int64_t(b.op.getOffset().value_or(0)));
          json.attribute("bytes", int64_t(b.bytes));
          json.attribute("alignment", int64_t(b.alignment));
          for (const auto &[name, op, number] : {std::tuple("from", b.from, b.first), std::tuple("to", b.to, b.last)})
            json.attributeObject(name, [&, op = op, number = number] {
              place(op);
              json.attribute("number", int64_t(number));
            });
        });
    });
  }

  void accessAttributes(const layout::Access &a, uint64_t instructions) {
    json.attribute("form", ref(layout::accessFormName(a.form)));
    json.attribute("bytes", int64_t(a.bytes));
    json.attribute("instructions", int64_t(instructions));
    json.attribute("wavefronts", int64_t(a.wavefronts));
    json.attribute("ideal", int64_t(a.ideal));
    json.attribute("conflicts", int64_t(instructions * (a.wavefronts - a.ideal)));
  }

  void exchange(Operation *op, const tile::MemoryAccess &access) {
    const Result<layout::TileConversionPlan> plan = exchangePlan(op, access);
    if (!plan)
      return error(plan.status());
    const layout::Access &a = access.writes ? plan->core.shared.store : plan->core.shared.load;
    json.attribute("pass", int64_t(access.exchange->pass));
    // A plan's passes share its instructions evenly, but predicated ones, whose every pass executes all.
    const uint64_t passes = plan->core.shared.predicatedPasses ? 1 : std::max(1u, plan->core.passes);
    accessAttributes(a, a.instructions / passes * exchangePass(*plan, access.exchange->pass).repetitions);
  }

  void local(const tile::MemoryAccess &access) {
    auto type = cast<BufferType>(access.memory.getType());
    const Result<layout::SharedTile> lowered = type.lowered();
    const Result<TileLayout> layout = layoutOf(access.tile);
    if (!lowered || !layout)
      return error(lowered ? layout.status() : lowered.status());
    if (std::holds_alternative<layout::Padded>(lowered->encoding().kind)) {
      json.attribute("note", "a padded buffer: element by element, conflicts are not predicted");
      return;
    }
    const Result<layout::LocalAccessPlan> plan =
        layout::planLocalAccess(layout->core(), lowered->core(), planBits(access.tile), target, access.writes);
    if (!plan)
      return error(plan.status());
    accessAttributes(plan->access, plan->access.instructions * layout->repetitions());
  }

  /// Of an operation; those in flight are among the accesses to memory.
  static tile::MemoryAccesses sharedAccesses(Operation *op) {
    tile::MemoryAccesses out = tile::accessesOf(op);
    llvm::erase_if(out, [](const tile::MemoryAccess &a) { return !a.in<SharedMemory>() || a.inFlight; });
    return out;
  }

  void sharedAccess(Operation *op) {
    bool noted = false; // once for all that has no plan
    for (const tile::MemoryAccess &access : sharedAccesses(op)) {
      if (access.memory && isa<MbarriersType>(access.memory.getType()))
        continue; // one thread of a warp: no conflicts
      const bool planned = access.exchange || (access.tile && access.agent == tile::Agent::Threads);
      if (!planned && std::exchange(noted, true))
        continue;
      json.object([&] {
        place(op);
        if (access.exchange)
          exchange(op, access);
        else if (planned)
          local(access);
        else if (access.agent == tile::Agent::Threads)
          json.attribute("note", "any thread, any byte: conflicts depend on numbers of the run, such as indices");
        else
          json.attribute("note", "read by the matrix unit: no wavefronts of loads");
      });
    }
  }

  /// Each barrier with the accesses to shared memory before and after it in the text.
  void barriers() {
    auto isBarrier = [](Operation *op) {
      const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(op);
      return ordering && ordering->meets();
    };
    llvm::SmallVector<Operation *> order;
    each([&](Operation *op) {
      if (isBarrier(op) || !sharedAccesses(op).empty())
        order.push_back(op);
    });
    for (size_t i = 0; i < order.size(); ++i) {
      if (!isBarrier(order[i]))
        continue;
      Operation *before = nullptr, *after = nullptr;
      for (size_t j = i; j-- > 0 && !before;)
        before = isBarrier(order[j]) ? nullptr : order[j];
      for (size_t j = i + 1; j < order.size() && !after; ++j)
        after = isBarrier(order[j]) ? nullptr : order[j];
      json.object([&] {
        place(order[i]);
        for (const auto &[name, op] : {std::pair("after", before), std::pair("before", after)})
          if (op)
            json.attributeObject(name, [&, op = op] { place(op); });
      });
    }
  }

  func::FuncOp kernel;
  const Target &target;
  analysis::AxisAnalysis axes;
  std::string text;
  llvm::raw_string_ostream os;
  llvm::json::OStream json;
};

} // namespace

std::string reportKernel(func::FuncOp kernel, const Target &target) {
  return KernelReport(kernel, target).write();
}

} // namespace kiln
