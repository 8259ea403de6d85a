//===- Pruning.h - Configurations that are not worth a measurement ------------===//
//
// Each rejection has a rule and a reason.  Rules are tried in their order and the first that rejects counts, so that
// the counts of the table add up to the space.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_PRUNING_H
#define KILN_RUNTIME_TUNE_PRUNING_H

#include "compiler/target/ProgramNeeds.h"
#include "compiler/target/Target.h"
#include "runtime/tune/Space.h"

#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <variant>

namespace kiln::tune {

/// KILN_TUNE_RULE(id, name, what it rejects).  All but the last two need no compile.
#define KILN_TUNE_RULES                                                                                                \
  KILN_TUNE_RULE(Threads, "threads", "more threads than a block may have")                                             \
  KILN_TUNE_RULE(SharedMemory, "shared memory", "tiles in flight that a block's shared memory does not hold")          \
  KILN_TUNE_RULE(Registers, "registers", "tiles that the registers of a program's threads do not hold")                \
  KILN_TUNE_RULE(Kernel, "kernel", "what the kernel itself refuses")                                                   \
  KILN_TUNE_RULE(Rank, "rank", "configurations after the best of the model's order (--keep)")                          \
  KILN_TUNE_RULE(Spills, "spills", "code that spills more registers to memory than the call's default")                \
  KILN_TUNE_RULE(Occupancy, "occupancy", "code of which no block fits a multiprocessor")

enum class Rule : std::uint8_t {
#define KILN_TUNE_RULE(id, name, text) id,
  KILN_TUNE_RULES
#undef KILN_TUNE_RULE
};
constexpr unsigned rules = static_cast<unsigned>(Rule::Occupancy) + 1;
std::string_view ruleName(Rule rule);
std::string_view ruleText(Rule rule);

struct Rejection {
  Rule rule;
  std::string reason;
};

/// Whether the target can hold one program.
std::optional<Rejection> judge(const ProgramNeeds &needs, const Target &target);

/// What an assembler says of a compiled program.
struct CodeReport {
  unsigned threads = 0;
  unsigned registers = 0; ///< 0: not known
  std::uint64_t sharedBytes = 0, spillBytes = 0;
};
/// `spillBytes`: that any kernel of the call's default spills; what is as fast as possible may spill a little.
std::optional<Rejection> judge(const CodeReport &code, const Target &target, std::uint64_t spillBytes);

/// A configuration that is worth a measurement.
struct Candidate {
  std::size_t number = 0;         ///< in the space
  std::optional<double> estimate; ///< milliseconds, by the model; for an order only
  bool isDefault = false;         ///< what the call takes where it is not tuned
};

/// In the model's order: the default first, those without an estimate last.
double orderOf(const Candidate &candidate);

struct Pruned {
  std::vector<Candidate> kept; ///< in the space's order
  std::array<std::size_t, rules> rejected{};
  std::array<std::string, rules> example; ///< of each rule the first one's configuration and reason
  double slowestMilliseconds = 0;         ///< of the processor, to reject one configuration

  void reject(const Space &space, std::size_t number, const Rejection &rejection);
};

/// Judges one configuration: a rejection, or what the model makes of it.
using Judge = std::function<Result<std::variant<Rejection, std::optional<double>>>(const Configuration &)>;

/// Judges the whole space.  A failure of the judge ends it.
Result<Pruned> prune(const Space &space, const Judge &judge);

/// Leaves the `most` that the model likes best, the default among them; those without an estimate count as the worst.
/// All stay where none has one: there is no order.
void keepBest(Pruned &pruned, const Space &space, std::size_t most);

/// Nothing is left: which rules rejected how many, with an example each.
Status nothingLeft(const Pruned &pruned);

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_PRUNING_H
