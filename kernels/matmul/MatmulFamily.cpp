// `matmul` for commands and tests: parameters, reference, tolerance.
#include "kernels/matmul/MatmulOperation.h"
#include "kernels/support/Rounding.h"
#include "kernels/support/Sampling.h"

#include <cmath>

namespace kiln::kernels {
namespace {

constexpr DType outTypes[] = {DType::F32, DType::F16, DType::BF16}; // the choices of --out-dtype

/// Extents of a call: a has batchA x rows x depth, b batchB x depth x columns; a batch of 0 is no such dimension.
struct Extents {
  std::uint64_t batchA = 0, batchB = 0, rows = 0, columns = 0, depth = 0;
  std::uint64_t batch() const { return std::max({batchA, batchB, std::uint64_t(1)}); }
};

Result<Extents> extentsOf(const Shape &a, const Shape &b, const Numbers &numbers) {
  for (const auto &[name, shape] : {std::pair("a", &a), std::pair("b", &b)})
    if (shape->size() < 2 || shape->size() > 3)
      return Status::invalid(std::string("matmul: argument '") + name + "' has the shape " + shapeText(*shape) +
                                 ": a matrix, or a batch of them",
                             "give it two or three dimensions");
  const auto extent = [](const Shape &shape, bool transposed, unsigned which) {
    return shape[shape.size() - 2 + (which ^ static_cast<unsigned>(transposed))];
  };
  const bool aT = numberOr(numbers, "transpose_a", 0) != 0, bT = numberOr(numbers, "transpose_b", 0) != 0;
  const Extents e{a.size() == 3 ? a[0] : 0, b.size() == 3 ? b[0] : 0, extent(a, aT, 0), extent(b, bT, 1),
                  extent(a, aT, 1)};
  if (extent(b, bT, 0) != e.depth)
    return Status::invalid("matmul: argument 'b' has the shape " + shapeText(b) + (bT ? ", transposed" : "") + ", a " +
                               shapeText(a) + (aT ? ", transposed" : "") +
                               ": b must have as many rows as a has columns, " + std::to_string(e.depth),
                           "give matrices M x K and K x N; --transpose-a, --transpose-b turn them");
  if (e.batchA && e.batchB && e.batchA != e.batchB)
    return Status::invalid("matmul: argument 'b' has a batch of " + std::to_string(e.batchB) + ", a one of " +
                               std::to_string(e.batchA),
                           "give both the same, or leave it out of a matrix that serves every batch");
  return e;
}

/// The elements of a batch's matrix in C order, turned around if that is asked for.
std::vector<double> matrixOf(const HostTensor &t, std::uint64_t batch, bool turned) {
  const std::uint64_t rows = t.shape[t.shape.size() - 2], columns = t.shape.back(), n = rows * columns;
  const double *const from = t.values.data() + (t.shape.size() == 3 ? batch * n : 0);
  std::vector<double> out(from, from + n);
  for (std::uint64_t i = 0; turned && i < rows; ++i)
    for (std::uint64_t j = 0; j < columns; ++j)
      out[j * rows + i] = from[i * columns + j];
  return out;
}

double activated(double x, Activation activation) {
  switch (activation) {
  case Activation::None:
    return x;
  case Activation::Relu:
    return std::isnan(x) ? x : std::max(x, 0.0);
  case Activation::Gelu:
    return x * 0.5 * (1 + std::erf(x * std::sqrt(0.5)));
  case Activation::Silu:
    return x / (1 + std::exp(-x));
  }
  return x;
}

class MatmulFamily : public Family {
public:
  std::string_view name() const override { return "matmul"; }
  std::string_view summary() const override { return "out = activation(scale * a x b + bias)"; }
  std::vector<DType> dtypes() const override {
    return {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2, DType::I8};
  }
  std::vector<TensorParameter> tensors() const override {
    return {{"a", false, false, "M x K, or B x M x K; f32, f16, bf16, e4m3, e5m2, i8"},
            {"b", false, false, "K x N, or B x K x N; of a's type"},
            {"bias", false, true, "N, of out's type"},
            {"out", true, false, "M x N, or B x M x N; of a's type, of 8-bit floats f32, of i8 i32"}};
  }
  std::vector<NumberParameter> numbers() const override {
    std::vector<NumberParameter> out = {
        {"scale", 1, "of the product"},
        {"activation", {}, "after scale and bias", {"none", "relu", "gelu", "silu"}},
        {"precision", {}, "of f32", {"ieee", "tf32", "tf32x3"}},
        {"out_dtype", {}, "another type of out", {"f32", "f16", "bf16"}},
        {"splits", 1, "programs that share K; 0: as many as keep the GPU busy"},
        {"atomic", {}, "they add in any order, so that runs may differ in their last bits", {}, true},
        {"transpose_a", {}, "a is K x M", {}, true},
        {"transpose_b", {}, "b is N x K", {}, true}};
    addTilingParameters(out, true);
    return out;
  }
  /// bias has the type of out.
  std::optional<DType> inputType(const TensorParameter &parameter, std::optional<DType> called,
                                 const Numbers &numbers) const override {
    if (parameter.name != "bias" || (!called && !numbers.count("out_dtype")))
      return called;
    return outType(called.value_or(DType::F32), numbers);
  }

