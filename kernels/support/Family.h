//===- Family.h - A kernel family as commands and tests see it ---------------===//
//
// Every family (softmax, transpose, ..) is one folder: the recorded kernels, an Operation with a typed arguments struct
// for C++ callers, a float64 reference, and one Family object that names it all for `kiln run`, `kiln demo`,
// `kiln compile`, `kiln bench` and the tests.  kernels/Families.def lists the families: that is the one place.
//
// Invariants: reference() is computed in float64 from the values that the kernel read (already rounded to the tensors'
// type) and shares no code with the kernel; allowed() is the documented tolerance, element by element.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_FAMILY_H
#define KILN_KERNELS_SUPPORT_FAMILY_H

#include "kernels/support/Configuration.h"
#include "kernels/support/Traffic.h"
#include "kiln/Language.h"
#include "kiln/Operation.h"
#include "kiln/Tensor.h"
#include "runtime/io/Npy.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kiln::kernels {

/// An optional output is made if the call's numbers have its name.
struct TensorParameter {
  std::string name; ///< "x": also the command line's --x
  bool output = false, optional = false;
  std::string description;         ///< "rows x columns, f32, f16 or bf16"
  std::optional<DType> dtype = {}; ///< none: see Family::inputType
  std::string with = {};           ///< of an optional one: the other that a call needs with it
  /// Of an input that is no data of the caller's: the family whose output of this name it is, for the same inputs.
  std::string madeBy = {};
};

struct NumberParameter {
  std::string name;
  std::optional<double> value = {}; ///< if the caller gives none; none: the call goes without
  std::string description = {};
  std::vector<std::string> choices = {}; ///< written as one of these words; the number is its place among them
  bool flag = false;                     ///< written --name, without a value: 1
  std::vector<std::string> keys = {};    ///< several numbers with commas between, and their names in Numbers
};

using Numbers = std::map<std::string, double, std::less<>>;

/// The number, or `otherwise` if the call goes without.
inline double numberOr(const Numbers &numbers, std::string_view name, double otherwise) {
  const auto found = numbers.find(name);
  return found == numbers.end() ? otherwise : found->second;
}

/// `numbers[name]` as f32; a value that f32 does not hold, as it was written, is refused.
Result<float> floatOr(std::string_view operation, const Numbers &numbers, std::string_view name, float otherwise);

/// One call on a device.
struct Call {
  std::map<std::string, Tensor, std::less<>> tensors;
  Numbers numbers;
};

/// Arrays on the host by parameter.
using Arrays = std::map<std::string, Array, std::less<>>;

/// A tensor on the host, in C order, as float64.
struct HostTensor {
  Shape shape;
  std::vector<double> values;
  /// Of a reference that would take too long as a whole: which elements `values` holds.  Empty: all.
  std::vector<std::uint64_t> sample = {};
  DType dtype = DType::F64; ///< of the array that the values come from
  /// Of a reference whose tolerance is stated in it: the same computation rounded to the call's type at every step.
  std::vector<double> rounded = {};
};
using HostTensors = std::map<std::string, HostTensor, std::less<>>;

struct TensorType {
  DType dtype = DType::F32;
  Shape shape;
  /// Of an output: what elements hold that a call may leave alone.  None: it writes them all.
  std::optional<double> rest = {};
  std::uint64_t elements() const {
    std::uint64_t n = 1;
    for (const std::uint64_t extent : shape)
      n *= extent;
    return n;
  }
};
using TensorTypes = std::map<std::string, TensorType, std::less<>>;

/// A call to try a kernel with.
struct Sample {
  TensorTypes inputs;
  Numbers numbers;
  std::vector<std::string> made = {}; ///< inputs that come from the family that makes them (TensorParameter::madeBy)
};

/// What samples are for: a look at the kernel, its speed, its defects.
enum class SampleUse : std::uint8_t { Demo, Bench, Check };

class Family {
public:
  virtual ~Family() = default;

  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0; ///< one line
  virtual std::vector<TensorParameter> tensors() const = 0;
  virtual std::vector<NumberParameter> numbers() const { return {}; }
  /// Types of the inputs for which it exists; the first is what commands take if nobody names one.
  virtual std::vector<DType> dtypes() const { return {DType::F32, DType::F16, DType::BF16}; }

  /// Whether inputs whose type the caller chooses may have this one.
  virtual bool takes(DType type) const;

  /// What an input of a file is converted to; `called`: the type that the caller named.  None: it stays as it is.
  virtual std::optional<DType> inputType(const TensorParameter &parameter, std::optional<DType> called,
                                         const Numbers &numbers) const {
    return parameter.dtype ? parameter.dtype : called;
  }

