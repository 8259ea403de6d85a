// `transpose` for commands and tests.
#include "kernels/support/MoveFamily.h"
#include "kernels/transpose/TransposeOperation.h"

namespace kiln::kernels {
namespace {

class TransposeFamily : public MoveFamily {
public:
  std::string_view name() const override { return "transpose"; }
  std::string_view summary() const override { return "out[j, i] = x[i, j], for any strides"; }
  std::vector<TensorParameter> tensors() const override {
    return {{"x", false, false, "rows x columns, any type"}, {"out", true, false, "columns x rows, of x's type"}};
  }
  bool takes(DType) const override { return true; }
  Result<TensorTypes> outputs(const TensorTypes &inputs, const Numbers &) const override {
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

  Result<HostTensors> reference(const HostTensors &inputs, const Numbers &) const override {
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
  TensorTypes example(DType dtype, bool large) const override {
    return {{"x", {dtype, large ? Shape{16384, 16384} : Shape{300, 500}}}};
  }
  std::vector<FieldInfo> settings() const override { return fieldsOf<TransposeConfig>(); }
  language::Kernel record(DType element, const Settings &settings) const override {
    TransposeConfig c;
    if (Status s = applySettings(settings, c); !s.ok())
      return language::Kernel::failed(std::move(s));
    return transpose(element, c);
  }
};

} // namespace

std::unique_ptr<Family> makeTranspose() {
  return std::make_unique<TransposeFamily>();
}

} // namespace kiln::kernels
