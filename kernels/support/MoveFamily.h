//===- MoveFamily.h - Families that move values: bit-equal -------------------===//
#ifndef KILN_KERNELS_SUPPORT_MOVEFAMILY_H
#define KILN_KERNELS_SUPPORT_MOVEFAMILY_H

#include "kernels/support/Family.h"

namespace kiln::kernels {

/// Every element of an output is an element of an input: no difference is allowed.
class MoveFamily : public Family {
public:
  std::vector<double> allowed(std::string_view name, DType, const HostTensors &, const HostTensors &reference,
                              const Numbers &) const override {
    return std::vector<double>(reference.find(name)->second.values.size(), 0.0);
  }
  double bytes(const Call &call) const override {
    const Tensor &x = call.tensors.at("x");
    return 2.0 * static_cast<double>(x.elements()) * dtypeBytes(x.dtype);
  }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_MOVEFAMILY_H
