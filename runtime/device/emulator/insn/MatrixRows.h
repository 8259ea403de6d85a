//===- MatrixRows.h - Rows of matrices in shared memory -------------------===//
//
// What ldmatrix and stmatrix of all shapes share: a row is 16 bytes, lane i gives the address of row i (the matrices'
// rows one after the other), and other lanes' addresses do not count.  Which byte of a row is in which register is up
// to the shape (MatrixMove.cpp, MatrixBytes.cpp).
//
// Included between LevelBegin.h and LevelEnd.h only, after MemoryAccess.h.  No include guard: once a family file.
//
//===----------------------------------------------------------------------===//

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

constexpr unsigned rowBytes = 16;
/// What a row reads as whose lane does not take part: undefined on hardware, recognisable here.  By byte of a register.
constexpr std::uint8_t poisonBytes[4] = {0xEF, 0xBE, 0xAD, 0xDE};

template <unsigned Count> using Rows = std::uint8_t[Count][rowBytes];
template <unsigned Count> constexpr U32 rowLanes = Count == warpSize ? fullMask : (1u << Count) - 1;

/// Host addresses of the rows that the executing lanes give, in m.at; false after a fatal finding.
template <unsigned Count> bool locateRows(Warp &w, const Op &op, Accessed &m) {
  const BlockState &block = *w.block;
  const U32 exec = w.exec;
  // Up to sm_75 the addresses of all lanes must be good, also those that give no row.
  w.exec &= block.worker.launch.target->sm > 75 ? rowLanes<Count> : fullMask;
  bool good = true;
  if (w.exec) {
    laneAddresses(w, op, m);
    Extent e = extentOf(w, m, rowBytes);
    const U64 window = (op.flags & access::spaceMask) == access::shared ? 0 : windowBase(SharedWindow);
    const U64 base = window + block.sharedAddress, low = e.low - base, high = e.high - base;
    if (!e.aligned) {
      good = reportMisaligned(w, op, m.at, rowBytes);
    } else if (low < block.sharedBegin || high > block.sharedEnd || block.sharedEnd - high < rowBytes || low > high) {
      good = reportSharedBounds(w, op, m.at, rowBytes, window);
    } else {
      e.contiguous = e.uniform = false; // every row's address is wanted
      toHost(m, e, reinterpret_cast<U64>(block.shared) - base);
      m.bits = block.sharedBits;
      m.origin = reinterpret_cast<U64>(block.shared);
    }
  }
  w.exec = exec;
  return good;
}

/// Reads the rows, of which the first `used` bytes count; `present`: those that a lane gives.  False after a fatal
/// finding.
template <unsigned Count>
bool loadRows(Warp &w, const Op &op, Rows<Count> &rows, U32 &present, unsigned used = rowBytes) {
  Accessed m;
  if (!locateRows<Count>(w, op, m))
    return false;
  const U32 exec = w.exec;
  present = exec & rowLanes<Count>;
  if (exec != fullMask) [[unlikely]]
    reportMissingLanes(w, op, "rows whose address is missing read as 0xDEADBEEF");
  if (m.bits && present) {
    w.exec = present;
    watch(w, op, m, rowBytes, AccessRole::Read);
    if (!isDefined(w, m, used)) [[unlikely]]
      reportUninitialised(w, op, m.at, 0, 0, used, op.usedBytes, m.bits, m.origin);
    w.exec = exec;
  }
  for (unsigned r = 0; r < Count; ++r)
    if (present >> r & 1)
      std::memcpy(rows[r], reinterpret_cast<const void *>(m.at[r]), rowBytes);
  return true;
}

/// Writes the rows that a lane gives; of each the bytes whose lane holderOf(row, byte) takes part.
template <unsigned Count, typename Holder>
Next storeRows(Warp &w, const Op &op, const Rows<Count> &rows, Holder holderOf) {
  Accessed m;
  if (!locateRows<Count>(w, op, m))
    return Next::Fault;
  const U32 exec = w.exec, present = exec & rowLanes<Count>;
  if (exec != fullMask) [[unlikely]]
    reportMissingLanes(w, op, "elements that they hold and rows whose address they give are not stored");
  ++w.block->worker.progress;
  if (present) {
    w.exec = present;
    watch(w, op, m, rowBytes, AccessRole::Write, rows[0]);
    checkSameBytes(w, op, m, rowBytes,
                   [&rows](unsigned a, unsigned b) { return std::memcmp(rows[a], rows[b], rowBytes) == 0; });
    w.exec = exec;
  }
  // In the order of the rows: of rows with one address the last one wins.
  for (unsigned r = 0; r < Count; ++r) {
    if (!(present >> r & 1))
      continue;
    auto *to = reinterpret_cast<std::uint8_t *>(m.at[r]);
    if (exec == fullMask) [[likely]] {
      std::memcpy(to, rows[r], rowBytes);
      if (m.bits)
        markDefined(m.bits, m.at[r] - m.origin, rowBytes);
      if (BlockState &block = *w.block; block.wgmma && m.bits == block.sharedBits)
        noteOrdinaryWrite(block, m.at[r] - m.origin, rowBytes);
      continue;
    }
    for (unsigned b = 0; b < rowBytes; ++b)
      if (exec >> holderOf(r, b) & 1) {
        to[b] = rows[r][b];
        if (m.bits)
          markDefined(m.bits, m.at[r] + b - m.origin, 1);
      }
  }
  return Next::Advance;
}

/// Decodes an address and a vector of `registers` registers (their slots in the pool at op.aux).
bool decodeRows(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op, bool store,
                unsigned registers) {
  if (instruction.operands.size() != 2)
    return context.error(instruction, store ? "takes an address and a vector of registers"
                                            : "takes a vector of registers and an address");
  const ptx::Operand &vector = instruction.operands[store ? 1 : 0];
  if (vector.kind != ptx::Operand::Kind::Vector || vector.elements.size() != registers)
    return context.error(instruction, "takes a vector of " + std::to_string(registers) + " registers in braces" +
                                          (vector.kind == ptx::Operand::Kind::Vector
                                               ? ", this one has " + std::to_string(vector.elements.size())
                                               : ""));
  U32 slots[4] = {};
  for (unsigned j = 0; j < registers; ++j)
    if (!(store ? context.source(instruction, vector.elements[j], ptx::Type::B32, slots[j])
                : context.destination(instruction, vector.elements[j], ptx::Type::B32, slots[j])))
      return false;
  op.aux = context.addPool(std::span(slots, registers));
  DecodeContext::Address address;
  if (!decodeAddress(context, instruction, instruction.operands[store ? 0 : 1], spaceOf(form), op, address))
    return false;
  if (address.space != ptx::Space::Shared && address.space != ptx::Space::Generic)
    return context.error(instruction, "the address is in ." + std::string(ptx::spaceName(address.space)) +
                                          ", matrices are moved from and to shared memory only");
  context.flow().visible |= store;
  return true;
}

/// 4, 2 or 1, as .x4, .x2 or .x1 say.
inline unsigned matricesOf(const Form &form) {
  return form.has("x4") ? 4 : form.has("x2") ? 2 : 1;
}

} // namespace
} // namespace kiln::emulator::KILN_EMULATOR_LEVEL
