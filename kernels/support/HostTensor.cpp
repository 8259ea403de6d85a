#include "kernels/support/HostTensor.h"

#include "support/Parallel.h"

namespace kiln::kernels {

/// Fewer elements are not worth a thread.
static constexpr std::size_t pieceElements = std::size_t(1) << 18;

HostTensor toHost(const Array &array) {
  HostTensor out{array.shape, std::vector<double>(array.elements()), {}, array.type};
  const unsigned bytes = dtypeBytes(array.type);
  inPieces(out.values.size(), pieceElements, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      out.values[i] = loadElement(array.data.data() + i * bytes, array.type);
  });
  return out;
}

HostTensors toHost(const Arrays &arrays) {
  HostTensors out;
  std::vector<std::pair<const Array *, HostTensor *>> all;
  for (const auto &[name, array] : arrays)
    all.emplace_back(&array, &out[name]); // nodes of a map stay where they are
  // Besides the pieces of each: the system gives memory to one thread slowly.
  inParallel(all.size(), [&](std::size_t i) { *all[i].second = toHost(*all[i].first); });
  return out;
}

} // namespace kiln::kernels
