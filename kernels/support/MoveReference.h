//===- MoveReference.h - References of families that move values: bit-equal --===//
#ifndef KILN_KERNELS_SUPPORT_MOVEREFERENCE_H
#define KILN_KERNELS_SUPPORT_MOVEREFERENCE_H

#include "kernels/support/Reference.h"

namespace kiln::kernels {

/// Every element of an output is an element of an input: no difference is allowed.
class MoveReference : public Reference {
public:
  std::vector<double> allowed(std::string_view name, DType, const HostTensors &, const HostTensors &reference,
                              const OptionValues &) const override {
    return std::vector<double>(reference.find(name)->second.values.size(), 0.0);
  }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_MOVEREFERENCE_H
