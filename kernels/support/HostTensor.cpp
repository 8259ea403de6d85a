#include "kernels/support/HostTensor.h"

namespace kiln::kernels {

HostTensor toHost(const Array &array) {
  HostTensor out{array.shape, std::vector<double>(array.elements()), {}, array.type};
  const unsigned bytes = dtypeBytes(array.type);
  for (std::uint64_t i = 0; i < out.values.size(); ++i)
    out.values[i] = loadElement(array.data.data() + i * bytes, array.type);
  return out;
}

HostTensors toHost(const Arrays &arrays) {
  HostTensors out;
  for (const auto &[name, array] : arrays)
    out[name] = toHost(array);
  return out;
}

} // namespace kiln::kernels
