#include "kernels/matmul/MatmulOperation.h"

#include "compiler/target/MatrixUnits.h"
#include "kernels/support/CallWords.h"
#include "kernels/support/Grid.h"

#include <algorithm>
#include <cmath>

namespace kiln::kernels {
namespace {

constexpr std::int64_t maxSplits = 256;

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
  /// Rows (or columns, whatever is adjacent) start at multiples of 16 bytes.
  bool aligned(const Tensor &t) const {
    const std::int64_t bytes = dtypeBytes(t.dtype);
    const std::int64_t across = unit() == 1 ? rowStride : columnStride;
    return unit() >= 0 && t.address % 16 == 0 && across * bytes % 16 == 0 && batchStride * bytes % 16 == 0;
  }
};

/// The matrices as the kernel takes them: `batch` of them in front, one for all if they have no batch.
Tensor inBatches(const Tensor &t, std::int64_t batch) {
  return t.rank == 2 ? withDim(t, 0, batch, 0) : t;
}

/// Sums in the workspace, one after the other.
Tensor sumsIn(DeviceAddress workspace, DType dtype, std::initializer_list<std::int64_t> shape) {
  Tensor t;
  t.address = workspace;
  t.dtype = dtype;
  t.rank = static_cast<unsigned>(shape.size());
  std::copy(shape.begin(), shape.end(), t.shape.begin());
  std::int64_t stride = 1;
  for (unsigned d = t.rank; d-- > 0; stride *= t.shape[d])
    t.strides[d] = stride;
  return t;
}

} // namespace

std::span<const DType> matmulOutTypes(DType operands) {
  static constexpr DType i32[] = {DType::I32}, any[] = {DType::F32, DType::F16, DType::BF16},
                         f16[] = {DType::F16, DType::F32}, bf16[] = {DType::BF16, DType::F32}, f32[] = {DType::F32};
  switch (operands) {
  case DType::I8:
    return i32;
  case DType::F16:
    return f16;
  case DType::BF16:
    return bf16;
  case DType::F32:
    return f32;
  case DType::F8E4M3:
  case DType::F8E5M2:
    return any;
  default: // refused where operands are checked
    return f32;
  }
}

Status checkMatmulOutType(DType operands, DType out) {
  const std::span<const DType> types = matmulOutTypes(operands);
  if (std::find(types.begin(), types.end(), out) != types.end())
    return {};
  std::vector<std::string> names;
  for (const DType t : types)
    names.emplace_back(dtypeName(t));
  return Status::invalid("matmul: argument 'out' has dtype " + std::string(dtypeName(out)) + ", of operands of " +
                             std::string(dtypeName(operands)) + " it is " + join(names, " or "),
                         "ask for " + join(names, " or ") + ", or convert the operands");
}

Status MatmulOperation::check(const MatmulArguments &a) const {
  const Device &device = jit().device();
  KILN_TRY(checkTensor("a", a.a)
               .on(device)
               .dtype({DType::F16, DType::BF16, DType::F32, DType::F8E4M3, DType::F8E5M2, DType::I8})
               .rankBetween(2, 3)
               .status());
  KILN_TRY(checkTensor("b", a.b).on(device).dtypeOf("a", a.a).rankBetween(2, 3).status());
  const Matrices x(a.a), y(a.b);
  KILN_TRY(checkTensor("b", a.b).extent(a.b.rank - 2, x.columns, "the columns of a").status());
  auto out = checkTensor("out", a.out).on(device);
  KILN_TRY(out.status());
  KILN_TRY(checkMatmulOutType(a.a.dtype, a.out.dtype));
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
    return Status::invalid(format("matmul: scale = %g", static_cast<double>(a.scale)), "give a finite number");
  if (a.other) {
    if (!epilogue)
      return Status::invalid("matmul: argument 'other' is given, and nothing reads it",
                             "leave it out, or make the operation with an epilogue that calls other()");
    auto other = checkTensor("other", *a.other).on(device).dtypeOf("out", a.out).rank(a.out.rank);
    for (unsigned d = 0; other.status().ok() && d < a.out.rank; ++d)
      other.extent(d, a.out.shape[d], "as of out");
    KILN_TRY(other.notOverlapping("out", a.out).status());
  }
  if (a.splits < 0 || a.splits > maxSplits)
    return Status::invalid("matmul: splits = " + std::to_string(a.splits) + ": from 0 to " + std::to_string(maxSplits),
                           "give 0 for as many as fill the device, 1 for none");
  if (a.programs < 0 || (a.programs && a.splits != 1))
    return Status::invalid("matmul: programs = " + std::to_string(a.programs) +
                               (a.programs < 0 ? ": 0 or more"
                                               : " with splits = " + std::to_string(a.splits) +
                                                     ": the programs of a split product take one tile each"),
                           "give 0 for as many as suit the device");
  KILN_TRY(checkTiling(name(), a.tiling));
  if (a.a.dtype == DType::I8 && (a.bias || a.scale != 1 || a.activation != Activation::None || epilogue))
    return Status::invalid("matmul: bias, scale, activation or epilogue with operands of i8, whose sums are i32",
                           "leave them out, and apply them to the sums");
  if (a.a.dtype != DType::F32 && a.precision != language::Precision::Ieee)
    return Status::invalid("matmul: a precision for operands of " + std::string(dtypeName(a.a.dtype)) +
                               ": only f32 has one",
                           "leave precision out");
  if (a.tiling.given()) {
    KILN_ASSIGN(const MatmulConfig c, configOf(a));
    KILN_TRY(checkTiles(a, c));
  }
  return {};
}

