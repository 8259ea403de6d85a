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

#include "kernels/support/Traffic.h"
#include "kiln/Language.h"
#include "kiln/Operation.h"
#include "kiln/Tensor.h"
#include "runtime/io/Npy.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kiln::kernels {

struct TensorParameter {
  std::string name; ///< "x": also the command line's --x
  bool output = false, optional = false;
  std::string description; ///< "rows x columns, f32, f16 or bf16"
};

struct NumberParameter {
  std::string name;
  double value = 0; ///< if the caller gives none
  std::string description;
};

using Numbers = std::map<std::string, double, std::less<>>;

/// One call on a device.
struct Call {
  std::map<std::string, Tensor, std::less<>> tensors;
  Numbers numbers;
};

/// A tensor on the host, in C order, as float64.
struct HostTensor {
  Shape shape;
  std::vector<double> values;
};
using HostTensors = std::map<std::string, HostTensor, std::less<>>;

struct TensorType {
  DType dtype = DType::F32;
  Shape shape;
  std::uint64_t elements() const {
    std::uint64_t n = 1;
    for (const std::uint64_t extent : shape)
      n *= extent;
    return n;
  }
};
using TensorTypes = std::map<std::string, TensorType, std::less<>>;

/// How a kernel was picked and tuned, as text: `kiln compile softmax --set block=2048`.
using Settings = std::map<std::string, std::string, std::less<>>;

class Family {
public:
  virtual ~Family() = default;

  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0; ///< one line
  virtual std::vector<TensorParameter> tensors() const = 0;
  virtual std::vector<NumberParameter> numbers() const { return {}; }

  /// Types of the outputs for inputs of these types, or what is wrong with the inputs.
  virtual Result<TensorTypes> outputs(const TensorTypes &inputs, const Numbers &numbers) const = 0;

  /// Checks the call and launches it on `options.stream`.
  virtual Status run(Jit &jit, const Call &call, const RunOptions &options) const = 0;

  /// The outputs in float64.
  virtual Result<HostTensors> reference(const HostTensors &inputs, const Numbers &numbers) const = 0;

  /// The largest |kernel - reference| that is allowed for each element of output `name` of type `dtype`; 0: bit-equal.
  virtual std::vector<double> allowed(std::string_view name, DType dtype, const HostTensors &inputs,
                                      const HostTensors &reference, const Numbers &numbers) const = 0;

  /// Bytes that must cross the memory bus: what bandwidths are counted with.
  virtual double bytes(const Call &call) const = 0;

  /// What each launch of a call on dense tensors must cost on any target: held against the emulator's counters.
  virtual std::vector<Traffic> traffic(const TensorTypes &inputs) const = 0;

  /// Inputs of a size worth looking at, for the demo and the benchmark: "small" for the emulator, else "large".
  virtual TensorTypes example(DType dtype, bool large) const = 0;

  /// The kernel for `kiln compile`, with the settings' names checked against the configuration's.
  virtual language::Kernel record(language::ElementType element, const Settings &settings) const = 0;
};

/// All families, in the order of Families.def.
const std::vector<std::unique_ptr<Family>> &families();
/// The failure lists the families and the nearest name.
Result<const Family *> findFamily(std::string_view name);
/// The named ones, in that order; all of them for no name.
Result<std::vector<const Family *>> selectFamilies(const std::vector<std::string> &names);

/// Every number parameter at its default.
Numbers defaultNumbers(const Family &family);

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_FAMILY_H
