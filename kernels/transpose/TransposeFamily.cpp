// `transpose` for commands and tests.
#include "kernels/support/Family.h"
#include "kernels/support/MoveReference.h"
#include "kernels/transpose/TransposeOperation.h"

namespace kiln::kernels {
namespace {

class TransposeCallable : public Callable {
public:
  std::string_view name() const override { return "transpose"; }

  std::string_view summary() const override { return "out[j, i] = x[i, j], for any strides"; }

  std::vector<TensorParameter> tensors() const override {
    return {{"x", false, false, "rows x columns, any type"}, {"out", true, false, "columns x rows, of x's type"}};
  }

  bool takes(DType) const override { return true; }

  Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &) const override {
    const TensorType &x = inputs.at("x");
    if (x.shape.size() != 2)
      return Status::invalid("x has " + std::to_string(x.shape.size()) + " dimensions, transpose takes 2");
    return TensorTypes{{"out", {x.dtype, {x.shape[1], x.shape[0]}}}};
  }

  Planner bind(Jit &jit) const override {
    return [operation = std::make_shared<TransposeOperation>(jit)](const Call &call, Plan &plan) -> Status {
      return operation->describe({call.tensors.at("x"), call.tensors.at("out")}, plan);
    };
  }

  std::vector<FieldInfo> settings() const override { return fieldsOf<TransposeConfig>(); }

  language::Kernel record(DType element, const Settings &settings) const override {
    return recordWith(settings, TransposeConfig(), [&](const TransposeConfig &c) { return transpose(element, c); });
  }
};

class TransposeReference : public MoveReference {
public:
  Result<HostTensors> compute(const HostTensors &inputs, const OptionValues &) const override {
    const HostTensor &x = inputs.at("x");
    const std::size_t rows = x.shape[0], columns = x.shape[1];
    HostTensor out{{columns, rows}, std::vector<double>(x.values.size())};
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        out.values[j * rows + i] = x.values[i * columns + j];
    return HostTensors{{"out", std::move(out)}};
  }

  /// Rows of tiles are read and written 32 elements an access.  Each tile crosses shared memory whole, however much of
  /// it lies in the matrix: 128 bytes a wavefront in and out, and one barrier between.
  std::vector<Traffic> traffic(const TensorTypes &inputs) const override {
    const TensorType &x = inputs.at("x");
    const TransposeConfig c;
    const auto tileRows = static_cast<unsigned>(c.tileRows), tileColumns = static_cast<unsigned>(c.tileColumns);
    const std::uint64_t rows = x.shape[0], columns = x.shape[1], size = dtypeBytes(x.dtype);
    const std::uint64_t bytes = rows * columns * size;
    const std::uint64_t tiles = (rows + tileRows - 1) / tileRows * ((columns + tileColumns - 1) / tileColumns);
    return {{"transpose", sectorsOfRows(rows, columns, size), sectorsOfRows(columns, rows, size), bytes, bytes,
             tiles * static_cast<unsigned>(c.warps), 2 * tiles * tileRows * tileColumns * size / 128}};
  }
};

class TransposeSamples : public Samples {
public:
  TensorTypes example(DType dtype, bool large) const override {
    return {{"x", {dtype, large ? Shape{16384, 16384} : Shape{300, 500}}}};
  }
};

} // namespace

Family makeTranspose() {
  return {std::make_unique<TransposeCallable>(), std::make_unique<TransposeReference>(),
          std::make_unique<TransposeSamples>()};
}

} // namespace kiln::kernels
