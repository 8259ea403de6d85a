#include "runtime/device/emulator/memory/Memory.h"

#include "runtime/device/emulator/memory/DefinedBits.h"
#include "support/Text.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln::emulator {

namespace {
/// Between buffers: wide enough that a whole tile too far does not land in the next one.  It costs addresses only.
constexpr std::uint64_t bufferAlign = 256, redzone = 64 * 1024;
/// Below every generic window's neighbourhood that matters and far from where a process usually maps things.
constexpr std::uint64_t arenaHint = 0x2000'0000'0000;
constexpr std::uint64_t largestArena = std::uint64_t(1) << 40, smallestArena = std::uint64_t(1) << 30;
constexpr std::size_t quarantineLength = 8192;

std::uint64_t roundUp(std::uint64_t v, std::uint64_t a) {
  return (v + a - 1) / a * a;
}
} // namespace

Reservation::~Reservation() {
  if (start)
    munmap(start, length);
}

bool Reservation::reserve(std::size_t bytes, std::uint64_t hint) {
  void *p = mmap(reinterpret_cast<void *>(hint), bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return false;
  start = static_cast<std::byte *>(p);
  length = bytes;
  return true;
}

void Reservation::forget(std::size_t offset, std::size_t bytes) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t first = roundUp(offset, page), last = (offset + bytes) / page * page;
  if (last <= first) {
    std::memset(start + offset, 0, bytes);
    return;
  }
  std::memset(start + offset, 0, first - offset);
  madvise(start + first, last - first, MADV_DONTNEED);
  std::memset(start + last, 0, offset + bytes - last);
}

std::string Allocation::name() const {
  return label.empty() ? "allocation " + std::to_string(serial) : "'" + label + "'";
}

Result<std::unique_ptr<GlobalMemory>> GlobalMemory::create(bool trackDefined, std::uint64_t capacity) {
  auto memory = std::make_unique<GlobalMemory>();
  std::uint64_t size = largestArena;
  while (!memory->arena.reserve(size, arenaHint)) {
    size /= 2;
    if (size < smallestArena)
      return Status(StatusCode::OutOfMemory, "the emulator cannot reserve 1 GiB of address space", "raise 'ulimit -v'");
  }
  if (trackDefined && !memory->bits.reserve(size / 8))
    return Status(StatusCode::OutOfMemory, "the emulator cannot reserve address space for its checks",
                  "raise 'ulimit -v'");
  if (trackDefined)
    memory->cells.reserve(size); // without them global races are not looked for
  memory->capacity = capacity;
  memory->next = memory->base() + roundUp(redzone, bufferAlign);
  return memory;
}

Result<std::uint64_t> GlobalMemory::allocate(std::uint64_t bytes, std::string_view label, bool writable) {
  if (bytes > capacity || live + bytes > capacity)
    return Status(StatusCode::OutOfMemory,
                  format("%llu bytes do not fit: the emulated GPU has %llu bytes, %llu are in use",
                         static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(capacity),
                         static_cast<unsigned long long>(live)));
  const std::uint64_t span = roundUp(bytes, bufferAlign) + redzone;
  std::uint64_t begin = 0;
  if (next + span <= base() + arena.size()) {
    begin = next;
    next += span;
  } else {
    auto range = reusable.lower_bound(span);
    while (range == reusable.end() && !quarantine.empty()) {
      const auto oldest = allocations.find(quarantine.front());
      quarantine.pop_front();
      reusable.emplace(roundUp(oldest->second.size, bufferAlign) + redzone, oldest->first);
      allocations.erase(oldest);
      range = reusable.lower_bound(span);
    }
    if (range == reusable.end())
      return Status(StatusCode::OutOfMemory, "the emulator's address space is used up");
    begin = range->second;
    reusable.erase(range);
  }
  Allocation a;
  a.begin = begin;
  a.size = bytes;
  a.label = std::string(label);
  a.serial = ++serials;
  a.writable = writable;
  allocations[begin] = std::move(a);
  live += bytes;
  return begin;
}

void GlobalMemory::release(std::uint64_t address) {
  const auto found = allocations.find(address);
  if (found == allocations.end() || found->second.freed)
    return;
  Allocation &a = found->second;
  a.freed = true;
  live -= a.size;
  arena.forget(a.begin - base(), a.size);
  if (tracking())
    bits.forget((a.begin - base()) / 8, (a.size + 7) / 8);
  if (raceCells())
    cells.forget(a.begin - base(), (a.size + 3) / 4 * 4);
  quarantine.push_back(a.begin);
  if (quarantine.size() > quarantineLength) {
    const auto oldest = allocations.find(quarantine.front());
    quarantine.pop_front();
    reusable.emplace(roundUp(oldest->second.size, bufferAlign) + redzone, oldest->first);
    allocations.erase(oldest);
  }
}

const Allocation *GlobalMemory::find(std::uint64_t address) const {
  auto it = allocations.upper_bound(address);
  if (it == allocations.begin())
    return nullptr;
  return &(--it)->second;
}

Allocation *GlobalMemory::before(std::uint64_t address) {
  return const_cast<Allocation *>(find(address));
}

const Allocation *GlobalMemory::holding(std::uint64_t address, std::uint64_t bytes) const {
  const Allocation *a = find(address);
  return a && !a->freed && address >= a->begin && address + bytes <= a->end() && address + bytes >= address ? a
                                                                                                            : nullptr;
}

std::string GlobalMemory::describe(std::uint64_t address, std::uint64_t bytes, bool &freedOne) const {
  freedOne = false;
  const Allocation *a = find(address);
  auto size = [](const Allocation &x) {
    return x.name() + " (" + std::to_string(x.size) + " bytes" + (x.freed ? ", freed" : "") + ")";
  };
  // The end of a buffer counts as near it as far as the next one does.
  const auto following = allocations.upper_bound(address);
  const bool nearNext = following != allocations.end() && following->first - address <= redzone / 2 &&
                        (!a || address >= a->end() + redzone / 2);
  if (nearNext)
    return std::to_string(following->first - address) + " bytes before the start of " + size(following->second);
  constexpr std::uint64_t nearness = std::uint64_t(1) << 20;
  if (a && address < a->end()) {
    if (a->freed) {
      freedOne = true;
      return std::to_string(address - a->begin) + " bytes into " + size(*a);
    }
    return std::to_string(address + bytes - a->end()) + " bytes past the end of " + size(*a) + ": it starts at byte " +
           std::to_string(address - a->begin);
  }
  if (a && address - a->end() < std::max(nearness, a->size)) {
    freedOne = a->freed;
    return std::to_string(address + bytes - a->end()) + " bytes past the end of " + size(*a);
  }
  return "in no buffer";
}

void GlobalMemory::hostWrote(std::uint64_t address, std::uint64_t bytes) {
  if (!tracking() || bytes == 0)
    return;
  Allocation *a = before(address);
  if (!a || a->defined)
    return;
  if (address == a->begin && bytes == a->size)
    a->defined = true;
  else
    markDefined(definedBits(), address - base(), bytes);
}

} // namespace kiln::emulator
