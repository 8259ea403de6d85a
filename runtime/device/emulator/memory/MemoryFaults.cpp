#include "runtime/device/emulator/memory/MemoryFaults.h"

#include "runtime/device/emulator/execute/Cluster.h"
#include "runtime/device/emulator/memory/DefinedBits.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::emulator {

const char *accessKind(const WarpState &w, const Op &op) {
  std::string_view name = w.program->lines[op.line].opcode;
  if (constexpr std::string_view matrix = "wmma."; name.starts_with(matrix))
    name.remove_prefix(matrix.size());
  return name.starts_with("ld") || name.starts_with("load") ? "load"
         : name.starts_with("st")                           ? "store"
         : name.starts_with("cp")                           ? "copy"
         : name.starts_with("mb")                           ? "mbarrier operation"
         : name.starts_with("te")                           ? "tensor map operation"
                                                            : "atomic access";
}

namespace {

std::string hex(std::uint64_t v) {
  return format("0x%llx", static_cast<unsigned long long>(v));
}

std::string subject(Warp &w, const Op &op, unsigned bytes) {
  return std::to_string(bytes) + "-byte " + accessKind(static_cast<WarpState &>(w), op);
}

template <typename Fn> std::uint32_t lanesWhere(std::uint32_t exec, Fn f) {
  std::uint32_t mask = 0;
  for (; exec; exec &= exec - 1) {
    const unsigned l = static_cast<unsigned>(__builtin_ctz(exec));
    if (f(l))
      mask |= 1u << l;
  }
  return mask;
}

} // namespace

std::string sharedName(const Program &p, std::uint64_t offset) {
  const NamedRange *best = nullptr;
  for (const NamedRange &r : p.sharedNames)
    if (offset >= r.begin && (offset < r.end || r.begin == r.end) && (!best || r.begin >= best->begin))
      best = &r;
  return best ? std::string(best->name) + "+" + std::to_string(offset - best->begin)
              : "shared offset " + std::to_string(offset);
}

bool reportMisaligned(Warp &w, const Op &op, const std::uint64_t *at, unsigned bytes) {
  const std::uint32_t lanes = lanesWhere(w.exec, [&](unsigned l) { return at[l] & (bytes - 1); });
  const unsigned l = static_cast<unsigned>(__builtin_ctz(lanes));
  reportFinding(w, op, "misaligned", lanes,
                subject(w, op, bytes) + " at " + hex(at[l]) + " (lane " + std::to_string(l) + ") is not aligned to " +
                    std::to_string(bytes) + " bytes",
                true);
  return false;
}

bool reportSharedBounds(Warp &w, const Op &op, const std::uint64_t *at, unsigned bytes, std::uint64_t window,
                        const BlockState *owner) {
  const BlockState &b = owner ? *owner : *w.block;
  const std::uint64_t base = window + b.sharedAddress;
  const std::uint32_t lanes = lanesWhere(w.exec, [&](unsigned l) {
    const std::uint64_t o = at[l] - base;
    return o < b.sharedBegin || o > b.sharedEnd || b.sharedEnd - o < bytes;
  });
  const unsigned l = static_cast<unsigned>(__builtin_ctz(lanes));
  const std::uint64_t address = at[l] - window, rank = address / sharedRankBytes, offset = address % sharedRankBytes;
  const Launch &launch = b.worker.launch;
  const std::string memory =
      (owner ? "the shared memory of block rank " + std::to_string(b.rank) : std::string("the block's shared memory")) +
      " (" + std::to_string(launch.program->sharedStatic) + " bytes static, " + std::to_string(launch.dynamicShared) +
      " dynamic)";
  const char *id = "oob.shared";
  std::string where;
  if (address >= maxClusterBlocks * sharedRankBytes) {
    where = "is not a shared memory address";
  } else if (rank >= launch.cluster.count()) {
    id = "oob.remote";
    where = "is in the shared memory of block rank " + std::to_string(rank) + ", which is not in the cluster (" +
            std::to_string(launch.cluster.count()) + (launch.cluster.count() == 1 ? " block)" : " blocks)");
  } else if (rank != b.rank) {
    where = "is in the shared memory of block rank " + std::to_string(rank) +
            "; this instruction accesses the own block's only (.shared::cluster says others too)";
  } else if (offset < b.sharedBegin) {
    where = "is " + std::to_string(b.sharedBegin - offset) + " bytes before the start of " + memory;
  } else {
    where = "is " + std::to_string(offset + bytes - b.sharedEnd) + " bytes past the end of " + memory;
  }
  std::string name;
  if (offset >= b.sharedBegin && rank == b.rank)
    name = ", " + sharedName(*launch.program, offset) + ",";
  reportFinding(w, op, id, lanes,
                subject(w, op, bytes) + " at " + hex(address < maxClusterBlocks * sharedRankBytes ? address : at[l]) +
                    name + " (lane " + std::to_string(l) + ") " + where,
                true);
  return false;
}

