//===- Runner.h - A family's call from host arrays to host arrays ------------===//
//
// What `kiln run`, `kiln demo`, `kiln bench` and the tests share: buffers on the device, outputs poisoned first, the
// call, its findings and times, the comparison with float64.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_RUNNER_H
#define KILN_KERNELS_SUPPORT_RUNNER_H

#include "kernels/support/Comparison.h"
#include "kernels/support/Family.h"
#include "support/Parallel.h"

#include <algorithm>
#include <random>
#include <set>

namespace kiln::kernels {

/// What lies around a call's tensors.
enum class Around : std::uint8_t { Anything, Redzones };

/// A call whose tensors lie in buffers of their own: inputs copied there, outputs poisoned, but for those that are the
/// memory of an input.
class PlacedCall {
public:
  static Result<PlacedCall> create(Device &device, const Callable &callable, const Arrays &inputs,
                                   const OptionValues &options, Around around = Around::Anything);
  /// For plans, which look at shapes and addresses: the buffers hold anything.  Not to be run.
  static Result<PlacedCall> createForPlans(Device &device, const Callable &callable, const Arrays &inputs,
                                           const OptionValues &options);
  /// Makes it the call of the same inputs with these options, outputs poisoned again, without copying inputs that are
  /// only read: they are as the calls before left them.  False: the options ask for other tensors, nothing has changed.
  Result<bool> renew(const Callable &callable, const Arrays &inputs, const OptionValues &options);
  const Call &call() const { return tensors; }
  /// The outputs as they are now.
  Result<Arrays> readOutputs() const;
  /// The same, into memory that an earlier call of the same types left: of gigabytes a fourth of the time.
  Status readOutputs(Arrays &out) const;
  /// Of a call between redzones: what it wrote that is not its to write, around its tensors or in `inputs`, which it
  /// was made with; nothing: all is as it was.  Of inputs larger than a piece (Redzones.h) that of number `turn` is
  /// compared.
  Result<std::optional<std::string>> trespass(const Arrays &inputs, std::size_t turn) const;

private:
  /// Everything but what lies in the buffers.
  static Result<PlacedCall> planned(const Callable &callable, const Arrays &inputs, const OptionValues &options,
                                    Arrays &tables);
  Status place(Device &device, const std::string &name, const TensorType &type);
  void putInPlace(const Callable &callable);
  /// Of a tensor; of an output in place its input's.
  const Buffer &bufferOf(const std::string &name) const {
    const auto input = inPlace.find(name);
    return *buffers.at(input == inPlace.end() ? name : input->second);
  }
  std::map<std::string, std::unique_ptr<Buffer>, std::less<>> buffers;
  std::map<std::string, std::string, std::less<>> inPlace; ///< outputs that are an input's memory, and the input
  std::set<std::string, std::less<>> written;              ///< inputs that a call may write
  std::size_t margin = 0;                                  ///< of each buffer, before the tensor and after it
  TensorTypes outputTypes;
  Call tensors;
};

struct RunnerOptions {
  unsigned repeat = 1; ///< runs, each from the same inputs
  bool read = true;    ///< bring the outputs back
};

struct RunnerResult {
  Arrays outputs;
  std::vector<Finding> findings;
  std::vector<double> milliseconds; ///< of each run; host time of the emulator's launches, event time on a GPU
  double firstCallMilliseconds = 0; ///< the first run, compiles included
  double bytes = 0;                 ///< that must cross the memory bus in one run
  double flops = 0;                 ///< of one run; 0: see Callable::flops
};

/// Inputs by parameter name; a missing optional one is left out of the call.
Result<RunnerResult> runCall(Jit &jit, const Callable &callable, const Arrays &inputs, const OptionValues &options,
                             const RunnerOptions &how = {});

/// Draws n values with one generator for each 2^20 of them, the first seeded with `seed`: draw(random, begin, end) for
/// each, by several threads.  What is drawn depends on the seed alone.
template <typename F> void drawInPieces(std::size_t n, std::uint64_t seed, const F &draw) {
  constexpr std::size_t piece = std::size_t(1) << 20;
  inPieces(n, piece, [&](std::size_t begin, std::size_t end) {
    std::mt19937_64 random(seed + begin / piece * 0x9E3779B97F4A7C15u);
    draw(random, begin, end);
  });
}
/// Random values of a type, the same for a seed: normal, with a share of zeros and of exact repeats.  Of i8: any.
Array randomArray(const TensorType &type, std::uint64_t seed);
/// These values, converted to a floating-point type.
Array arrayOf(const TensorType &type, std::span<const float> values);
/// The family's own values for an input, or random ones; the same for a seed.
Array randomInput(const Family &family, std::string_view name, const TensorType &type, std::uint64_t seed);
/// Those of every input among `types`.
Arrays randomInputs(const Family &family, const TensorTypes &types, std::uint64_t seed);

/// The call whose outputs are inputs of another one.
struct MakerCall {
  const Family *family;
  Arrays inputs;
  OptionValues options;
};
/// What makes input `p` of a call with these inputs, of which those named in `made` are made.
Result<MakerCall> makerOf(const TensorParameter &p, const Arrays &inputs, const OptionValues &options,
                          const std::vector<std::string> &made);

/// `inputs` and those named in `made`, from calls of the families that make them, with the options that these have.
/// `isPlanned`: zeros in the place of what those calls would make; nothing runs.
Result<Arrays> withMadeInputs(Jit &jit, const Callable &callable, Arrays inputs, const OptionValues &options,
                              const std::vector<std::string> &made, bool isPlanned = false);
/// All inputs of a sample: random ones, those that it gives, and those that are made from them.
Result<Arrays> sampleInputs(Jit &jit, const Family &family, const Sample &sample, std::uint64_t seed);

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_RUNNER_H
