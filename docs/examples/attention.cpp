// attention [DEVICE]: causal attention of numbers that a program has, compared with float64.
#include "kernels/attention/AttentionOperation.h"
#include "kiln/OwnedTensor.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <random>

using namespace kiln;

using Numbers = std::vector<float>;

/// q, k, v and the result are [batch, rows, heads, dim] in C order; rounded to bf16 on the device.
static Result<Numbers> attention(const char *deviceName, Extents shape, const Numbers &queries, const Numbers &keys,
                                 const Numbers &values) {
  KILN_ASSIGN(const std::unique_ptr<Device> device, openDevice(deviceName));
  KILN_ASSIGN(const std::unique_ptr<Jit> jit, Jit::create(*device)); // compiles at the first call, keeps a cache
  KILN_ASSIGN(const OwnedTensor q, device->tensor(shape, DType::BF16, queries));
  KILN_ASSIGN(const OwnedTensor k, device->tensor(shape, DType::BF16, keys));
  KILN_ASSIGN(const OwnedTensor v, device->tensor(shape, DType::BF16, values));
  KILN_ASSIGN(const OwnedTensor o, device->empty(shape, DType::BF16));
  KILN_TRY(kernels::AttentionOperation(*jit).run({.q = q, .k = k, .v = v, .o = o, .causal = true}));
  return o.toHost<float>();
}

int main(int argc, char **argv) {
  constexpr std::int64_t batch = 2, rows = 50, heads = 3, dim = 64;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::array<Numbers, 3> in;
  for (Numbers &numbers : in) {
    numbers.resize(batch * rows * heads * dim);
    for (float &x : numbers)
      x = bfloat16(normal(random));
  }
  const auto &[q, k, v] = in;
  const Result<Numbers> o = attention(argc > 1 ? argv[1] : "auto", {batch, rows, heads, dim}, q, k, v);
  if (!o) {
    std::fprintf(stderr, "attention: %s\n", o.status().toString().c_str());
    return o.status().exitCode();
  }
  double largest = 0;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < rows; ++i) {
        const auto at = [&](std::int64_t row) { return ((b * rows + row) * heads + h) * dim; };
        std::vector<double> sums(dim);
        double total = 0;
        for (std::int64_t j = 0; j <= i; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < dim; ++d)
            score += double(q[at(i) + d]) * k[at(j) + d];
          const double weight = std::exp(score / std::sqrt(double(dim)));
          total += weight;
          for (std::int64_t d = 0; d < dim; ++d)
            sums[d] += weight * v[at(j) + d];
        }
        for (std::int64_t d = 0; d < dim; ++d) {
          const double error = std::abs((*o)[at(i) + d] - sums[d] / total);
          largest = error <= largest ? largest : error; // NaN counts
        }
      }
  std::printf("largest error %.1e\n", largest);
  return largest < 0.02 ? 0 : 1; // a bf16 near 4 is off by up to 0.008, and so are the weights before the sum
}