namespace {

/// Tiles of products by warpgroups, large ones first.
struct WarpgroupTile {
  int blockM, blockN, warps, stages;
  static constexpr int rowBytes = 128; ///< of blockK elements: the widest swizzle

  static int blockK(DType type) { return rowBytes / static_cast<int>(dtypeBytes(type)); }
  std::int64_t bytes() const { return std::int64_t(stages) * (blockM + blockN) * rowBytes; }
};
constexpr WarpgroupTile warpgroupTiles[] = {{128, 256, 8, 4}, {128, 128, 8, 6}, {64, 128, 4, 6}, {64, 64, 4, 6}};

/// The largest of which there are enough for the multiprocessors (a quarter of them idle costs less than smaller tiles
/// do: 2048^3 and 1024^3 on an H100), or the smallest; among those that agree with what is given.  Null: none does.
const WarpgroupTile *warpgroupTile(const Matrices &out, DType type, const Tiling &given, std::int64_t shared,
                                   std::int64_t multiprocessors) {
  const WarpgroupTile *last = nullptr;
  for (const WarpgroupTile &t : warpgroupTiles) {
    const auto agrees = [](int is, int wanted) { return !wanted || is == wanted; };
    if (!agrees(t.blockM, given.blockM) || !agrees(t.blockN, given.blockN) || !agrees(t.warps, given.warps) ||
        !agrees(t.stages, given.stages) || !agrees(t.blockK(type), given.blockK) || t.bytes() > shared)
      continue;
    last = &t;
    const bool isFilled = out.rows > t.blockM / 2 && out.columns > t.blockN / 2;
    if (isFilled && 4 * out.batch * ceilDiv(out.rows, t.blockM) * ceilDiv(out.columns, t.blockN) >= 3 * multiprocessors)
      break;
  }
  return last;
}

} // namespace

Result<MatmulConfig> MatmulOperation::configOf(const MatmulArguments &a) const {
  const Matrices x(a.a), y(a.b), z(a.out);
  const DType type = a.a.dtype;
  MatmulConfig c;
  c.aUnit = x.unit(), c.bUnit = y.unit(), c.outUnit = z.unit();
  c.otherUnit = a.other ? Matrices(*a.other).unit() : 1;
  c.bias = a.bias.has_value();
  c.other = a.other.has_value();
  c.scaled = a.scale != 1;
  c.activation = a.activation;
  c.precision = a.precision;
  c.epilogue = epilogue;
  if (a.tiling.given())
    return withTiling(a, a.tiling, c);
  const Tiling kept = tuned.get(
      jit(), {.operation = name(), .types = {kernelElement(type), kernelElement(a.out.dtype)}, .depth = true}, c,
      {{"rows", z.rows},
       {"columns", z.columns},
       {"depth", x.columns},
       {"batch", z.batch},
       {"aligned", x.aligned(a.a) && y.aligned(a.b)},
       {"splits", a.splits},
       {"programs", a.programs},
       {"deterministic", a.deterministic}},
      [&](const Tiling &t) {
        const Result<MatmulConfig> with = withTiling(a, t, c);
        return with && checkTiles(a, *with).ok();
      });
  return withTiling(a, kept, c);
}

