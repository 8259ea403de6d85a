#include "tests/kernels/MatmulHarness.h"

#include "kernels/support/Rounding.h"
#include "tests/support/TestTier.h"

#include <cmath>

namespace kiln::test {

using namespace kernels;

void Matmul::SetUp() {
  on = openedDevice(deviceNames()[GetParam()]);
  ASSERT_TRUE(on);
}

bool Matmul::chosen(unsigned number, unsigned stride) const {
  return isFullTier() || number % stride == GetParam() * 3 % stride;
}

Operand Matmul::operand(DType type, const std::vector<std::int64_t> &shape, const MemoryOrder &order) {
  std::normal_distribution<double> normal;
  std::size_t count = 1;
  for (const std::int64_t e : shape)
    count *= static_cast<std::size_t>(e);
  std::vector<double> values(count);
  for (double &v : values)
    v = type == DType::I8 ? static_cast<double>(static_cast<std::int8_t>(random())) : normal(random);
  return upload(*on->device, type, shape, values, order);
}

bool multipliesByWarpgroups(const Opened &on) {
  const Result<const Target *> target = findTarget(on.jit->codeTarget());
  return target && (*target)->has(Capability::Wgmma);
}

std::string Matmul::Problem::text() const {
  return std::string(dtypeName(type)) + " to " + std::string(dtypeName(out)) + " " + std::to_string(batch) + " x " +
         std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
         (aColumns ? ", a by columns" : "") + (bColumns ? ", b by columns" : "") +
         (outColumns ? ", out by columns" : "") + ", pad " + std::to_string(pad) + ", " + std::to_string(splits) +
         (deterministic ? " splits" : " splits, atomic") +
         (tiling.given() ? ", tiles of " + std::to_string(tiling.blockM) + " x " + std::to_string(tiling.blockN)
                         : std::string()) +
         (programs ? ", " + std::to_string(programs) + " programs" : std::string());
}

void Matmul::check(const Problem &p) {
  SCOPED_TRACE(deviceNames()[GetParam()] + ": " + p.text());
  const auto shape = [&](std::int64_t rows, std::int64_t columns) {
    return p.batch ? std::vector<std::int64_t>{p.batch, rows, columns} : std::vector<std::int64_t>{rows, columns};
  };
  const auto order = [&](bool byColumns) {
    MemoryOrder out{{}, p.pad, p.around};
    if (byColumns)
      out.dims = p.batch ? std::vector<unsigned>{0, 2, 1} : std::vector<unsigned>{1, 0};
    return out;
  };
  const Operand a = operand(p.type, shape(p.m, p.k), order(p.aColumns)),
                b = operand(p.type, shape(p.k, p.n), order(p.bColumns)),
                out = output(p.out, shape(p.m, p.n), order(p.outColumns));
  MatmulArguments arguments{a.tensor,    b.tensor, out.tensor,     {}, p.scale, p.activation,
                            p.precision, p.splits, p.deterministic};
  arguments.tiling = p.tiling;
  arguments.programs = p.programs;
  Operand bias, other;
  if (p.bias) {
    bias = operand(p.out, {p.n});
    arguments.bias = bias.tensor;
  }
  if (p.hook.other) {
    other = operand(p.out, shape(p.m, p.n), order(p.outColumns));
    arguments.other = other.tensor;
  }
  MatmulOperation operation(*on->jit, p.hook.recorded);
  const auto run = [&] {
    const Status s = operation.run(arguments);
    EXPECT_TRUE(s.ok()) << s.toString();
    for (const Finding &f : on->device->takeFindings())
      ADD_FAILURE() << f.message;
    return download(out);
  };
  const std::vector<double> got = run();
  if (p.splits != 1 && p.deterministic)
    ASSERT_EQ(run(), got) << "another run, other bits";
  const auto at = [&](std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>((i * rows + j) * columns + k);
  };
  const bool eighth = p.type == DType::F8E4M3 || p.type == DType::F8E5M2;
  const double product = p.precision == language::Precision::Tf32     ? std::ldexp(1, -9)
                         : p.precision == language::Precision::Tf32x3 ? std::ldexp(1, -19)
                                                                      : 0;
  const double unit = std::ldexp(1, -23);
  for (std::int64_t g = 0; g < std::max<std::int64_t>(1, p.batch); ++g)
    for (std::int64_t i = 0; i < p.m; ++i)
      for (std::int64_t j = 0; j < p.n; ++j) {
        double want = 0, size = 0;
        for (std::int64_t k = 0; k < p.k; ++k) {
          const double v = a.values[at(g, i, k, p.m, p.k)] * b.values[at(g, k, j, p.k, p.n)];
          want += v;
          size += std::abs(v);
        }
        double bound = (static_cast<double>(p.k + p.splits + 2) * std::ldexp(1, eighth ? -13 : -22) + product) * size;
        if (p.out == DType::I32)
          bound = 0;
        want *= p.scale;
        bound *= std::abs(p.scale);
        if (p.bias)
          want += bias.values[static_cast<std::size_t>(j)];
        // The activations are steep at most 1.13; their own error is some units of fp32.
        const double x = want;
        if (p.activation == Activation::Relu)
          want = std::max(want, 0.0);
        else if (p.activation == Activation::Gelu)
          want = x * 0.5 * (1 + std::erf(x * std::sqrt(0.5)));
        else if (p.activation == Activation::Silu)
          want = x / (1 + std::exp(-x));
        if (p.activation != Activation::None)
          bound = 1.13 * bound + 8 * unit * std::abs(x);
        if (p.hook.wanted) {
          want = p.hook.wanted(want, i, j, p.hook.other ? other.values[at(g, i, j, p.m, p.n)] : 0);
          bound = p.hook.steep * (bound + 4 * unit * std::abs(x)) + 8 * unit * std::abs(want);
        }
        if (p.out != DType::I32) // rounded once; bias and scale are applied in fp32
          bound += halfUlp(std::abs(want) + bound, p.out) + 2 * unit * std::abs(x);
        ASSERT_NEAR(got[at(g, i, j, p.m, p.n)], want, bound) << g << ", " << i << ", " << j;
      }
}

} // namespace kiln::test
