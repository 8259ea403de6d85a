#include "compiler/lowering/GlobalAccess.h"

#include "compiler/layout/Gf2.h"

using namespace mlir;

namespace kiln::lowering {

using layout::BitVector;
using layout::InDim;
using layout::LinearLayout;
using layout::TileLayout;

llvm::SmallVector<unsigned> representatives(const TileLayout &layout) {
  const LinearLayout &core = layout.core();
  const layout::Span registers(core.columns(InDim::Register));
  const unsigned count = core.size(InDim::Register);
  llvm::SmallVector<unsigned> out;
  for (unsigned rep = 0; rep < layout.repetitions(); ++rep)
    for (unsigned r = 0; r < count; ++r)
      out.push_back(rep * count + static_cast<unsigned>(*registers.solve(core.apply(r, 0, 0, 0))));
  return out;
}

llvm::SmallVector<AccessGroup> groupRegisters(const TileLayout &layout, unsigned dim, unsigned elements) {
  const LinearLayout &core = layout.core();
  const layout::Span registers(core.columns(InDim::Register));
  const unsigned count = core.size(InDim::Register);
  const BitVector copies = core.freeMask(InDim::Register);
  llvm::SmallVector<unsigned, 8> steps = {0}; // register of element s of a vector, to be xor-ed to the first one's
  for (unsigned bit = 0; 1u << bit < elements; ++bit) {
    const unsigned direction = static_cast<unsigned>(*registers.solve(core.unit(dim, bit)));
    for (unsigned s = 0, n = steps.size(); s < n; ++s)
      steps.push_back(steps[s] ^ direction);
  }
  llvm::SmallVector<AccessGroup> out;
  for (unsigned rep = 0; rep < layout.repetitions(); ++rep)
    for (unsigned r = 0; r < count; ++r) {
      if (r & copies || (elements > 1 && core.coord(core.apply(r, 0, 0, 0), dim) & (elements - 1)))
        continue;
      AccessGroup group;
      for (unsigned step : steps)
        group.push_back(rep * count + (r ^ step));
      out.push_back(std::move(group));
    }
  return out;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

namespace {

unsigned bytesOf(Type stored) {
  return isa<LLVM::LLVMPointerType>(stored) ? 8 : stored.getIntOrFloatBitWidth() / 8;
}

Value reinterpret(const Emit &e, Value v, Type type) {
  if (v.getType() == type)
    return v;
  if (isa<LLVM::LLVMPointerType>(type))
    return LLVM::IntToPtrOp::create(e.b, e.loc, type, v);
  if (isa<LLVM::LLVMPointerType>(v.getType()))
    return LLVM::PtrToIntOp::create(e.b, e.loc, type, v);
  return e.bitcast(v, type);
}

/// Elements of a vector, or the one value.
Scalars unpack(const Emit &e, Value loaded, unsigned count) {
  if (count == 1)
    return {loaded};
  Scalars out;
  for (unsigned i = 0; i < count; ++i)
    out.push_back(LLVM::ExtractElementOp::create(e.b, e.loc, loaded, e.i32(i)));
  return out;
}

Value pack(const Emit &e, ArrayRef<Value> values) {
  if (values.size() == 1)
    return values.front();
  auto type = VectorType::get(static_cast<int64_t>(values.size()), values.front().getType());
  Value v = LLVM::UndefOp::create(e.b, e.loc, type);
  for (auto [i, x] : llvm::enumerate(values))
    v = LLVM::InsertElementOp::create(e.b, e.loc, v, x, e.i32(i));
  return v;
}

/// One access as the registers hold it: elements of fewer than 32 bits are packed, and stay packed where control flow
/// meets, since a register of their own each would need two to four times as many.
class AccessWords {
public:
  AccessWords(const Emit &e, Type element, unsigned elements)
      : e(e), scalar(scalarType(element)), memory(memoryType(element)) {
    // Vectors hold numbers; a pointer in one is an i64.
    stored = elements > 1 && isa<LLVM::LLVMPointerType>(memory) ? e.i(64) : memory;
    const unsigned elementBytes = bytesOf(stored);
    total = elementBytes * elements;
    bytes = std::max(elementBytes, std::min(total, 4u));
    count = total / bytes;
    perWord = elements / count;
    type = perWord == 1 ? stored : e.i(bytes * 8);
  }

  Scalars load(Value address, tile::Cache cache) const {
    if (isHint(cache))
      return loadHinted(address, cache);
    const Type all = count == 1 ? type : Type(VectorType::get(count, type));
    return unpack(e, LLVM::LoadOp::create(e.b, e.loc, all, address, total, cache == tile::Cache::Volatile), count);
  }

  void store(Value address, ArrayRef<Value> words, tile::Cache cache) const {
    if (isHint(cache))
      return storeHinted(address, words, cache);
    LLVM::StoreOp::create(e.b, e.loc, pack(e, words), address, total, cache == tile::Cache::Volatile);
  }

  Scalars fromValues(ArrayRef<Value> values) const {
    Scalars words;
    for (unsigned w = 0; w < count; ++w) {
      Scalars parts;
      for (Value v : values.slice(w * perWord, perWord))
        parts.push_back(reinterpret(e, e.toMemory(v), stored));
      words.push_back(reinterpret(e, pack(e, parts), type));
    }
    return words;
  }

  Scalars toValues(ArrayRef<Value> words) const {
    Scalars values;
    for (Value word : words)
      for (Value v : unpack(e, perWord == 1 ? word : e.bitcast(word, VectorType::get(perWord, stored)), perWord))
        values.push_back(stored != memory ? reinterpret(e, v, scalar) : e.fromMemory(v, scalar));
    return values;
  }

  Scalars zeros() const { return Scalars(count, e.zero(type)); }

  static bool isHint(tile::Cache cache) { return cache == tile::Cache::Streaming || cache == tile::Cache::Global; }

private:
  // Inline assembly: its registers are integers, and 8 bits are held by a 16-bit one.
  Type asmType() const { return e.i(std::max(16u, bytes * 8)); }
  std::string constraint() const { return bytes == 8 ? "l" : bytes == 4 ? "r" : "h"; }
  std::string suffix(tile::Cache cache) const {
    return (cache == tile::Cache::Streaming ? ".cs" : ".cg") + (count > 1 ? ".v" + std::to_string(count) : "") + ".b" +
           std::to_string(bytes * 8);
  }
  /// "{$0, $1}".
  std::string list() const {
    std::string out;
    for (unsigned i = 0; i < count; ++i)
      out += (i ? ", $" : "$") + std::to_string(i);
    return count > 1 ? "{" + out + "}" : out;
  }
  std::string address() const { return "[$" + std::to_string(count) + "]"; }
  std::string constraints(const char *prefix) const {
    std::string out;
    for (unsigned i = 0; i < count; ++i)
      out += prefix + constraint() + ",";
    return out + "l,~{memory}";
  }

  Scalars loadHinted(Value from, tile::Cache cache) const {
    const std::string text = "ld.global" + suffix(cache) + " " + list() + ", " + address() + ";";
    Type result = asmType();
    if (count > 1)
      result = LLVM::LLVMStructType::getLiteral(e.b.getContext(), llvm::SmallVector<Type>(count, result));
    const Value all = LLVM::InlineAsmOp::create(e.b, e.loc, result, from, text, constraints("="),
                                                /*has_side_effects=*/true, /*is_align_stack=*/false,
                                                LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
                          .getResult(0);
    Scalars words;
    for (unsigned i = 0; i < count; ++i) {
      Value word = count == 1 ? all : Value(LLVM::ExtractValueOp::create(e.b, e.loc, all, i));
      if (bytes == 1)
        word = arith::TruncIOp::create(e.b, e.loc, e.i(8), word);
      words.push_back(reinterpret(e, word, type));
    }
    return words;
  }

  void storeHinted(Value to, ArrayRef<Value> words, tile::Cache cache) const {
    Scalars operands;
    for (Value word : words) {
      word = reinterpret(e, word, e.i(bytes * 8));
      operands.push_back(bytes == 1 ? Value(arith::ExtUIOp::create(e.b, e.loc, asmType(), word)) : word);
    }
    operands.push_back(to);
    LLVM::InlineAsmOp::create(e.b, e.loc, TypeRange(), operands,
                              "st.global" + suffix(cache) + " " + address() + ", " + list() + ";", constraints(""),
                              /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                              LLVM::AsmDialectAttr(), ArrayAttr());
  }

  const Emit &e;
  Type scalar, memory, stored, type;
  unsigned total = 0, bytes = 0, count = 0, perWord = 0;
};

} // namespace

Scalars emitLoad(const Emit &e, Value mask, ArrayRef<Value> other, Value address, Type element, unsigned count,
                 tile::Cache cache) {
  const AccessWords words(e, element, count);
  Scalars otherwise;
  if (mask)
    otherwise = other.empty() ? words.zeros() : words.fromValues(other);
  return words.toValues(e.guarded(mask, otherwise, [&](Emit &) { return words.load(address, cache); }));
}

void emitStore(const Emit &e, Value condition, Value address, ArrayRef<Value> values, tile::Cache cache) {
  const AccessWords words(e, values.front().getType(), values.size());
  e.guarded(condition, [&](Emit &) { words.store(address, words.fromValues(values), cache); });
}

} // namespace kiln::lowering
