// softmax [DEVICE]: a kernel of twelve lines, its launch, and a comparison with float64.
#include "kiln/Jit.h"
#include "kiln/Language.h"
#include "kiln/NamedArguments.h"
#include "kiln/OwnedTensor.h"

#include <cmath>
#include <cstdio>
#include <random>

using namespace kiln;
using Numbers = std::vector<float>;

/// Softmax of rows of up to 1024 numbers, one row a program.  Beyond a row's end views read zero and write nothing.
static language::Kernel softmaxRows() {
  using namespace language;
  return kernel("softmax_rows", {.warps = 4}, [](TensorArg<f32, 2, "x"> x, TensorArg<f32, 2, "out"> out) {
    auto row = cast<i64>(programId());
    auto inside = range(0, 1024) < cast<i32>(x.extent(1));
    auto value = select(inside, loadView(x.at(row, all).tiles({1024}), {0}), -INFINITY);
    auto power = exp(value - max(value));
    storeView(out.at(row, all).tiles({1024}), {0}, power / sum(power));
  });
}

static Result<Numbers> softmax(Jit &jit, std::uint32_t rows, const OwnedTensor &x, const OwnedTensor &out) {
  KILN_ASSIGN(const KernelSource source, sourceOf(softmaxRows()));
  KILN_ASSIGN(JitKernel * kernel, jit.kernel(source)); // compiled at the first launch, then kept in a cache
  KILN_TRY(kernel->launch({rows}, nullptr, named<"x">(x), named<"out">(out)));
  return out.toHost<float>();
}

static Result<double> largestError(const char *deviceName, std::int64_t rows, std::int64_t columns) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  Numbers in(static_cast<std::size_t>(rows * columns));
  for (float &x : in)
    x = normal(random);
  KILN_ASSIGN(const std::unique_ptr<Device> device, openDevice(deviceName));
  KILN_ASSIGN(const std::unique_ptr<Jit> jit, Jit::create(*device));
  KILN_ASSIGN(const OwnedTensor x, device->tensor({rows, columns}, in));
  KILN_ASSIGN(const OwnedTensor y, device->empty({rows, columns}, DType::F32));
  KILN_ASSIGN(const Numbers out, softmax(*jit, static_cast<std::uint32_t>(rows), x, y));
  double largest = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    double total = 0;
    for (std::int64_t c = 0; c < columns; ++c)
      total += std::exp(double(in[r * columns + c]));
    for (std::int64_t c = 0; c < columns; ++c) {
      const double wanted = std::exp(double(in[r * columns + c])) / total;
      const double error = std::abs(out[r * columns + c] - wanted) / wanted;
      largest = error <= largest ? largest : error; // NaN counts
    }
  }
  return largest;
}

int main(int argc, char **argv) {
  for (const std::int64_t columns : {1, 777, 1024}) {
    const Result<double> error = largestError(argc > 1 ? argv[1] : "auto", 37, columns);
    if (!error) {
      std::fprintf(stderr, "softmax: %s\n", error.status().toString().c_str());
      return error.status().exitCode();
    }
    std::printf("37 rows of %d: largest relative error %.1e\n", static_cast<int>(columns), *error);
    if (!(*error < 1e-5))
      return 1;
  }
  return 0;
}