  /// Types of the outputs for inputs of these types, or what is wrong with the inputs.
  virtual Result<TensorTypes> outputs(const TensorTypes &inputs, const Numbers &numbers) const = 0;

  /// Refuses values that types do not show to be wrong, such as tables of offsets that fall, and adds numbers that
  /// follow from values.  For inputs that `outputs` accepts.
  virtual Status complete(const Arrays &inputs, Numbers &numbers) const { return {}; }

  /// Checks calls and describes them to a plan (kiln/Plan.h).  What it returns keeps an operation that has recorded its
  /// kernels, and lives shorter than `jit`.
  using Planner = std::function<Status(const Call &, Plan &)>;
  virtual Planner bind(Jit &jit) const = 0;

  /// Checks one call and launches it on `options.stream`.
  Status run(Jit &jit, const Call &call, const RunOptions &options) const;
  /// As `run`, by an operation that was bound before.
  Status run(Jit &jit, const Planner &planner, const Call &call, const RunOptions &options) const;

  /// The outputs in float64.
  virtual Result<HostTensors> reference(const HostTensors &inputs, const Numbers &numbers) const = 0;

  /// The largest |kernel - reference| that is allowed for each element of output `name` of type `dtype`; 0: bit-equal.
  virtual std::vector<double> allowed(std::string_view name, DType dtype, const HostTensors &inputs,
                                      const HostTensors &reference, const Numbers &numbers) const = 0;

  /// The largest mean of |kernel - reference| over an output, beside what is allowed for each element; none: any.
  virtual std::optional<double> allowedMean(std::string_view name, DType dtype, const HostTensor &reference) const {
    return {};
  }

  /// The largest root mean square of kernel - reference over an output, divided by the reference's; none: any.
  virtual std::optional<double> allowedRatio(std::string_view name) const { return {}; }

  /// Values to try an input with, the same for the same seed; by default randomArray (Runner.h).
  virtual Array input(std::string_view name, const TensorType &type, std::uint64_t seed) const;

  /// Bytes that must cross the memory bus: what bandwidths are counted with.  By default each tensor once.
  virtual double bytes(const Call &call) const;

  /// Floating-point operations, by the usual count; 0: not what the kernel's speed is measured in.
  virtual double flops(const Call &call) const { return 0; }

  /// What each launch of a call on dense tensors must cost on any target: held against the emulator's counters.
  /// Nothing: not stated in closed form.
  virtual std::vector<Traffic> traffic(const TensorTypes &inputs) const { return {}; }

  /// Inputs of a size worth looking at: "small" for the emulator, else "large".
  virtual TensorTypes example(DType dtype, bool large) const { return {}; }
  /// Calls of that type; `gpu`: sizes that fill one.  By default of the example, for Check in four sizes.
  virtual std::vector<Sample> samples(DType dtype, SampleUse use, bool gpu) const;
  /// The call's size in a few words; by default the shape of the first input.
  virtual std::string sizeText(const TensorTypes &inputs, const Numbers &numbers) const;

  /// The kernel's stride arguments that are 1 for dense tensors; none: of each pointer the last.
  virtual std::optional<std::vector<std::string>> unitStrides() const { return {}; }

  /// What `record` takes: the fields of the kernel's configuration.
  virtual std::vector<FieldInfo> settings() const = 0;
  /// The kernel for `kiln compile`, of the default configuration with these settings.
  virtual language::Kernel record(DType element, const Settings &settings) const = 0;
};

/// All families, in the order of Families.def.
const std::vector<std::unique_ptr<Family>> &families();
/// The failure lists the families and the nearest name.
Result<const Family *> findFamily(std::string_view name);
/// The named ones, in that order; all of them for no name.
Result<std::vector<const Family *>> selectFamilies(const std::vector<std::string> &names);

/// Those of `wanted` that the family has; of none, a failure that lists them.
Result<std::vector<DType>> chooseTypes(const Family &family, const std::vector<DType> &wanted);

struct KernelTypes {
  const Family *family;
  std::vector<DType> types;
};
/// Each named kernel with those of the types that it has; a failure if it has none.  Without names: every kernel that
/// has some.
Result<std::vector<KernelTypes>> selectKernels(const std::vector<std::string> &names,
                                               const std::vector<std::string> &dtypes);

/// Every number parameter that has a default, at it.
Numbers defaultNumbers(const Family &family);

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_FAMILY_H
