#include "runtime/device/emulator/execute/Schedule.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace kiln::emulator {

/// Choices in a row that may pass over a candidate: warps that wait for it in a way that the executor does not see as
/// waiting must not keep it from running for ever.
static constexpr unsigned mostPassedOver = 128;

void Chooser::start(Schedule schedule, RandomStream seeded, unsigned warps) {
  random = seeded;
  constexpr std::uint64_t means[] = {1, 2, 4, 16, 64};
  mean = means[random.below(std::size(means))];
  constexpr Style hostile[] = {Style::Reversed, Style::Starved, Style::Favoured, Style::Finest, Style::Priorities};
  style = schedule == Schedule::Adversarial ? hostile[random.below(std::size(hostile))] : Style::Uniform;
  special = static_cast<unsigned>(random.below(warps));
  last = 0;
  std::fill(std::begin(passedOver), std::end(passedOver), std::uint16_t(0));
  for (unsigned i = 0; i < maxCandidates; ++i)
    priority[i] = static_cast<std::uint8_t>(i);
  for (unsigned i = maxCandidates - 1; i > 0; --i)
    std::swap(priority[i], priority[random.below(i + 1)]);
}

unsigned Chooser::any(std::uint64_t candidates) {
  for (std::uint64_t skip = random.below(static_cast<unsigned>(std::popcount(candidates))); skip; --skip)
    candidates &= candidates - 1;
  return static_cast<unsigned>(std::countr_zero(candidates));
}

unsigned Chooser::chosenByStyle(std::uint64_t candidates) {
  const std::uint64_t one = std::uint64_t(1) << special;
  switch (style) {
  case Style::Reversed:
    return 63 - static_cast<unsigned>(std::countl_zero(candidates));
  case Style::Starved:
    return any(candidates & ~one ? candidates & ~one : candidates);
  case Style::Favoured:
    return candidates & one ? special : any(candidates);
  case Style::Finest: {
    const std::uint64_t below = candidates & ((std::uint64_t(1) << last) - 1);
    return 63 - static_cast<unsigned>(std::countl_zero(below ? below : candidates));
  }
  case Style::Priorities: {
    unsigned best = maxCandidates;
    for (std::uint64_t c = candidates; c; c &= c - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(c));
      if (best == maxCandidates || priority[i] > priority[best])
        best = i;
    }
    if (random.below(8) == 0) // it is the lowest from now on
      for (std::uint8_t &p : priority)
        p = static_cast<std::uint8_t>(&p == &priority[best] ? 0 : p + (p < priority[best]));
    return best;
  }
  case Style::Uniform:
    break;
  }
  return any(candidates);
}

unsigned Chooser::choose(std::uint64_t candidates) {
  unsigned chosen = chosenByStyle(candidates), most = mostPassedOver;
  for (std::uint64_t c = candidates; c; c &= c - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(c));
    if (++passedOver[i] > most) {
      most = passedOver[i];
      chosen = i;
    }
  }
  passedOver[chosen] = 0;
  return last = chosen;
}

std::uint64_t Chooser::turn() {
  if (style == Style::Finest)
    return 1;
  if (style == Style::Reversed || (style == Style::Favoured && last == special))
    return untilBlocked;
  return 1 + random.below(2 * mean);
}

unsigned Chooser::pickSplit(unsigned n) {
  return random.below(4) ? n : static_cast<unsigned>(random.below(n));
}

BlockOrder::BlockOrder(Schedule schedule, RandomStream &random, std::uint64_t count) : count(count) {
  if (count < 2)
    return;
  // Position -> position * factor + offset mod count is one to one if factor and count have no common divisor.
  const bool reversed = schedule == Schedule::Adversarial && random.below(2) == 0;
  do
    factor = reversed ? count - 1 : 1 + random.below(count - 1);
  while (std::gcd(factor, count) != 1);
  offset = reversed ? count - 1 : random.below(count);
}

std::uint64_t BlockOrder::at(std::uint64_t position) const {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(position) * factor + offset) % count);
}

} // namespace kiln::emulator

namespace kiln {

static constexpr std::string_view scheduleNames[] = {"in-order", "random", "adversarial"};

std::string_view scheduleName(Schedule schedule) {
  return scheduleNames[static_cast<std::size_t>(schedule)];
}

Result<Schedule> parseSchedule(std::string_view name) {
  for (std::size_t i = 0; i < std::size(scheduleNames); ++i)
    if (name == scheduleNames[i])
      return static_cast<Schedule>(i);
  return Status::invalid("'" + std::string(name) + "' is none of in-order, random, adversarial",
                         "use in-order, random or adversarial");
}

} // namespace kiln
