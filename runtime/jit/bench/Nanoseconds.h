//===- Nanoseconds.h - Host time of a short call ------------------------------===//
#ifndef KILN_RUNTIME_JIT_BENCH_NANOSECONDS_H
#define KILN_RUNTIME_JIT_BENCH_NANOSECONDS_H

#include <algorithm>
#include <chrono>
#include <vector>

namespace kiln {

/// Median nanoseconds of one call, over so many batches of so many calls.
template <typename Call> double nanoseconds(unsigned batches, unsigned batch, const Call &call) {
  std::vector<double> samples;
  for (unsigned b = 0; b < batches; ++b) {
    const auto start = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < batch; ++i)
      call();
    samples.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
                      batch);
  }
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return samples[samples.size() / 2];
}

} // namespace kiln

#endif // KILN_RUNTIME_JIT_BENCH_NANOSECONDS_H