Status MatmulOperation::checkTiles(const MatmulArguments &a, const MatmulConfig &c) const {
  return checkStages(jit(), name(), c.stages,
                     static_cast<std::int64_t>(bytesOfStage(a.a.dtype, {c.blockM, c.blockN, c.blockK})),
                     "block_m = " + std::to_string(c.blockM) + ", block_n = " + std::to_string(c.blockN) +
                         ", block_k = " + std::to_string(c.blockK));
}

Result<MatmulConfig> MatmulOperation::withTiling(const MatmulArguments &a, const Tiling &t, MatmulConfig c) const {
  const Matrices x(a.a), y(a.b), z(a.out);
  KILN_ASSIGN(const Target *target, findTarget(jit().codeTarget()));
  const DType type = a.a.dtype;
  const std::optional<MatrixElements> elements = matrixElements(type, a.precision != language::Precision::Ieee);
  // 8-bit floats that no unit takes are multiplied as f16.
  const bool matrixUnit = elements && (*elements == MatrixElements::F8 || multipliesMatrices(*target, *elements));
  if (!matrixUnit) // each thread holds all of blockK
    c.blockM = c.blockN = 64, c.blockK = 8, c.warps = 4;
  else if (z.rows <= 64 || z.columns <= 64)
    c.blockM = c.blockN = 64, c.warps = 4;
  if (matrixUnit)
    c.blockK = type == DType::F32 ? 16 : dtypeBytes(type) == 1 ? 64 : 32;
  if (matrixUnit && dtypeBytes(type) == 1 && c.blockM == 128)
    c.warps = 8; // operands that lie across are put together byte by byte: 64 x 64 a warp would spill
  // Warpgroups read 8-bit floats with K contiguous only; threads would have to turn others.
  const bool eighths =
      elements == MatrixElements::F8 && target->has(Capability::Wgmma) && x.unit() == 1 && y.unit() == 0;
  if (matrixUnit && (dtypeBytes(type) == 2 || eighths) && x.aligned(a.a) && y.aligned(a.b)) {
    KILN_ASSIGN(const std::int64_t shared, sharedBytesOf(jit()));
    const std::int64_t multiprocessors = jit().device().info().multiprocessors;
    const WarpgroupTile *tile =
        target->has(Capability::Wgmma) ? warpgroupTile(z, type, t, shared, multiprocessors) : nullptr;
    if (tile) {
      c.blockM = tile->blockM, c.blockN = tile->blockN, c.blockK = tile->blockK(type);
      c.warps = tile->warps, c.stages = tile->stages;
      // A block of these has its multiprocessor for itself: the next tile's copies go on while it stores this one. That
      // gains a fifth at k = 256 and a twentieth at 1024 (an H100), and nothing where tiles take long.
      constexpr std::int64_t brief = 1024;
      c.persistent = tile->blockN == 256 && x.columns <= brief &&
                     z.batch * ceilDiv(z.rows, c.blockM) * ceilDiv(z.columns, c.blockN) > multiprocessors;
    } else if (c.blockM == 128 && !eighths) {
      // Deeper steps wait less often, and tiles twice as high read less of b; where there are enough of them.
      const auto fits = [&](int m, int n, int k) { return std::int64_t(2) * c.stages * (m + n) * k <= shared; };
      if (fits(128, 128, 64))
        c.blockK = 64;
      if (fits(256, 128, 64) && z.rows > 128 &&
          z.batch * ceilDiv(z.rows, 256) * ceilDiv(z.columns, 128) >= multiprocessors)
        c.blockM = 256, c.warps = 8;
    }
  }
  for (const auto &[field, given] :
       {std::pair(&c.blockM, t.blockM), std::pair(&c.blockN, t.blockN), std::pair(&c.blockK, t.blockK),
        std::pair(&c.warps, t.warps), std::pair(&c.stages, t.stages)})
    if (given) {
      *field = given;
      c.persistent &= field == &c.stages;
    }
  c.persistent |= a.programs != 0;
  return c;
}

std::int64_t MatmulOperation::splitsOf(const MatmulArguments &a, const MatmulConfig &c) const {
  const Matrices x(a.a), z(a.out);
  if (a.splits)
    return a.splits;
  const std::int64_t programs = z.batch * ceilDiv(z.rows, c.blockM) * ceilDiv(z.columns, c.blockN),
                     steps = ceilDiv(x.columns, c.blockK), processors = jit().device().info().multiprocessors;
  // A part of fewer steps is not worth its tile of sums.
  return programs ? std::max<std::int64_t>(1, std::min({processors / programs, steps / 8, maxSplits})) : 1;
}