const BlockState *resolveShared(Warp &w, const Op &op, const std::uint64_t *at, unsigned bytes, std::uint64_t window) {
  const bool may = op.flags & access::cluster || (op.flags & access::spaceMask) == access::generic;
  const BlockState *owner = blockOfShared(*w.block, at[__builtin_ctz(w.exec)] - window);
  const bool isOwn = owner == w.block;
  if (!owner || !(isOwn || may)) {
    reportSharedBounds(w, op, at, bytes, window);
    return nullptr;
  }
  const std::uint64_t base = window + owner->sharedAddress;
  if (lanesWhere(w.exec, [&](unsigned l) {
        const std::uint64_t o = at[l] - base;
        return o < owner->sharedBegin || o > owner->sharedEnd || owner->sharedEnd - o < bytes;
      })) {
    reportSharedBounds(w, op, at, bytes, window, isOwn ? nullptr : owner);
    return nullptr;
  }
  return !isOwn && reportIfExited(static_cast<WarpState &>(w), op, w.exec, *owner) ? nullptr : owner;
}

bool reportParamBounds(Warp &w, const Op &op, const std::uint64_t *at, unsigned bytes, std::uint64_t window) {
  const std::uint64_t size = w.block->worker.launch.parameters.size();
  const std::uint32_t lanes =
      lanesWhere(w.exec, [&](unsigned l) { return at[l] - window > size || size - (at[l] - window) < bytes; });
  const unsigned l = static_cast<unsigned>(__builtin_ctz(lanes));
  reportFinding(w, op, "oob.param", lanes,
                subject(w, op, bytes) + " at offset " + std::to_string(at[l] - window) +
                    " of the kernel's parameters, which have " + std::to_string(size) + " bytes",
                true);
  return false;
}

bool reportReadOnly(Warp &w, const Op &op, const char *what) {
  reportFinding(w, op, "readonly_write", w.exec, std::string("writes to ") + what + ", which a kernel may only read",
                true);
  return false;
}

bool resolveGlobal(Warp &w, const Op &op, const std::uint64_t *at, unsigned bytes, bool write, std::uint64_t *&bits,
                   std::uint64_t &origin) {
  Launch &launch = w.block->worker.launch;
  GlobalMemory &memory = *launch.memory;
  const bool isConstant = (op.flags & access::spaceMask) == access::constant;
  const Allocation *one = memory.holding(at[__builtin_ctz(w.exec)], bytes);
  bool same = one != nullptr;
  const std::uint32_t bad = lanesWhere(w.exec, [&](unsigned l) {
    const Allocation *a = memory.holding(at[l], bytes);
    same = same && a == one;
    return !a;
  });
  if (bad) {
    const unsigned l = static_cast<unsigned>(__builtin_ctz(bad));
    bool freed = false;
    std::string where = memory.describe(at[l], bytes, freed);
    // Relative to a buffer where there is one near: the address itself may differ from one process to the next.
    const std::string address = where == "in no buffer" ? " at " + hex(at[l]) : "";
    const std::uint64_t number = at[l] >> windowShift;
    if (number == SharedWindow || number == LocalWindow || number == ParamWindow)
      where = std::string("an address of ") +
              (number == SharedWindow  ? "shared"
               : number == LocalWindow ? "local"
                                       : "parameter") +
              " memory";
    else if (at[l] < 65536)
      where += at[l] == 0 ? ": a null pointer" : ": near a null pointer";
    reportFinding(w, op,
                  freed        ? "use_after_free"
                  : isConstant ? "oob.const"
                               : "oob.global",
                  bad, subject(w, op, bytes) + address + " (lane " + std::to_string(l) + ") is " + where, true);
    return false;
  }
  const std::uint32_t constant =
      write ? lanesWhere(w.exec, [&](unsigned l) { return !memory.holding(at[l], bytes)->writable; }) : 0;
  if (constant) {
    const Allocation *a = memory.holding(at[__builtin_ctz(constant)], bytes);
    return reportReadOnly(w, op, ("constant " + a->name()).c_str());
  }
  bits = nullptr;
  if (same) {
    AccessCache &c = w.caches[op.cache];
    c.begin = one->begin;
    c.end = one->end();
    c.writable = one->writable;
    c.defined = one->defined || !memory.tracking();
    if (!c.defined) {
      bits = memory.definedBits();
      origin = memory.base();
    }
    return true;
  }
  if (!memory.tracking())
    return true;
  // Lanes in several buffers, some of which may be defined as a whole: settle it here.
  const bool reads = !write || !std::string_view(accessKind(static_cast<WarpState &>(w), op)).starts_with("store");
  const std::uint32_t undefined =
      reads ? lanesWhere(w.exec,
                         [&](unsigned l) {
                           return !memory.holding(at[l], bytes)->defined &&
                                  !allDefined(memory.definedBits(), at[l] - memory.base(), bytes);
                         })
            : 0;
  if (undefined) {
    const std::uint32_t exec = std::exchange(w.exec, undefined);
    reportUninitialised(w, op, at, 0, 0, bytes, op.usedBytes, memory.definedBits(), memory.base());
    w.exec = exec;
  }
  if (write)
    lanesWhere(w.exec, [&](unsigned l) {
      if (!memory.holding(at[l], bytes)->defined)
        markDefined(memory.definedBits(), at[l] - memory.base(), bytes);
      return false;
    });
  return true;
}

