//===- Runner.h - A family's call from host arrays to host arrays ------------===//
//
// What `kiln run`, `kiln demo`, `kiln bench` and the tests share: buffers on the device, outputs poisoned first, the
// call, its findings and times, the comparison with float64.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_RUNNER_H
#define KILN_KERNELS_SUPPORT_RUNNER_H

#include "kernels/support/Family.h"

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

struct Comparison {
  std::string output;                    ///< the worst one
  double worstExcess = 0;                ///< largest |difference| / allowed; 0 where both are 0; at most 1 is good
  double worstDifference = 0;            ///< largest |difference|
  std::uint64_t worstIndex = 0;          ///< of the worst excess
  double got = 0, wanted = 0;            ///< there
  std::uint64_t wrong = 0, elements = 0; ///< of those that were compared
  std::uint64_t all = 0;                 ///< more than `elements` if the reference is a sample
  /// Of the output whose mean difference is the largest part of what is allowed; 0: means are not limited.
  double meanExcess = 0;
  /// Of the output whose root mean square of differences is the largest part of what is allowed; 0: not limited.
  double ratioExcess = 0;
  bool good() const { return wrong == 0 && meanExcess <= 1 && ratioExcess <= 1; }
  std::string toString() const;
};

/// A failure if the family has no reference.
Result<Comparison> compareWithReference(const Family &family, const Arrays &inputs, const OptionValues &options,
                                        const Arrays &outputs);
/// What is allowed for the elements of each output.
using Limits = std::map<std::string, std::vector<double>, std::less<>>;
/// The same with `wanted`, wherever it comes from, in the place of what the reference computes.  `known`: limits of
/// comparisons before, with the same reference and options that give the same; those that it lacks are added.
Result<Comparison> compareWith(const HostTensors &wanted, const Reference &reference, const HostTensors &inputs,
                               const OptionValues &options, const Arrays &outputs, Limits *known = nullptr);

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_RUNNER_H
