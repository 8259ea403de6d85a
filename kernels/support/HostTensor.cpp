#include "kernels/support/HostTensor.h"

#include "support/Parallel.h"

namespace kiln::kernels {

HostTensor toHost(const Array &array) {
  HostTensor out{array.shape, std::vector<double>(array.elements()), {}, array.type};
  const unsigned bytes = dtypeBytes(array.type);
  for (std::uint64_t i = 0; i < out.values.size(); ++i)
    out.values[i] = loadElement(array.data.data() + i * bytes, array.type);
  return out;
}

std::vector<double> elementsOf(const Array &array, std::span<const std::uint64_t> numbers) {
  std::vector<double> out;
  out.reserve(numbers.size());
  for (const std::uint64_t i : numbers)
    out.push_back(loadElement(array.data.data() + i * dtypeBytes(array.type), array.type));
  return out;
}

HostTensors toHost(const Arrays &arrays) {
  HostTensors out;
  std::vector<std::pair<const Array *, HostTensor *>> all;
  for (const auto &[name, array] : arrays)
    all.emplace_back(&array, &out[name]); // nodes of a map stay where they are
  inParallel(all.size(), [&](std::size_t i) { *all[i].second = toHost(*all[i].first); });
  return out;
}

} // namespace kiln::kernels