bool resolveLocal(Warp &w, const Op &op, std::uint64_t *at, unsigned bytes, std::uint64_t window) {
  auto &warp = static_cast<WarpState &>(w);
  const BlockState &b = *w.block;
  const std::uint64_t *top = warp.stack();
  std::uint32_t bad = 0;
  for (unsigned l = 0; l < warpSize; ++l) {
    const std::uint64_t offset = at[l] - window;
    // Inactive lanes hold another lane's offset.
    if (w.exec >> l & 1 && (offset > top[l] || top[l] - offset < bytes))
      bad |= 1u << l;
  }
  if (bad) {
    const unsigned l = static_cast<unsigned>(__builtin_ctz(bad));
    reportFinding(w, op, "oob.local", bad,
                  subject(w, op, bytes) + " at local offset " +
                      std::to_string(static_cast<std::int64_t>(at[l] - window)) + " (lane " + std::to_string(l) +
                      "): the thread has " + std::to_string(top[l]) + " bytes of local memory here",
                  true);
    return false;
  }
  for (unsigned l = 0; l < warpSize; ++l)
    at[l] = reinterpret_cast<std::uint64_t>(warp.local) + l * b.localStride + (at[l] - window);
  return true;
}

void reportUninitialised(Warp &w, const Op &op, const std::uint64_t *at, std::uint64_t first, unsigned stride,
                         unsigned bytes, std::uint32_t used, const std::uint64_t *bits, std::uint64_t origin) {
  unsigned byteAt = 0;
  auto address = [&](unsigned l) { return at ? at[l] : first + std::uint64_t(l) * stride; };
  std::uint32_t lanes = 0;
  for (unsigned l = 0; l < warpSize; ++l)
    for (unsigned i = 0; i < bytes; ++i)
      if (w.exec >> l & 1 && used >> i & 1 && !allDefined(bits, address(l) + i - origin, 1)) {
        if (!lanes)
          byteAt = i;
        lanes |= 1u << l;
        break;
      }
  if (!lanes)
    return;
  BlockState &b = *w.block;
  const BlockState *shared = blockHolding(b, address(static_cast<unsigned>(__builtin_ctz(lanes))));
  const char *id = shared ? "uninit.shared" : bits == b.localBits ? "uninit.local" : "uninit.global";
  if (countFinding(w, op, id))
    return;
  const unsigned l = static_cast<unsigned>(__builtin_ctz(lanes));
  const std::uint64_t where = address(l) + byteAt;
  std::string name;
  if (shared) {
    name = sharedName(*b.worker.launch.program, where - origin);
    if (shared != &b)
      name += " of block " + blockText(shared->linear, b.worker.launch.grid);
  } else if (bits == b.localBits) {
    name = "local offset " + std::to_string((where - origin) % b.localStride);
  } else if (const Allocation *a = b.worker.launch.memory->holding(where, 1)) {
    name = a->name() + "+" + std::to_string(where - a->begin) + " (of " + std::to_string(a->size) + " bytes)";
  }
  reportFinding(w, op, id, lanes,
                subject(w, op, bytes) + " reads " + name + " (lane " + std::to_string(l) + "), which nobody wrote",
                false);
}

} // namespace kiln::emulator
