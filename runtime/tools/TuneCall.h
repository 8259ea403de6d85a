//===- TuneCall.h - The call that `kiln tune` tunes, and its space -----------===//
//
// One call of a kernel of the library with the parameters that a tuner may choose for it: the options whose values are
// marked as tuned (CallOptions.h) and those that the user names.  Judges configurations by what the family and the
// target table say, without compiling.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_TUNECALL_H
#define KILN_RUNTIME_TOOLS_TUNECALL_H

#include "kernels/support/Runner.h"
#include "runtime/model/Hardware.h"
#include "runtime/tools/FamilyCalls.h"
#include "runtime/tools/RunOptions.h"
#include "runtime/tune/Journal.h"
#include "runtime/tune/Pruning.h"

#include <memory>
#include <sys/types.h>

namespace kiln::tools {

struct TuneRequest {
  RunOptions run;
  std::string kernel, dtype;
  std::vector<std::string> with, set;
  bool flushL2 = false, noFlushL2 = false; ///< as they were given: see flushes()
  pid_t sweepProcess = 0;                  ///< of this host, that has the sweep and its GPU open; 0: none besides ours
  /// Other programs use the GPU meanwhile, so of a configuration's samples the least counts, not the median.
  bool isShared = false;
  /// Whether the L2 of a GPU is flushed before each launch that is timed.
  bool flushes() const { return !noFlushL2; }
};

/// The space of a family's options for a call that fixes some.  `set`: NAME=V1,V2, instead of an option's own values,
/// or of an option that is not tuned.  The failure names the parameter, and what contradicts it.
Result<tune::Space> spaceOf(const kernels::Callable &callable, const kernels::OptionValues &fixed,
                            const std::vector<std::string> &set);

class TuneCall {
public:
  static Result<std::unique_ptr<TuneCall>> create(const TuneRequest &request);

  const tune::Space &space() const { return *configurations; }
  const Device &device() const { return *owned; }
  bool isPredicted() const { return owned->info().kind == DeviceKind::Emulator; }
  /// Failed if the model knows no GPU of the target.
  const Status &modelStatus() const { return known; }
  /// What the code may use, with the shared memory that the device has.
  const Target &codeTarget() const { return target; }
  Result<tune::JournalHeader> header() const;

  /// A rejection before any compile, or the model's estimate.
  Result<std::variant<tune::Rejection, std::optional<double>>> judge(const tune::Configuration &configuration) const;
  /// Says which candidate is what the call takes where nothing is tuned: the one whose launches are the same.  Where
  /// none is (its limits may be no parameter's, or a rule rejected it), the space gets one more configuration, of the
  /// options' defaults, unless --set says what is tried.  Nothing, if the kernel refuses the call without a
  /// configuration.
  void findDefault(std::vector<tune::Candidate> &candidates);

  struct Kept {
    TunedQuestion question;
    TunedValues values;
  };
  /// Keeps the winner in the kernel cache, for calls that ask as this one does.  Refused if the winner says something
  /// that no call asks for, such as splits.
  Result<std::vector<Kept>> keep(const tune::Entry &winner, const tune::Entry *usual, std::size_t configurations);

private:
  TuneCall() = default;
  /// With a configuration's values as options.
  kernels::Call callOf(const tune::Configuration &configuration) const;
  std::unique_ptr<Device> owned; // before what it makes
  std::unique_ptr<Jit> jit;
  FamilyCall of;
  std::optional<kernels::PlacedCall> placed;
  kernels::Callable::Planner planner;
  std::vector<kernels::OptionInfo> options; ///< of the space's parameters
  std::optional<tune::Space> configurations;
  Target target; ///< what the code may use and the device has
  Status known;  ///< whether the model knows the target
  model::Hardware hardware;
  std::vector<std::string> with;
  bool isRestricted = false; ///< by --set
  bool flushesL2 = true;
  std::vector<TunedQuestion> questions; ///< that operations asked
};

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_TUNECALL_H
