#include "runtime/tune/Pruning.h"

#include "support/Text.h"

#include <algorithm>
#include <ctime>
#include <limits>

namespace kiln::tune {

std::string_view ruleName(Rule rule) {
  static constexpr std::string_view names[] = {
#define KILN_TUNE_RULE(id, name, text) name,
      KILN_TUNE_RULES
#undef KILN_TUNE_RULE
  };
  return names[static_cast<unsigned>(rule)];
}

std::string_view ruleText(Rule rule) {
  static constexpr std::string_view texts[] = {
#define KILN_TUNE_RULE(id, name, text) text,
      KILN_TUNE_RULES
#undef KILN_TUNE_RULE
  };
  return texts[static_cast<unsigned>(rule)];
}

std::optional<Rejection> judge(const ProgramNeeds &needs, const Target &target) {
  const unsigned threads = 32 * needs.warps;
  const std::string name(target.name);
  if (threads > target.threadsPerBlock)
    return Rejection{Rule::Threads, std::to_string(threads) + " threads; a block of " + name + " has at most " +
                                        std::to_string(target.threadsPerBlock)};
  if (needs.sharedBytes > target.sharedOptIn)
    return Rejection{Rule::SharedMemory, "tiles in flight take " + std::to_string(needs.sharedBytes) +
                                             " bytes of shared memory; a block of " + name + " has " +
                                             std::to_string(target.sharedOptIn)};
  const unsigned registers = std::min(target.registersPerThread, threads ? target.registersPerSm / threads : 0);
  if (needs.registers > registers)
    return Rejection{Rule::Registers, "tiles take " + std::to_string(needs.registers) +
                                          " registers of a thread; one of " + std::to_string(threads) + " on " + name +
                                          " has " + std::to_string(registers)};
  return {};
}

std::optional<Rejection> judge(const CodeReport &code, const Target &target, std::uint64_t spillBytes) {
  if (code.spillBytes > spillBytes)
    return Rejection{Rule::Spills, std::to_string(code.spillBytes) + " bytes of a thread are spilled; of the default " +
                                       std::to_string(spillBytes)};
  if (residentBlocks(target, code.threads, code.sharedBytes, code.registers) == 0)
    return Rejection{Rule::Occupancy, std::to_string(code.threads) + " threads of " + std::to_string(code.registers) +
                                          " registers and " + std::to_string(code.sharedBytes) +
                                          " bytes of shared memory do not fit a multiprocessor of " +
                                          std::string(target.name)};
  return {};
}

void Pruned::reject(const Space &space, std::size_t number, const Rejection &rejection) {
  const auto rule = static_cast<unsigned>(rejection.rule);
  if (rejected[rule]++ == 0)
    example[rule] = space.text(space.at(number)) + ": " + rejection.reason;
}

/// Of the processor, so that others on the machine do not count.
static double threadMilliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

Result<Pruned> prune(const Space &space, const Judge &judge) {
  Pruned out;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const double begin = threadMilliseconds();
    KILN_ASSIGN(const auto verdict, judge(space.at(i)));
    if (const Rejection *r = std::get_if<Rejection>(&verdict)) {
      out.slowestMilliseconds = std::max(out.slowestMilliseconds, threadMilliseconds() - begin);
      out.reject(space, i, *r);
    } else
      out.kept.push_back({.number = i, .estimate = std::get<std::optional<double>>(verdict)});
  }
  return out;
}

double orderOf(const Candidate &candidate) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return candidate.isDefault ? -infinity : candidate.estimate.value_or(infinity);
}

void keepBest(Pruned &pruned, const Space &space, std::size_t most) {
  const bool isOrdered =
      std::any_of(pruned.kept.begin(), pruned.kept.end(), [](const Candidate &c) { return c.estimate.has_value(); });
  if (!isOrdered || pruned.kept.size() <= most)
    return;
  std::stable_sort(pruned.kept.begin(), pruned.kept.end(),
                   [](const Candidate &a, const Candidate &b) { return orderOf(a) < orderOf(b); });
  for (std::size_t i = most; i < pruned.kept.size(); ++i)
    pruned.reject(space, pruned.kept[i].number,
                  {Rule::Rank,
                   "number " + std::to_string(i + 1) + " in the model's order; " + std::to_string(most) + " are kept"});
  pruned.kept.resize(most);
  std::sort(pruned.kept.begin(), pruned.kept.end(),
            [](const Candidate &a, const Candidate &b) { return a.number < b.number; });
}

Status nothingLeft(const Pruned &pruned) {
  std::vector<std::string> parts;
  for (unsigned r = 0; r < rules; ++r)
    if (pruned.rejected[r])
      parts.push_back(std::string(ruleName(static_cast<Rule>(r))) + " rejects " + std::to_string(pruned.rejected[r]) +
                      " (" + pruned.example[r] + ")");
  return Status::invalid("the constraints leave no configuration: " + join(parts, "; "),
                         "widen the values that these name: --set NAME=V1,V2");
}

} // namespace kiln::tune
