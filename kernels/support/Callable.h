//===- Callable.h - What of a kernel family is called -------------------------===//
//
// Parameters with their types, the outputs that follow from the inputs, and the plan of a call: all that `kiln run`
// and `kiln compile` need.  Parameters are tensors and options; options come from the lists of the arguments structs
// (CallOptions.h), whose fields a call's values are written to.
//
// Invariants: outputs() and complete() refuse what a user may get wrong before anything is allocated, and name it; what
// bind() returns takes no lock and allocates nothing for a call of known kernels (kiln-hot-path-tests holds all
// families to it; attention's calls with functions or aux tensors do both).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_CALLABLE_H
#define KILN_KERNELS_SUPPORT_CALLABLE_H

#include "compiler/target/ProgramNeeds.h"
#include "kernels/support/Configuration.h"
#include "kernels/support/HostTensor.h"
#include "kernels/support/OptionValues.h"
#include "kiln/Language.h"
#include "kiln/Operation.h"
#include "kiln/Tensor.h"

#include <functional>
#include <memory>

namespace kiln::kernels {

/// An optional output is made if a flag of its name is among the call's options.
struct TensorParameter {
  std::string name; ///< "x": also the command line's --x
  bool output = false, optional = false;
  std::string description;         ///< "rows x columns, f32, f16 or bf16"
  std::optional<DType> dtype = {}; ///< none: see Callable::inputType
  std::string with = {};           ///< of an optional one: the other that a call needs with it
  /// Of an input that is no data of the caller's: the family whose output of this name it is, for the same inputs.
  std::string madeBy = {};
  /// Of an output that is what a call leaves in an input: the input, whose memory it is.
  std::string inPlaceOf = {};
  /// Any number of inputs, to which the caller gives names: `aux` stands for aux.NAME, aux.OTHER, ..
  bool isGroup = false;

  /// Whether a tensor of that name is this parameter's.
  bool has(std::string_view tensor) const {
    return isGroup ? tensor.size() > name.size() + 1 && tensor.starts_with(name) && tensor[name.size()] == '.'
                   : tensor == name;
  }
};

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

/// One call on a device.
struct Call {
  std::map<std::string, Tensor, std::less<>> tensors;
  OptionValues options;
};

class Callable {
public:
  virtual ~Callable() = default;

  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0; ///< one line
  virtual std::vector<TensorParameter> tensors() const = 0;
  virtual std::vector<OptionInfo> options() const { return {}; }
  /// Types of the inputs for which it exists; the first is what commands take if nobody names one.
  virtual std::vector<DType> dtypes() const { return {DType::F32, DType::F16, DType::BF16}; }

  /// Whether inputs whose type the caller chooses may have this one.
  virtual bool takes(DType type) const;

  /// What an input of a file is converted to; `called`: the type that the caller named.  None: it stays as it is.
  virtual std::optional<DType> inputType(const TensorParameter &parameter, std::optional<DType> called,
                                         const OptionValues &options) const {
    return parameter.dtype ? parameter.dtype : called;
  }

  /// Types of the outputs for inputs of these types, or what is wrong with the inputs.
  virtual Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &options) const = 0;

  /// Refuses values that types do not show to be wrong, such as tables of offsets that fall, and adds values that
  /// follow from the inputs'.  For inputs that `outputs` accepts.
  virtual Status complete(const Arrays &inputs, OptionValues &options) const { return {}; }

  /// Tensors that a call has besides its parameters: tables that the host makes of the inputs' values.
  virtual Result<Arrays> tables(const Arrays &inputs, const OptionValues &options) const { return Arrays(); }

  /// Checks calls and describes them to a plan (kiln/Plan.h).  What it returns keeps an operation that has recorded its
  /// kernels, and lives shorter than `jit`.
  using Planner = std::function<Status(const Call &, Plan &)>;
  virtual Planner bind(Jit &jit) const = 0;

  /// Checks one call and launches it on `options.stream`.
  Status run(Jit &jit, const Call &call, const RunOptions &options) const;
  /// As `run`, by an operation that was bound before.
  Status run(Jit &jit, const Planner &planner, const Call &call, const RunOptions &options) const;

  /// Checks one call and has what `run` would launch compiled, without waiting (kiln/Future.h).  So a program warms up
  /// by the names of its operations: findFamily(name), PlacedCall::createForPlans, this.
  CompileFuture prepareAsync(Jit &jit, const Call &call) const;

  /// The call's size in a few words; by default the shape of the first input.
  virtual std::string sizeText(const TensorTypes &inputs, const OptionValues &options) const;
  /// Bytes that must cross the memory bus: what bandwidths are counted with.  By default each tensor once.
  virtual double bytes(const Call &call) const;
  /// Floating-point operations, by the usual count; 0: not what the kernel's speed is measured in.
  virtual double flops(const Call &call) const { return 0; }

  /// What a program of the call needs at the least, for options that choose all of its tiles; nothing: not known.
  virtual std::optional<ProgramNeeds> needs(const Call &call, const Target &code) const { return {}; }

  /// What `record` takes: the fields of the kernel's configuration.
  virtual std::vector<FieldInfo> settings() const = 0;
  /// The kernel for `kiln compile`, of the default configuration with these settings.
  virtual language::Kernel record(DType element, const Settings &settings) const = 0;
};

/// What a call may say, made once: lists that tensors() and options() make anew each time.
struct CallTable {
  explicit CallTable(const Callable &callable)
      : name(callable.name()), tensors(callable.tensors()), options(callable.options()) {}
  std::string name;
  std::vector<TensorParameter> tensors;
  std::vector<OptionInfo> options;
};

/// Refuses a value of no option and no optional output of the family's, or of another type than its option's.
Status checkOptions(const CallTable &table, const OptionValues &options);
inline Status checkOptions(const Callable &callable, const OptionValues &options) {
  return checkOptions(CallTable(callable), options);
}

/// What `record` of a configuration gives, with these settings; of wrong settings a kernel that failed.
template <Configuration C, typename Record>
language::Kernel recordWith(const Settings &settings, C configuration, Record record) {
  if (Status s = applySettings(settings, configuration); !s.ok())
    return language::Kernel::failed(std::move(s));
  return record(std::as_const(configuration));
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_CALLABLE_H