  Result<TensorTypes> outputs(const TensorTypes &inputs, const Numbers &numbers) const override {
    const TensorType &a = inputs.at("a");
    KILN_ASSIGN(const Extents e, extentsOf(a.shape, inputs.at("b").shape, numbers));
    TensorType out;
    out.dtype = outType(a.dtype, numbers);
    if (takes(a.dtype))
      KILN_TRY(checkMatmulOutType(a.dtype, out.dtype));
    if (e.batchA || e.batchB)
      out.shape.push_back(std::max(e.batchA, e.batchB));
    out.shape.insert(out.shape.end(), {e.rows, e.columns});
    return TensorTypes{{"out", out}};
  }

  Planner bind(Jit &jit) const override {
    return [operation = std::make_shared<MatmulOperation>(jit)](const Call &call, Plan &plan) -> Status {
      KILN_ASSIGN(const MatmulArguments arguments, argumentsOf(call));
      return operation->describe(arguments, plan);
    };
  }

  Result<HostTensors> reference(const HostTensors &inputs, const Numbers &numbers) const override {
    KILN_ASSIGN(HostTensor out, sums(inputs, numbers, false));
    const double scale = static_cast<float>(numberOr(numbers, "scale", 1));
    for (std::size_t i = 0; i < out.values.size(); ++i)
      out.values[i] = activated(scale * out.values[i] + biasAt(inputs, out, i), activationOf(numbers));
    return HostTensors{{"out", std::move(out)}};
  }

  /// Of a sum of K products: (K + 1) 2^-22 sum |a b|, of 8-bit floats 2^-13 (their matrix instructions keep 14 bits),
  /// and what tf32 (2^-9) or 3xtf32 (2^-19) leave out of the products.  The activations are steep at most 1.13; scale,
  /// bias and activation are fp32.  Then half an ulp of out's type.  i32: exact.
  std::vector<double> allowed(std::string_view, DType dtype, const HostTensors &inputs, const HostTensors &reference,
                              const Numbers &numbers) const override {
    const HostTensor &out = reference.at("out");
    std::vector<double> limits(out.values.size(), 0.0);
    if (dtype == DType::I32)
      return limits;
    const auto sizes = sums(inputs, numbers, true);
    const auto e = extentsOf(inputs.at("a").shape, inputs.at("b").shape, numbers);
    if (!sizes.ok() || !e.ok())
      return {};
    const language::Precision precision = precisionOf(numbers);
    const double product = precision == language::Precision::Tf32     ? 0x1p-9
                           : precision == language::Precision::Tf32x3 ? 0x1p-19
                                                                      : 0;
    const DType type = inputs.at("a").dtype;
    const bool eighth = type == DType::F8E4M3 || type == DType::F8E5M2;
    const double sum = static_cast<double>(e->depth + 1) * (eighth ? 0x1p-13 : 0x1p-22);
    const double scale = std::abs(numberOr(numbers, "scale", 1));
    const Activation activation = activationOf(numbers);
    for (std::size_t i = 0; i < limits.size(); ++i) {
      const double size = scale * sizes->values[i], before = size + std::abs(biasAt(inputs, out, i));
      double limit = (sum + product) * size + 4 * 0x1p-24 * before;
      if (activation != Activation::None)
        limit = 1.13 * limit + 8 * 0x1p-23 * before;
      limits[i] = limit + halfUlp(std::abs(out.values[i]) + limit, dtype);
    }
    return limits;
  }

  /// 2 M N K of each matrix.
  double flops(const Call &call) const override {
    const Tensor &a = call.tensors.at("a"), &out = call.tensors.at("out");
    const bool turned = call.numbers.count("transpose_a");
    return 2 * static_cast<double>(out.elements()) * static_cast<double>(a.shape[a.rank - (turned ? 2 : 1)]);
  }

  std::vector<Sample> samples(DType dtype, SampleUse use, bool gpu) const override {
    const auto call = [&](std::uint64_t m, std::uint64_t n, std::uint64_t k) {
      return Sample{{{"a", {dtype, {m, k}}}, {"b", {dtype, {k, n}}}}, {}};
    };
    if (use == SampleUse::Demo)
      return {call(300, 200, 160)};
    if (use == SampleUse::Bench)
      return {gpu ? call(8192, 8192, 8192) : call(256, 256, 256)};
    Sample batch{{{"a", {dtype, {3, 33, 70}}}, {"b", {dtype, {40, 70}}}}, {{"transpose_b", 1}}};
    Sample biased = call(65, 150, 40);
    if (dtypeBytes(dtype) > 1) {
      biased.inputs["bias"] = {dtype, {150}};
      biased.numbers = {{"scale", 0.5}, {"activation", 2}};
    }
    Sample split = call(3, 31, 1000);
    split.numbers = {{"splits", 3}};
    return {call(1, 1, 1), split, batch, biased};
  }