Status MatmulOperation::plan(const MatmulArguments &a, Plan &plan) const {
  const Matrices x(a.a), y(a.b), z(a.out);
  if (z.batch == 0 || z.rows == 0 || z.columns == 0)
    return {};
  KILN_ASSIGN(const MatmulConfig whole, configOf(a));
  const std::int64_t splits = splitsOf(a, whole), size = z.rows * z.columns;
  MatmulConfig c = whole;
  DType outType = a.out.dtype;
  if (splits > 1) {
    c.sums = a.deterministic ? Sums::Part : Sums::Atomic;
    c.outUnit = c.otherUnit = 1;
    c.bias = c.other = c.scaled = false;
    c.activation = Activation::None;
    c.epilogue = {};
    c.persistent = false;
    outType = a.a.dtype == DType::I8 ? DType::I32 : DType::F32;
  }
  const std::int64_t parts = a.deterministic ? splits : 1;
  KILN_ASSIGN(
      const auto workspace,
      plan.workspace({{"sums", splits == 1 ? 0 : static_cast<std::size_t>(parts * z.batch * size) * sizeof(float)}}));
  const auto element = kernelElement(a.a.dtype), out = kernelElement(outType);
  if (c.sums == Sums::Atomic) {
    KILN_ASSIGN(JitKernel * zero, zeros.get(jit(), {out}, {}, [&] { return matmulZero(out); }));
    KILN_ASSIGN(const Dim3 grid, gridOf(name(), ceilDiv(z.batch * size, 1024)));
    KILN_TRY(plan.launch(*zero, grid, named<"out">(sumsIn(workspace[0], outType, {z.batch * size}))));
  }
  KILN_ASSIGN(JitKernel * kernel, variants.get(jit(), {element, out}, c, [&] { return matmul(element, out, c); }));
  KILN_ASSIGN(Dim3 grid, gridOf(name(), z.batch * splits * ceilDiv(z.rows, c.blockM) * ceilDiv(z.columns, c.blockN)));
  if (c.persistent)
    grid.x = static_cast<std::uint32_t>(
        std::min<std::int64_t>(grid.x, a.programs ? a.programs : jit().device().info().multiprocessors));
  const bool direct = splits == 1;
  KILN_TRY(plan.launch(*kernel, grid, named<"a">(inBatches(a.a, z.batch)), named<"b">(inBatches(a.b, z.batch)),
                       named<"out">(direct ? inBatches(a.out, z.batch)
                                           : sumsIn(workspace[0], outType, {z.batch * parts, z.rows, z.columns})),
                       named<"bias">(c.bias ? *a.bias : Tensor()),
                       named<"other">(c.other ? inBatches(*a.other, z.batch) : Tensor()), named<"scale">(a.scale),
                       named<"splits">(splits)));
  return direct ? Status() : finish(a, whole, parts, workspace[0], plan);
}

Status MatmulOperation::finish(const MatmulArguments &a, const MatmulConfig &whole, std::int64_t parts,
                               DeviceAddress workspace, Plan &plan) const {
  const Matrices z(a.out);
  const DType sums = a.a.dtype == DType::I8 ? DType::I32 : DType::F32;
  MatmulConfig c = whole;
  c.blockM = 32, c.blockN = 64, c.warps = 4;
  const auto part = kernelElement(sums), out = kernelElement(a.out.dtype);
  KILN_ASSIGN(JitKernel * kernel, finishers.get(jit(), {part, out}, c, [&] { return matmulFinish(part, out, c); }));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), z.batch * ceilDiv(z.rows, c.blockM) * ceilDiv(z.columns, c.blockN)));
  return plan.launch(*kernel, grid, named<"parts">(sumsIn(workspace, sums, {z.batch, parts, z.rows, z.columns})),
                     named<"out">(inBatches(a.out, z.batch)), named<"bias">(c.bias ? *a.bias : Tensor()),
                     named<"other">(c.other ? inBatches(*a.other, z.batch) : Tensor()), named<"scale">(a.scale));
}

std::optional<std::string> MatmulOperation::callText(const MatmulArguments &a) const {
  if (epilogue || a.other || !a.deterministic)
    return std::nullopt;
  OptionValues options = optionValuesOf(a);
  if (a.out.dtype != matmulOutTypes(a.a.dtype).front())
    options["out_dtype"] = std::string(dtypeName(a.out.dtype));
  const CallTensor tensors[] = {{"a", a.a}, {"b", a.b}, {"bias", a.bias}};
  return callWords(name(), tensors, std::move(options));
}

} // namespace kiln::kernels
