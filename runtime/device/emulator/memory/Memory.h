//===- Memory.h - The emulated GPU's global memory ------------------------===//
//
// One reserved range of host addresses; a device address is the host address of the byte.  Buffers are 256-byte aligned
// with at least 64 KiB between them, freed buffers stay in quarantine (their addresses are not used again for a long
// time), and one bit a byte says whether the byte was ever written.  Pages cost memory when they are first touched; new
// buffers read as zeros.
//
// Allocation happens between launches, or in a launch that runs on one worker (malloc).  Definedness bits may be read
// and written by all workers.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_MEMORY_MEMORY_H
#define KILN_RUNTIME_DEVICE_EMULATOR_MEMORY_MEMORY_H

#include "support/Status.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace kiln::emulator {

/// Reserved address space, given back at the end.
class Reservation {
public:
  Reservation() = default;
  ~Reservation();
  Reservation(const Reservation &) = delete;
  Reservation &operator=(const Reservation &) = delete;
  /// `hint` keeps addresses equal from run to run where the system allows it.
  bool reserve(std::size_t bytes, std::uint64_t hint = 0);
  std::byte *data() const { return start; }
  std::size_t size() const { return length; }
  /// Zeroes the range and gives the memory of its whole pages back.
  void forget(std::size_t offset, std::size_t bytes);

private:
  std::byte *start = nullptr;
  std::size_t length = 0;
};

struct Allocation {
  std::uint64_t begin = 0, size = 0;
  std::string label;
  std::uint64_t serial = 0; ///< counts allocations: "allocation 3" where there is no label
  bool freed = false, writable = true;
  bool defined = false; ///< the host wrote every byte: the bits are not looked at
  std::uint64_t end() const { return begin + size; }
  std::string name() const;
};

class GlobalMemory {
public:
  static Result<std::unique_ptr<GlobalMemory>> create(bool trackDefined, std::uint64_t capacity);

  Result<std::uint64_t> allocate(std::uint64_t bytes, std::string_view label, bool writable = true);
  void release(std::uint64_t address);

  /// The allocation that holds `address` or the last one before it; nullptr if there is none.
  Allocation *before(std::uint64_t address);
  /// The live allocation that holds [address, address + bytes), or nullptr.
  const Allocation *holding(std::uint64_t address, std::uint64_t bytes) const;
  /// Where `address` lies, for a finding: "12 bytes past the end of 'x' (4096 bytes)".  `freedOne` is set if it is in a
  /// freed buffer.
  std::string describe(std::uint64_t address, std::uint64_t bytes, bool &freedOne) const;

  /// Calls f with every live allocation.
  template <typename Fn> void eachLive(Fn f) const {
    for (const auto &[begin, a] : allocations)
      if (!a.freed)
        f(a);
  }

  void hostWrote(std::uint64_t address, std::uint64_t bytes);

  /// A cell of the race checks for every 4 bytes of the arena; null without checks or address space for them.
  std::uint32_t *raceCells() const { return reinterpret_cast<std::uint32_t *>(cells.data()); }
  void forgetRaceCells() {
    if (cells.size())
      cells.forget(0, cells.size());
  }
  std::uint64_t arenaBytes() const { return arena.size(); }

  bool tracking() const { return bits.data() != nullptr; }
  std::uint64_t *definedBits() const { return reinterpret_cast<std::uint64_t *>(bits.data()); }
  std::uint64_t base() const { return reinterpret_cast<std::uint64_t>(arena.data()); }
  std::uint64_t used() const { return live; }

private:
  const Allocation *find(std::uint64_t address) const;

  Reservation arena, bits, cells;
  std::map<std::uint64_t, Allocation> allocations;      ///< by begin; live and quarantined
  std::deque<std::uint64_t> quarantine;                 ///< begins, oldest first
  std::multimap<std::uint64_t, std::uint64_t> reusable; ///< size of the range -> begin
  std::uint64_t next = 0, live = 0, capacity = 0, serials = 0;
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_MEMORY_MEMORY_H
