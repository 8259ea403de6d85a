#include "kernels/matmul/MatmulOperation.h"

#include "compiler/target/Target.h"
#include "kernels/support/Grid.h"

#include <cmath>

namespace kiln::kernels {
namespace {

std::string shapeOf(const Tensor &t) {
  std::string out = "[";
  for (unsigned d = 0; d < t.rank; ++d)
    out += (d ? ", " : "") + std::to_string(t.shape[d]);
  return out + "]";
}

/// Extents and strides with a batch in front; a tensor without one serves every batch.
struct Matrices {
  std::int64_t batch, rows, columns, batchStride, rowStride, columnStride;
  explicit Matrices(const Tensor &t)
      : batch(t.rank == 3 ? t.shape[0] : 1), rows(t.shape[t.rank - 2]), columns(t.shape[t.rank - 1]),
        batchStride(t.rank == 3 ? t.strides[0] : 0), rowStride(t.strides[t.rank - 2]),
        columnStride(t.strides[t.rank - 1]) {}
  int unit() const { return columnStride == 1 ? 1 : rowStride == 1 ? 0 : -1; }
};

language::ElementType frontEndType(DType t) {
  switch (t) {
  case DType::F16:
    return language::ElementType::F16;
  case DType::Bf16:
    return language::ElementType::BF16;
  case DType::E4m3:
    return language::ElementType::F8E4M3;
  case DType::E5m2:
    return language::ElementType::F8E5M2;
  case DType::I8:
    return language::ElementType::I8;
  case DType::I32:
    return language::ElementType::I32;
  default:
    return language::ElementType::F32;
  }
}

bool isEighth(DType t) {
  return t == DType::E4m3 || t == DType::E5m2;
}

/// What decides which code a call needs.
std::vector<int> choicesOf(DType element, DType out, const MatmulConfig &c) {
  return {static_cast<int>(element),
          static_cast<int>(out),
          c.blockM,
          c.blockN,
          c.blockK,
          c.warps,
          c.groupM,
          c.aUnit,
          c.bUnit,
          c.outUnit,
          c.bias,
          c.scaled,
          static_cast<int>(c.activation),
          static_cast<int>(c.precision)};
}

} // namespace

Status MatmulOperation::check(const MatmulArguments &a) const {
  const Device &device = jit().device();
  KILN_TRY(checkTensor("a", a.a)
               .on(device)
               .dtype({DType::F16, DType::Bf16, DType::F32, DType::E4m3, DType::E5m2, DType::I8})
               .rankBetween(2, 3)
               .status());
  KILN_TRY(checkTensor("b", a.b).on(device).dtypeOf("a", a.a).rankBetween(2, 3).status());
  const Matrices x(a.a), y(a.b);
  KILN_TRY(checkTensor("b", a.b).extent(a.b.rank - 2, x.columns, "the columns of a").status());
  auto out = checkTensor("out", a.out).on(device);
  if (a.a.dtype == DType::I8)
    out.dtype({DType::I32});
  else if (isEighth(a.a.dtype))
    out.dtype({DType::F32, DType::F16, DType::Bf16});
  else
    out.dtype({a.a.dtype, DType::F32});
  out.rank(std::max(a.a.rank, a.b.rank));
  KILN_TRY(out.extent(a.out.rank - 2, x.rows, "the rows of a")
               .extent(a.out.rank - 1, y.columns, "the columns of b")
               .writable()
               .notOverlapping("a", a.a)
               .notOverlapping("b", a.b)
               .status());
  if (a.out.rank == 3)
    for (const auto &[name, t] : {std::pair("a", &a.a), std::pair("b", &a.b)})
      if (t->rank == 3 && t->shape[0] != a.out.shape[0])
        return Status::invalid(std::string("matmul: argument '") + name + "' has the shape " + shapeOf(*t) + ", out " +
                                   shapeOf(a.out) + ": the batches differ",
                               "give all the same first extent, or leave it out of an operand that serves every batch");
  if (a.bias)
    KILN_TRY(checkTensor("bias", *a.bias)
                 .on(device)
                 .dtypeOf("out", a.out)
                 .rank(1)
                 .extent(0, y.columns, "the columns of b")
                 .notOverlapping("out", a.out)
                 .status());
  if (!std::isfinite(a.scale))
    return Status::invalid("matmul: scale = " + std::to_string(a.scale), "give a finite number");
  if (a.a.dtype == DType::I8 && (a.bias || a.scale != 1 || a.activation != Activation::None))
    return Status::invalid("matmul: bias, scale or activation with operands of i8, whose sums are i32",
                           "leave them out, and apply them to the sums");
  if (a.a.dtype != DType::F32 && a.precision != language::Precision::Ieee)
    return Status::invalid("matmul: a precision for operands of " + std::string(dtypeName(a.a.dtype)) +
                               ": only f32 has one",
                           "leave precision out");
  return {};
}

Status MatmulOperation::launch(const MatmulArguments &a, Stream *stream, DeviceAddress) {
  const Matrices x(a.a), y(a.b), z(a.out);
  if (z.batch == 0 || z.rows == 0 || z.columns == 0)
    return {};
  KILN_ASSIGN(const Target *target, findTarget(jit().codeTarget()));
  const DType type = a.a.dtype;
  const bool matrixUnit = type == DType::F32
                              ? a.precision != language::Precision::Ieee && target->has(Capability::Bf16Mma)
                          : type == DType::Bf16 ? target->has(Capability::Bf16Mma)
                                                : true;
  MatmulConfig c;
  if (!matrixUnit) // each thread holds all of blockK
    c.blockM = c.blockN = 64, c.blockK = 8, c.warps = 4;
  else if (z.rows <= 64 || z.columns <= 64)
    c.blockM = c.blockN = 64, c.warps = 4;
  if (matrixUnit)
    c.blockK = type == DType::F32 ? 16 : dtypeBytes(type) == 1 ? 64 : 32;
  c.aUnit = x.unit(), c.bUnit = y.unit(), c.outUnit = z.unit();
  c.bias = a.bias.has_value();
  c.scaled = a.scale != 1;
  c.activation = a.activation;
  c.precision = a.precision;
  KILN_ASSIGN(JitKernel * kernel, variants.get(jit(), choicesOf(type, a.out.dtype, c), [&] {
    return matmul(frontEndType(type), frontEndType(a.out.dtype), c);
  }));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), z.batch * ceilDiv(z.rows, c.blockM) * ceilDiv(z.columns, c.blockN)));
  const Tensor &bias = a.bias ? *a.bias : a.out; // not read without
  return kernel->launch(grid, stream, a.a, x.batchStride, x.rowStride, x.columnStride, a.b, y.batchStride, y.rowStride,
                        y.columnStride, a.out, z.batchStride, z.rowStride, z.columnStride, bias,
                        a.bias ? a.bias->strides[0] : std::int64_t(1), a.scale, z.rows, z.columns, x.columns);
}

} // namespace kiln::kernels
