// Device function calls.  Registers of a function have one place in the register file, a column a lane, so lanes at
// different depths do not disturb each other; only functions that may be active twice save theirs.  Parameters and
// local variables live in frames of the lane's local memory.
#include "runtime/device/emulator/decode/Decoder.h"
#include "runtime/device/emulator/execute/Executor.h"
#include "runtime/device/emulator/execute/LaneValues.h"
#include "runtime/device/emulator/memory/DefinedBits.h"

#include <algorithm>
#include <cstring>

namespace kiln::emulator {

namespace {

constexpr std::uint32_t poison = 0xDEADBEEF;

std::uint64_t localBit(const WarpState &w, unsigned lane, std::uint64_t offset) {
  const BlockState &b = *w.block;
  return static_cast<std::uint64_t>(w.local - b.localBase) + lane * b.localStride + offset;
}

/// One lane of a register of 4, 8 or 16 bytes: 128-bit values have their halves apart.
void readRegister(const WarpState &w, Slot slot, unsigned bytes, unsigned lane, std::byte *to) {
  const std::byte *r = w.registers + slot;
  if (bytes <= 4)
    std::memcpy(to, r + 4 * lane, 4);
  else
    std::memcpy(to, r + 8 * lane, 8);
  if (bytes == 16)
    std::memcpy(to + 8, r + 256 + 8 * lane, 8);
}
void writeRegister(WarpState &w, Slot slot, unsigned bytes, unsigned lane, const std::byte *from) {
  std::byte *r = w.registers + slot;
  if (bytes <= 4) {
    std::uint32_t v = 0;
    std::memcpy(&v, from, bytes);
    std::memcpy(r + 4 * lane, &v, 4);
  } else {
    std::memcpy(r + 8 * lane, from, 8);
  }
  if (bytes == 16)
    std::memcpy(r + 256 + 8 * lane, from + 8, 8);
}

/// Values on their way from one side of a call to the other, of one lane.
struct Parcel {
  std::vector<std::byte> bytes;
  std::vector<char> defined;
};

void collect(const WarpState &w, unsigned lane, std::uint64_t frame, const std::vector<CallValue> &values,
             Parcel &out) {
  out.bytes.clear();
  out.defined.clear();
  const BlockState &b = *w.block;
  for (const CallValue &v : values) {
    const std::size_t at = out.bytes.size();
    const std::size_t room = std::max<std::size_t>(v.bytes, 16);
    out.bytes.resize(at + room);
    out.defined.resize(at + room, 1);
    if (v.isRegister) {
      readRegister(w, v.where, v.bytes, lane, out.bytes.data() + at);
    } else {
      std::memcpy(out.bytes.data() + at, w.local + lane * b.localStride + frame + v.where, v.bytes);
      if (b.localBits)
        for (std::uint32_t i = 0; i < v.bytes; ++i)
          out.defined[at + i] = allDefined(b.localBits, localBit(w, lane, frame + v.where + i), 1);
    }
  }
}

void deliver(WarpState &w, unsigned lane, std::uint64_t frame, const std::vector<CallValue> &source,
             const std::vector<CallValue> &values, const Parcel &parcel) {
  BlockState &b = *w.block;
  std::size_t at = 0;
  for (std::size_t k = 0; k < values.size() && k < source.size(); ++k) {
    const CallValue &v = values[k];
    const std::uint32_t n = std::min(v.bytes, std::max(source[k].bytes, source[k].isRegister ? 16u : 0u));
    if (v.isRegister) {
      writeRegister(w, v.where, v.bytes, lane, parcel.bytes.data() + at);
    } else {
      std::memcpy(w.local + lane * b.localStride + frame + v.where, parcel.bytes.data() + at, n);
      if (b.localBits)
        for (std::uint32_t i = 0; i < n; ++i)
          if (parcel.defined[at + i])
            markDefined(b.localBits, localBit(w, lane, frame + v.where + i), 1);
    }
    at += std::max<std::size_t>(source[k].bytes, 16);
  }
}

/// The registers of `function` as the lanes have them go to the level, or come back.
void saveRegisters(WarpState &w, CallLevel &level, std::uint32_t index, std::uint32_t lanes, bool restore) {
  const FunctionInfo &f = w.program->functions[index];
  std::size_t bytes = 0;
  for (const auto &[slot, width] : f.registers)
    bytes += width * warpSize;
  auto found = std::find_if(level.saved.begin(), level.saved.end(), [&](const auto &s) { return s.first == index; });
  if (found == level.saved.end())
    found = level.saved.insert(found, {index, std::vector<std::byte>(bytes)});
  std::byte *store = found->second.data();
  for (const auto &[slot, width] : f.registers) {
    eachLane(lanes, [&](unsigned l) {
      if (restore)
        writeRegister(w, slot, width, l, store + width * l);
      else
        readRegister(w, slot, width, l, store + width * l);
    });
    store += width * warpSize;
  }
}

} // namespace

bool growStack(WarpState &w, const Op &op, unsigned lane, std::uint64_t newTop) {
  BlockState &b = *w.block;
  const std::uint64_t old = w.stack()[lane];
  if (newTop > w.program->localBytes || newTop < old) {
    reportFinding(w, op, "oob.local", 1u << lane,
                  "the stack needs " + std::to_string(newTop) + " bytes of local memory, a thread has " +
                      std::to_string(w.program->localBytes),
                  true);
    return false;
  }
  w.stack()[lane] = newTop;
  std::byte *memory = w.local + lane * b.localStride;
  for (std::uint64_t i = old; i + 4 <= newTop; i += 4)
    std::memcpy(memory + i, &poison, 4);
  if (b.localBits)
    clearDefined(b.localBits, localBit(w, lane, old), newTop - old);
  return true;
}

Next enterFunction(WarpState &w, const Op &op, std::uint32_t index) {
  const Program &p = *w.program;
  const CallSite &site = p.calls[op.aux];
  const FunctionInfo &f = p.functions[index];
  const unsigned depth = w.splits[w.current].depth;
  if (depth >= maxCallDepth) {
    reportFinding(w, op, "call.depth", w.exec,
                  "calls are nested more than " + std::to_string(maxCallDepth) + " deep: '" + std::string(f.name) +
                      "' recurses without end, or too far for the emulator",
                  true);
    return Next::Fault;
  }
  if (site.arguments.size() != f.parameters.size() || site.returns.size() != f.returns.size()) {
    reportFinding(w, op, "call.signature", w.exec,
                  "'" + std::string(f.name) + "' takes " + std::to_string(f.parameters.size()) +
                      " arguments and gives " + std::to_string(f.returns.size()) + " results, the call has " +
                      std::to_string(site.arguments.size()) + " and " + std::to_string(site.returns.size()),
                  true);
    return Next::Fault;
  }
  while (w.levels.size() <= depth)
    w.levels.push_back(std::make_unique<CallLevel>());
  CallLevel &level = *w.levels[depth];
  std::vector<Parcel> parcels(warpSize);
  eachLane(w.exec, [&](unsigned l) { collect(w, l, w.frame()[l], site.arguments, parcels[l]); });
  if (f.recursive)
    saveRegisters(w, level, index, w.exec, false);
  bool fits = true;
  eachLane(w.exec, [&](unsigned l) {
    level.returnPc[l] = w.pc + 1;
    level.site[l] = op.aux;
    level.function[l] = index;
    level.frame[l] = w.frame()[l];
    level.stack[l] = w.stack()[l];
    const std::uint64_t frame = (w.stack()[l] + 15) / 16 * 16;
    w.frame()[l] = frame;
    fits = fits && growStack(w, op, l, frame + f.frameBytes);
    if (fits)
      deliver(w, l, frame, site.arguments, f.parameters, parcels[l]);
  });
  if (!fits)
    return Next::Fault;
  Split &s = detach(w, f.entry);
  s.depth = static_cast<std::uint16_t>(depth + 1);
  return Next::Switch;
}

Next callIndirect(WarpState &w, const Op &op) {
  const auto *targets = reinterpret_cast<const std::uint64_t *>(w.registers + op.s[0]);
  const Program &p = *w.program;
  const std::uint64_t target = targets[__builtin_ctz(w.exec)];
  std::uint32_t group = 0;
  eachLane(w.exec, [&](unsigned l) { group |= targets[l] == target ? 1u << l : 0; });
  std::uint32_t index = ~0u;
  for (std::size_t i = 1; i < p.functions.size(); ++i)
    if (codeAddress(p.functions[i].index) == target)
      index = static_cast<std::uint32_t>(i);
  if (index == ~0u) {
    reportFinding(w, op, "call.target", group, "the address " + std::to_string(target) + " is not that of a function",
                  true);
    return Next::Fault;
  }
  // Lanes with other targets execute the call again, as a split of their own.
  if (const std::uint32_t others = w.exec & ~group) {
    addSplit(w, w.pc, others, w.splits[w.current].depth);
    w.mask &= ~others;
    w.exec = group;
  }
  return enterFunction(w, op, index);
}

Next returnFrom(WarpState &w, const Op &op) {
  const unsigned depth = w.splits[w.current].depth;
  if (depth == 0)
    return exitLanes(w);
  const Program &p = *w.program;
  CallLevel &level = *w.levels[depth - 1];
  const std::uint32_t stay = w.mask & ~w.exec;
  std::vector<Parcel> parcels(warpSize);
  eachLane(w.exec,
           [&](unsigned l) { collect(w, l, w.frame()[l], p.functions[level.function[l]].returns, parcels[l]); });
  std::uint32_t done = 0;
  bool first = true;
  for (std::uint32_t todo = w.exec; todo; todo &= ~done) {
    const unsigned lead = static_cast<unsigned>(__builtin_ctz(todo));
    std::uint32_t group = 0;
    eachLane(todo, [&](unsigned l) {
      if (level.returnPc[l] == level.returnPc[lead] && level.function[l] == level.function[lead] &&
          level.site[l] == level.site[lead])
        group |= 1u << l;
    });
    done = group;
    const std::uint32_t index = level.function[lead];
    if (p.functions[index].recursive)
      saveRegisters(w, level, index, group, true);
    eachLane(group, [&](unsigned l) {
      w.frame()[l] = level.frame[l];
      w.stack()[l] = level.stack[l];
      deliver(w, l, w.frame()[l], p.functions[index].returns, p.calls[level.site[l]].returns, parcels[l]);
    });
    if (first) {
      Split &s = w.splits[w.current];
      s.pc = level.returnPc[lead];
      s.mask = group;
      s.depth = static_cast<std::uint16_t>(depth - 1);
      first = false;
    } else {
      addSplit(w, level.returnPc[lead], group, depth - 1);
    }
  }
  if (stay)
    addSplit(w, w.pc + 1, stay, depth);
  return Next::Switch;
}

} // namespace kiln::emulator