  std::string sizeText(const TensorTypes &inputs, const Numbers &numbers) const override {
    const auto e = extentsOf(inputs.at("a").shape, inputs.at("b").shape, numbers);
    if (!e.ok())
      return {};
    return (e->batchA || e->batchB ? std::to_string(e->batch()) + " x " : std::string()) + std::to_string(e->rows) +
           "x" + std::to_string(e->columns) + "x" + std::to_string(e->depth);
  }

  std::vector<FieldInfo> settings() const override { return fieldsOf<MatmulConfig>(); }
  language::Kernel record(DType element, const Settings &settings) const override {
    MatmulConfig c;
    if (Status s = applySettings(settings, c); !s.ok())
      return language::Kernel::failed(std::move(s));
    const bool eighth = element == DType::F8E4M3 || element == DType::F8E5M2;
    return matmul(element, element == DType::I8 ? DType::I32 : eighth ? DType::F32 : element, c);
  }

private:
  /// As the caller chose, or what matmulOutTypes has first.
  static DType outType(DType operands, const Numbers &numbers) {
    const auto chosen = numbers.find("out_dtype");
    return chosen == numbers.end() ? matmulOutTypes(operands).front() : outTypes[static_cast<unsigned>(chosen->second)];
  }

  static Result<MatmulArguments> argumentsOf(const Call &call) {
    MatmulArguments arguments;
    arguments.a = call.tensors.at("a");
    arguments.b = call.tensors.at("b");
    arguments.out = call.tensors.at("out");
    for (const auto &[flag, t] : {std::pair("transpose_a", &arguments.a), std::pair("transpose_b", &arguments.b)})
      if (call.numbers.count(flag) && t->rank >= 2)
        *t = t->transposed(t->rank - 2, t->rank - 1);
    if (const auto bias = call.tensors.find("bias"); bias != call.tensors.end())
      arguments.bias = bias->second;
    KILN_ASSIGN(arguments.scale, floatOr("matmul", call.numbers, "scale", 1));
    arguments.activation = activationOf(call.numbers);
    arguments.precision = precisionOf(call.numbers);
    const double splits = numberOr(call.numbers, "splits", 1);
    if (splits != std::floor(splits) || !(std::abs(splits) <= 0x1p53))
      return Status::invalid(format("matmul: splits = %g", splits), "give a whole number");
    arguments.splits = static_cast<std::int64_t>(splits);
    arguments.deterministic = !call.numbers.count("atomic");
    KILN_ASSIGN(arguments.tiling, tilingOf("matmul", call.numbers));
    return arguments;
  }

  static Activation activationOf(const Numbers &numbers) {
    return static_cast<Activation>(static_cast<int>(numberOr(numbers, "activation", 0)));
  }
  static language::Precision precisionOf(const Numbers &numbers) {
    return static_cast<language::Precision>(static_cast<int>(numberOr(numbers, "precision", 0)));
  }

  /// The products in float64; `absolute`: of the operands' absolute values.
  static Result<HostTensor> sums(const HostTensors &inputs, const Numbers &numbers, bool absolute) {
    const HostTensor &a = inputs.at("a"), &b = inputs.at("b");
    KILN_ASSIGN(const Extents e, extentsOf(a.shape, b.shape, numbers));
    HostTensor out;
    if (e.batchA || e.batchB)
      out.shape.push_back(std::max(e.batchA, e.batchB));
    out.shape.insert(out.shape.end(), {e.rows, e.columns});
    const std::uint64_t matrix = e.rows * e.columns, all = e.batch() * matrix;
    const double work = static_cast<double>(all) * static_cast<double>(e.depth);
    if (const double affordable = affordableWork(numbers); work > affordable)
      out.sample = sampleOf(all, static_cast<std::uint64_t>(affordable / static_cast<double>(e.depth)));
    const std::uint64_t count = out.sample.empty() ? all : out.sample.size();
    std::vector<double> left, right; // rows of a, columns of b, each of them adjacent
    std::uint64_t held = ~std::uint64_t(0);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t at = out.sample.empty() ? i : out.sample[i], batch = at / matrix;
      if (batch != held) {
        left = matrixOf(a, batch, numbers.count("transpose_a"));
        right = matrixOf(b, batch, !numbers.count("transpose_b"));
        for (std::vector<double> *m : {&left, &right})
          for (double &v : *m)
            v = absolute ? std::abs(v) : v;
        held = batch;
      }
      const double *const x = left.data() + at % matrix / e.columns * e.depth;
      const double *const y = right.data() + at % e.columns * e.depth;
      double sum = 0;
      for (std::uint64_t k = 0; k < e.depth; ++k)
        sum += x[k] * y[k];
      out.values.push_back(sum);
    }
    return out;
  }

  static double biasAt(const HostTensors &inputs, const HostTensor &out, std::size_t i) {
    const auto bias = inputs.find("bias");
    return bias == inputs.end() ? 0 : bias->second.values[(out.sample.empty() ? i : out.sample[i]) % out.shape.back()];
  }
};

} // namespace

std::unique_ptr<Family> makeMatmul() {
  return std::make_unique<MatmulFamily>();
}

} // namespace kiln::kernels
