//===- HostTensor.h - Tensors of a call on the host --------------------------===//
#ifndef KILN_KERNELS_SUPPORT_HOSTTENSOR_H
#define KILN_KERNELS_SUPPORT_HOSTTENSOR_H

#include "runtime/io/Npy.h"

#include <map>
#include <string>
#include <vector>

namespace kiln::kernels {

/// Arrays by parameter.
using Arrays = std::map<std::string, Array, std::less<>>;

/// In C order, as float64.
struct HostTensor {
  Shape shape;
  std::vector<double> values;
  /// Of a reference that would take too long as a whole: which elements `values` holds.  Empty: all.
  std::vector<std::uint64_t> sample = {};
  DType dtype = DType::F64; ///< of the array that the values come from
  /// Of a reference whose tolerance is stated in it: the same computation rounded to the call's type at every step.
  std::vector<double> rounded = {};
  /// Of a reference: what elements may be off by besides what the tolerance states.  Empty: nothing.
  std::vector<double> besides = {};
};
using HostTensors = std::map<std::string, HostTensor, std::less<>>;

HostTensor toHost(const Array &array);
HostTensors toHost(const Arrays &arrays);

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_HOSTTENSOR_H
