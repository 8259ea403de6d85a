// `matmul` for commands and tests: parameters, reference, tolerance.
#include "kernels/matmul/MatmulOperation.h"
#include "kernels/support/Family.h"
#include "kernels/support/Grid.h"
#include "kernels/support/Rounding.h"
#include "kernels/support/Sampling.h"

#include <cmath>

namespace kiln::kernels {

/// The choices of --out-dtype.
enum class MatmulOut : std::uint8_t { F32, F16, BF16 };
template <> inline constexpr std::array<std::string_view, 3> words<MatmulOut> = {"f32", "f16", "bf16"};

namespace {

/// What a call by name says that MatmulArguments have as views, types and a promise.
struct MatmulWords {
  std::optional<MatmulOut> out = {};
  bool atomic = false, transposeA = false, transposeB = false;

  template <typename Self, typename Visitor> static void options(Self &w, Visitor &&v) {
    v(CallOption{"out_dtype", "another type of out"}, w.out);
    v(CallOption{"atomic", "they add in any order, so that runs may differ in their last bits"}, w.atomic);
    v(CallOption{"transpose_a", "a is K x M"}, w.transposeA);
    v(CallOption{"transpose_b", "b is N x K"}, w.transposeB);
  }
};

/// All that the options of a call say.
struct MatmulCall {
  MatmulWords words;
  MatmulArguments arguments; ///< without tensors
};

Result<MatmulCall> matmulCall(const OptionValues &options) {
  MatmulCall out;
  KILN_TRY(readOptions("matmul", options, out.words));
  KILN_TRY(readOptions("matmul", options, out.arguments));
  out.arguments.deterministic = !out.words.atomic;
  return out;
}

/// As the caller chose, or what matmulOutTypes has first.
DType outType(DType operands, const MatmulWords &words) {
  constexpr DType types[] = {DType::F32, DType::F16, DType::BF16};
  return words.out ? types[static_cast<unsigned>(*words.out)] : matmulOutTypes(operands).front();
}

/// Extents of a call: a has batchA x rows x depth, b batchB x depth x columns; a batch of 0 is no such dimension.
struct Extents {
  std::uint64_t batchA = 0, batchB = 0, rows = 0, columns = 0, depth = 0;
  std::uint64_t batch() const { return std::max({batchA, batchB, std::uint64_t(1)}); }
};

Result<Extents> extentsOf(const Shape &a, const Shape &b, const MatmulWords &words) {
  for (const auto &[name, shape] : {std::pair("a", &a), std::pair("b", &b)})
    if (shape->size() < 2 || shape->size() > 3)
      return Status::invalid(std::string("matmul: argument '") + name + "' has the shape " + shapeText(*shape) +
                                 ": a matrix, or a batch of them",
                             "give it two or three dimensions");
  const auto extent = [](const Shape &shape, bool transposed, unsigned which) {
    return shape[shape.size() - 2 + (which ^ static_cast<unsigned>(transposed))];
  };
  const bool aT = words.transposeA, bT = words.transposeB;
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

Shape shapeOfOut(const Extents &e) {
  Shape out;
  if (e.batchA || e.batchB)
    out.push_back(e.batch());
  out.insert(out.end(), {e.rows, e.columns});
  return out;
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

class MatmulCallable : public Callable {
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
  std::vector<OptionInfo> options() const override { return optionsOf<MatmulArguments, MatmulWords>(); }

  /// bias has the type of out.
  std::optional<DType> inputType(const TensorParameter &parameter, std::optional<DType> called,
                                 const OptionValues &options) const override {
    const auto words = readOptions<MatmulWords>(name(), options);
    if (parameter.name != "bias" || !words.ok() || (!called && !words->out))
      return called;
    return outType(called.value_or(DType::F32), *words);
  }

  Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &options) const override {
    const TensorType &a = inputs.at("a");
    KILN_ASSIGN(const MatmulWords words, readOptions<MatmulWords>(name(), options));
    KILN_ASSIGN(const Extents e, extentsOf(a.shape, inputs.at("b").shape, words));
    const TensorType out{outType(a.dtype, words), shapeOfOut(e)};
    if (takes(a.dtype))
      KILN_TRY(checkMatmulOutType(a.dtype, out.dtype));
    return TensorTypes{{"out", out}};
  }

  Planner bind(Jit &jit) const override {
    return [operation = std::make_shared<MatmulOperation>(jit)](const Call &call, Plan &plan) -> Status {
      KILN_ASSIGN(MatmulCall c, matmulCall(call.options));
      MatmulArguments &a = c.arguments;
      a.a = call.tensors.at("a"), a.b = call.tensors.at("b"), a.out = call.tensors.at("out");
      for (const auto &[turned, t] : {std::pair(c.words.transposeA, &a.a), {c.words.transposeB, &a.b}})
        if (turned && t->rank >= 2)
          *t = t->transposed(t->rank - 2, t->rank - 1);
      if (const auto bias = call.tensors.find("bias"); bias != call.tensors.end())
        a.bias = bias->second;
      return operation->describe(a, plan);
    };
  }

  std::string sizeText(const TensorTypes &inputs, const OptionValues &options) const override {
    const auto words = readOptions<MatmulWords>(name(), options);
    const auto e = extentsOf(inputs.at("a").shape, inputs.at("b").shape, words.ok() ? *words : MatmulWords());
    if (!e.ok())
      return {};
    return (e->batchA || e->batchB ? std::to_string(e->batch()) + " x " : std::string()) + std::to_string(e->rows) +
           "x" + std::to_string(e->columns) + "x" + std::to_string(e->depth);
  }

  /// 2 M N K of each matrix.
  double flops(const Call &call) const override {
    const Tensor &a = call.tensors.at("a"), &out = call.tensors.at("out");
    const auto words = readOptions<MatmulWords>(name(), call.options);
    const bool turned = words.ok() && words->transposeA;
    return 2 * static_cast<double>(out.elements()) * static_cast<double>(a.shape[a.rank - (turned ? 2 : 1)]);
  }

  /// The sums are held in registers, tiles in flight in shared memory.
  std::optional<ProgramNeeds> needs(const Call &call, const Target &code) const override {
    const auto c = matmulCall(call.options);
    const Tensor &out = call.tensors.at("out");
    const DType type = call.tensors.at("a").dtype;
    const Tiling t = c.ok() ? c->arguments.tiling : Tiling();
    if (!t.blockM || !t.blockN || !t.blockK || !t.warps || !t.stages || out.elements() == 0)
      return {};
    const std::int64_t rows = out.shape[out.rank - 2], columns = out.shape[out.rank - 1];
    const double depth = flops(call) / 2 / static_cast<double>(out.elements()), bytes = dtypeBytes(type);
    const int threads = 32 * t.warps, sums = t.blockM * t.blockN;
    ProgramNeeds n;
    n.warps = static_cast<unsigned>(t.warps);
    n.registers = static_cast<unsigned>((sums + threads - 1) / threads);
    n.overlapped = t.stages > 1 && code.has(Capability::CpAsync);
    n.sharedBytes = n.overlapped ? static_cast<std::uint64_t>(t.stages) * bytesOfStage(type, t) : 0;
    n.programs = static_cast<double>(out.elements() / (rows * columns) * ceilDiv(rows, t.blockM) *
                                     ceilDiv(columns, t.blockN) * std::max<std::int64_t>(1, c->arguments.splits));
    const double steps = depth / static_cast<double>(std::max<std::int64_t>(1, c->arguments.splits));
    n.flops = 2.0 * sums * steps;
    n.steps = std::ceil(steps / t.blockK);
    n.bytes = (t.blockM + t.blockN) * steps * bytes + sums * static_cast<double>(dtypeBytes(out.dtype));
    n.rate = type == DType::F32 ? (c->arguments.precision == language::Precision::Ieee ? 1.0 / 16 : 0.5) : 2 / bytes;
    n.warpgroups = bytes < 4 && t.blockM >= 64 && t.warps % 4 == 0 && code.has(Capability::Wgmma);
    if (n.warpgroups) // each 64 rows read the columns
      n.operands = steps * bytes * (t.blockM + t.blockM / 64.0 * t.blockN);
    return n;
  }

  std::vector<FieldInfo> settings() const override { return fieldsOf<MatmulConfig>(); }
  language::Kernel record(DType element, const Settings &settings) const override {
    const bool eighth = element == DType::F8E4M3 || element == DType::F8E5M2;
    const DType out = element == DType::I8 ? DType::I32 : eighth ? DType::F32 : element;
    return recordWith(settings, MatmulConfig(), [&](const MatmulConfig &c) { return matmul(element, out, c); });
  }
};

class MatmulReference : public Reference {
public:
  Result<HostTensors> compute(const HostTensors &inputs, const OptionValues &options) const override {
    KILN_ASSIGN(const MatmulCall call, matmulCall(options));
    KILN_ASSIGN(HostTensor out, sums(inputs, call.words, affordableWork(options), false));
    const double scale = static_cast<double>(call.arguments.scale);
    for (std::size_t i = 0; i < out.values.size(); ++i)
      out.values[i] = activated(scale * out.values[i] + biasAt(inputs, out, i), call.arguments.activation);
    return HostTensors{{"out", std::move(out)}};
  }

  /// Of a sum of K products: (K + 1) 2^-22 sum |a b|, of 8-bit floats 2^-13 (their matrix instructions keep 14 bits),
  /// and what tf32 (2^-9) or 3xtf32 (2^-19) leave out of the products.  The activations are steep at most 1.13; scale,
  /// bias and activation are fp32.  Then half an ulp of out's type.  i32: exact.
  std::vector<double> allowed(std::string_view, DType dtype, const HostTensors &inputs, const HostTensors &reference,
                              const OptionValues &options) const override {
    const HostTensor &out = reference.at("out");
    std::vector<double> limits(out.values.size(), 0.0);
    if (dtype == DType::I32)
      return limits;
    const auto call = matmulCall(options);
    if (!call.ok())
      return {};
    const auto sizes = sums(inputs, call->words, affordableWork(options), true);
    const auto e = extentsOf(inputs.at("a").shape, inputs.at("b").shape, call->words);
    if (!sizes.ok() || !e.ok())
      return {};
    const language::Precision precision = call->arguments.precision;
    const double product = precision == language::Precision::Tf32     ? 0x1p-9
                           : precision == language::Precision::Tf32x3 ? 0x1p-19
                                                                      : 0;
    const DType type = inputs.at("a").dtype;
    const bool eighth = type == DType::F8E4M3 || type == DType::F8E5M2;
    const double sum = static_cast<double>(e->depth + 1) * (eighth ? 0x1p-13 : 0x1p-22);
    const double scale = std::abs(static_cast<double>(call->arguments.scale));
    const Activation activation = call->arguments.activation;
    for (std::size_t i = 0; i < limits.size(); ++i) {
      const double size = scale * sizes->values[i], before = size + std::abs(biasAt(inputs, out, i));
      double limit = (sum + product) * size + 4 * 0x1p-24 * before;
      if (activation != Activation::None)
        limit = 1.13 * limit + 8 * 0x1p-23 * before;
      limits[i] = limit + halfUlp(std::abs(out.values[i]) + limit, dtype);
    }
    return limits;
  }

private:
  /// The products in float64, for so much work at most; `absolute`: of the operands' absolute values.
  static Result<HostTensor> sums(const HostTensors &inputs, const MatmulWords &words, double affordable,
                                 bool absolute) {
    const HostTensor &a = inputs.at("a"), &b = inputs.at("b");
    KILN_ASSIGN(const Extents e, extentsOf(a.shape, b.shape, words));
    HostTensor out;
    out.shape = shapeOfOut(e);
    const std::uint64_t matrix = e.rows * e.columns, all = e.batch() * matrix;
    const double work = static_cast<double>(all) * static_cast<double>(e.depth);
    if (work > affordable)
      out.sample = sampleOf(all, static_cast<std::uint64_t>(affordable / static_cast<double>(e.depth)));
    const std::uint64_t count = out.sample.empty() ? all : out.sample.size();
    std::vector<double> left, right; // rows of a, columns of b, each of them adjacent
    std::uint64_t held = ~std::uint64_t(0);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t at = out.sample.empty() ? i : out.sample[i], batch = at / matrix;
      if (batch != held) {
        left = matrixOf(a, batch, words.transposeA);
        right = matrixOf(b, batch, !words.transposeB);
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

class MatmulSamples : public Samples {
public:
  std::vector<Sample> calls(DType dtype, SampleUse use, bool gpu) const override {
    const auto call = [&](std::uint64_t m, std::uint64_t n, std::uint64_t k) {
      return Sample{{{"a", {dtype, {m, k}}}, {"b", {dtype, {k, n}}}}, {}};
    };
    if (use == SampleUse::Demo)
      return {call(300, 200, 160)};
    if (use == SampleUse::Bench)
      return {gpu ? call(8192, 8192, 8192) : call(256, 256, 256)};
    Sample batch{{{"a", {dtype, {3, 33, 70}}}, {"b", {dtype, {40, 70}}}}, {{"transpose_b", true}}};
    Sample biased = call(65, 150, 40);
    if (dtypeBytes(dtype) > 1) {
      biased.inputs["bias"] = {dtype, {150}};
      biased.options = {{"scale", 0.5}, {"activation", "gelu"}};
    }
    Sample split = call(3, 31, 1000);
    split.options = {{"splits", 3}};
    return {call(1, 1, 1), split, batch, biased};
  }
};

} // namespace

Family makeMatmul() {
  return {std::make_unique<MatmulCallable>(), std::make_unique<MatmulReference>(), std::make_unique<MatmulSamples>()};
}

} // namespace kiln::kernels
