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

/// Registers of inline assembly: how many, of how many bytes each.
struct AsmWords {
  unsigned count, bytes;
  AsmWords(unsigned elementBytes, unsigned total) {
    bytes = std::max(elementBytes, std::min(total, 4u));
    count = total / bytes;
  }
  /// 8 bits are held by a 16-bit register.
  Type type(const Emit &e) const { return e.i(std::max(16u, bytes * 8)); }
  const char *constraint() const { return bytes == 8 ? "l" : bytes == 4 ? "r" : "h"; }
  std::string suffix() const {
    const std::string width = std::to_string(bytes * 8);
    return (count > 1 ? ".v" + std::to_string(count) : "") + ".b" + width;
  }
  /// "{$2, $3}" from operand `first`.
  std::string list(unsigned first) const {
    std::string out;
    for (unsigned i = 0; i < count; ++i)
      out += (i ? ", $" : "$") + std::to_string(first + i);
    return count > 1 ? "{" + out + "}" : out;
  }
};

const char *cacheSuffix(tile::Cache cache) {
  return cache == tile::Cache::Streaming ? ".cs" : ".cg";
}

bool isHint(tile::Cache cache) {
  return cache == tile::Cache::Streaming || cache == tile::Cache::Global;
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

/// Vectors hold numbers; a pointer in one is an i64.
Type vectorElement(const Emit &e, Type stored, unsigned count) {
  return count > 1 && isa<LLVM::LLVMPointerType>(stored) ? e.i(64) : stored;
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

/// The words of an assembly statement as `count` values of that type, and back.
Scalars fromWords(const Emit &e, ArrayRef<Value> words, const AsmWords &shape, Type element, unsigned count) {
  if (shape.bytes == 1)
    return {Value(arith::TruncIOp::create(e.b, e.loc, e.i(8), words.front()))};
  if (words.size() == count) {
    Scalars out;
    for (Value w : words)
      out.push_back(reinterpret(e, w, element));
    return out;
  }
  const Value all = e.bitcast(pack(e, words), VectorType::get(count, element));
  return unpack(e, all, count);
}

Scalars toWords(const Emit &e, ArrayRef<Value> values, const AsmWords &shape) {
  if (shape.bytes == 1)
    return {Value(arith::ExtUIOp::create(e.b, e.loc, e.i(16), e.bitcast(values.front(), e.i(8))))};
  if (shape.count == values.size()) {
    Scalars out;
    for (Value v : values)
      out.push_back(reinterpret(e, v, shape.type(e)));
    return out;
  }
  const Type words = shape.count == 1 ? shape.type(e) : Type(VectorType::get(shape.count, shape.type(e)));
  return unpack(e, e.bitcast(pack(e, values), words), shape.count);
}

} // namespace

Scalars emitLoad(const Emit &e, Value address, Type element, unsigned count, tile::Cache cache) {
  const Type scalar = scalarType(element), stored = vectorElement(e, memoryType(element), count);
  const unsigned bytes = bytesOf(stored), total = bytes * count;
  Scalars loaded;
  if (isHint(cache)) {
    const AsmWords words(bytes, total);
    std::string constraints;
    for (unsigned i = 0; i < words.count; ++i)
      constraints += std::string("=") + words.constraint() + ",";
    constraints += "l,~{memory}";
    const std::string text = std::string("ld.global") + cacheSuffix(cache) + words.suffix() + " " + words.list(0) +
                             ", [$" + std::to_string(words.count) + "];";
    Type result = words.type(e);
    if (words.count > 1)
      result = LLVM::LLVMStructType::getLiteral(e.b.getContext(), llvm::SmallVector<Type>(words.count, result));
    Value all = LLVM::InlineAsmOp::create(e.b, e.loc, result, address, text, constraints, /*has_side_effects=*/true,
                                          /*is_align_stack=*/false, LLVM::TailCallKind::None, LLVM::AsmDialectAttr(),
                                          ArrayAttr())
                    .getResult(0);
    Scalars list;
    for (unsigned i = 0; i < words.count; ++i)
      list.push_back(words.count == 1 ? all : Value(LLVM::ExtractValueOp::create(e.b, e.loc, all, i)));
    loaded = fromWords(e, list, words, stored, count);
  } else {
    const Type type = count == 1 ? stored : Type(VectorType::get(count, stored));
    loaded = unpack(e, LLVM::LoadOp::create(e.b, e.loc, type, address, total, cache == tile::Cache::Volatile), count);
  }
  for (Value &v : loaded)
    v = stored != memoryType(element) ? reinterpret(e, v, scalar) : e.fromMemory(v, scalar);
  return loaded;
}

void emitStore(const Emit &e, Value address, ArrayRef<Value> values, tile::Cache cache) {
  const unsigned count = values.size();
  const Type stored = vectorElement(e, memoryType(values.front().getType()), count);
  const unsigned bytes = bytesOf(stored), total = bytes * count;
  Scalars list;
  for (Value v : values)
    list.push_back(reinterpret(e, e.toMemory(v), stored));
  if (isHint(cache)) {
    const AsmWords words(bytes, total);
    Scalars operands = toWords(e, list, words);
    std::string constraints;
    for (unsigned i = 0; i < words.count; ++i)
      constraints += std::string(words.constraint()) + ",";
    constraints += "l,~{memory}";
    const std::string text = std::string("st.global") + cacheSuffix(cache) + words.suffix() + " [$" +
                             std::to_string(words.count) + "], " + words.list(0) + ";";
    operands.push_back(address);
    LLVM::InlineAsmOp::create(e.b, e.loc, TypeRange(), operands, text, constraints, /*has_side_effects=*/true,
                              /*is_align_stack=*/false, LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
    return;
  }
  LLVM::StoreOp::create(e.b, e.loc, pack(e, list), address, total, cache == tile::Cache::Volatile);
}

} // namespace kiln::lowering
