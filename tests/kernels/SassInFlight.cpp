#include "tests/kernels/SassInFlight.h"

#include <algorithm>
#include <bitset>
#include <cstdio>
#include <set>
#include <tuple>
#include <utility>

namespace kiln::test {

namespace {

constexpr unsigned noRegister = 255; // RZ
using Registers = std::bitset<256>;

void add(Registers &to, std::uint64_t first, unsigned count = 1) {
  for (unsigned i = 0; i < count && (first & 0xFF) + i < noRegister; ++i)
    to.set((first & 0xFF) + i);
}

struct Touches {
  Registers read, written;
};

bool isOneOf(unsigned family, std::initializer_list<unsigned> families) {
  return std::find(families.begin(), families.end(), family) != families.end();
}

/// Loads and stores say in three bits how wide they are.
unsigned registersMoved(const SassInstruction &i) {
  const unsigned width = i.high >> 9 & 7;
  return width == 6 ? 4 : width == 5 ? 2 : 1;
}

/// Of an instruction that is no product of a warpgroup.
Touches touchesOf(const SassInstruction &i) {
  const unsigned family = i.family();
  const std::uint64_t at16 = i.low >> 16, at24 = i.low >> 24, at32 = i.low >> 32, at64 = i.high;
  Touches t;
  if ((family >= 0x140 && family <= 0x15F) ||        // jumps, barriers of convergence
      (family >= 0x080 && family <= 0x0A0) ||        // uniform registers only
      (family >= 0x1C3 && family <= 0x1C8) ||        // waits for products, between warps
      isOneOf(family, {0x006, 0x01C, 0x02F,          // VOTE, PLOP3, ELECT
                       0x0B9, 0x118,                 // ULDC, NOP
                       0x11A, 0x11D,                 // DEPBAR, BAR
                       0x192, 0x1A7, 0x1B2, 0x1B4})) // MEMBAR, SYNCS, UTMALDG
    return t;
  if (family == 0x0CA) { // R2UR: to a uniform register
    add(t.read, at24);
    return t;
  }
  if (isOneOf(family, {0x00B, 0x00C, 0x02A, 0x033})) { // comparisons: to predicates
    add(t.read, at24);
    if (i.form() == 1)
      add(t.read, at32);
    return t;
  }
  if (isOneOf(family, {0x185, 0x186, 0x187, 0x188, 0x18E, 0x044})) { // stores, reductions, STSM
    add(t.read, at24, 2);
    add(t.read, at32, registersMoved(i));
    return t;
  }
  if (family == 0x1A6) { // reductions of two neighbours
    add(t.read, at24, 2);
    add(t.read, at32, 2);
    return t;
  }
  if (isOneOf(family, {0x180, 0x181, 0x183, 0x184, 0x182, 0x03B})) { // loads, LDSM
    add(t.read, at24, 2);
    add(t.written, at16, family == 0x03B ? 4 : registersMoved(i));
    return t;
  }
  add(t.written, at16, isOneOf(family, {0x005, 0x025}) ? 2 : 1); // CS2R, IMAD.WIDE
  add(t.read, at24);
  if (i.form() == 1)
    add(t.read, at32);
  add(t.read, at64);
  return t;
}

struct Product {
  std::size_t place = 0;
  Registers sums, operand;
};

Product productAt(const SassInstruction &i, std::size_t place) {
  Product p{place, {}, {}};
  const auto columns = static_cast<unsigned>(((i.low >> 53 & 0x1F) + 1) * 8);
  add(p.sums, i.low >> 16, columns / 2); // 64 rows x columns over 128 threads
  if (i.operation() >= 0xC00)
    add(p.operand, i.low >> 24, 4);
  return p;
}

/// What is in flight before an instruction: complete groups, oldest first, then the group that is open.
struct InFlight {
  std::vector<std::vector<std::size_t>> groups;
  std::vector<std::size_t> open;
  friend bool operator<(const InFlight &a, const InFlight &b) {
    return std::tie(a.groups, a.open) < std::tie(b.groups, b.open);
  }
  template <typename F> void forEach(F f) const {
    for (const auto &group : groups)
      for (const std::size_t p : group)
        f(p);
    for (const std::size_t p : open)
      f(p);
  }
};

constexpr unsigned branch = 0x947, leave = 0x94D;

/// The place that a jump at `place` goes to.
std::size_t targetOf(const SassInstruction &i, std::size_t place) {
  const std::uint64_t words = (i.high & 0x3FFFF) << 38 | (i.low >> 34) << 8 | (i.low >> 16 & 0xFF); // of 4 bytes
  const auto distance = static_cast<std::int64_t>(words << 8) >> 8;                                 // 56 bits
  return static_cast<std::size_t>(static_cast<std::int64_t>(place) + 1 + distance / 4);
}

/// Walks the text; `visit(place, in flight)` for each instruction and each state that it can begin in.
template <typename Visit> void walk(const std::vector<SassInstruction> &text, Visit visit) {
  std::set<std::pair<std::size_t, InFlight>> seen;
  std::vector<std::pair<std::size_t, InFlight>> work = {{0, {}}};
  while (!work.empty()) {
    auto [place, now] = std::move(work.back());
    work.pop_back();
    for (; place < text.size(); ++place) {
      const SassInstruction &i = text[place];
      visit(place, now);
      if (i.isProduct()) {
        now.open.push_back(place);
        if ((i.high >> 20 & 7) != 7) { // it ends a group
          now.groups.push_back(std::move(now.open));
          now.open.clear();
        }
      } else if (i.isProductWait() && now.groups.size() > i.leftByWait()) {
        now.groups.erase(now.groups.begin(), now.groups.end() - i.leftByWait());
      } else if (i.operation() == branch) {
        const std::size_t target = targetOf(i, place);
        if (seen.insert({target, now}).second)
          work.push_back({target, now});
        if (i.isAlways() || !seen.insert({place + 1, now}).second)
          break;
      } else if (i.operation() == leave && i.isAlways()) {
        break;
      }
    }
  }
}

} // namespace

InFlightReport touchedInFlight(const std::vector<SassInstruction> &text) {
  InFlightReport report;
  std::set<std::size_t> products, meanwhile;
  std::set<std::tuple<std::size_t, std::size_t>> told;
  walk(text, [&](std::size_t place, const InFlight &now) {
    const SassInstruction &i = text[place];
    const Product own = i.isProduct() ? productAt(i, place) : Product{};
    const Touches touches = i.isProduct() ? Touches{own.operand, {}} : touchesOf(i);
    if (i.isProduct() && products.insert(place).second)
      report.fromRegisters += own.operand.any();
    now.forEach([&](std::size_t p) {
      const Product other = productAt(text[p], p);
      if (!i.isProduct() && (touches.read | touches.written).any())
        meanwhile.insert(place);
      Registers sums = other.sums & (touches.read | touches.written);
      if (i.isProduct() && own.sums != other.sums)
        sums |= other.sums & own.sums;
      const Registers operand = other.operand & (touches.written | own.sums);
      if ((sums | operand).none() || !told.insert({place, p}).second)
        return;
      const Registers &bad = sums.any() ? sums : operand;
      report.touched.push_back({place, p, static_cast<unsigned>(bad._Find_first()), sums.any()});
    });
  });
  report.products = static_cast<unsigned>(products.size());
  report.meanwhile = static_cast<unsigned>(meanwhile.size());
  for (const std::size_t place : meanwhile)
    report.spills += isOneOf(text[place].family(), {0x183, 0x187}); // LDL, STL
  return report;
}

std::vector<SassInstruction> withTouchInFlight(std::vector<SassInstruction> text, bool sum) {
  std::pair<std::size_t, unsigned> found{text.size(), noRegister};
  walk(text, [&](std::size_t place, const InFlight &now) {
    if (found.first < text.size() || text[place].isProduct() || touchesOf(text[place]).written.count() != 1)
      return;
    now.forEach([&](std::size_t p) {
      const Product product = productAt(text[p], p);
      const Registers &of = sum ? product.sums : product.operand;
      if (of.any())
        found = {place, static_cast<unsigned>(of._Find_first())};
    });
  });
  if (found.first == text.size())
    return {};
  SassInstruction &i = text[found.first];
  i.low = (i.low & ~(std::uint64_t(0xFF) << 16)) | std::uint64_t(found.second) << 16;
  return text;
}

std::string TouchedInFlight::text(const std::vector<SassInstruction> &of) const {
  char line[160];
  std::snprintf(line, sizeof(line), "%#zx (operation %#x) touches R%u, %s of the product in flight at %#zx",
                16 * toucher, of[toucher].operation(), reg, isSum ? "a sum" : "an operand", 16 * product);
  return line;
}

} // namespace kiln::test
