//===- DplrLargeTest.cpp - DPLR with more than 2^31 elements ------------------------===//
//
// Few rows, far apart: one stride of every tensor puts rows after its element 2^31, and only what is used is ever
// written, so that the host holds little, and the emulator, whose memory costs nothing before it is touched, can run
// it too.  Inputs lie among each other in one buffer; an output has a buffer of its own, as operations ask for, and as
// many of them are far at a time as the device has room for.  What wholly fills so much memory, a workspace, is for a
// GPU only.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/DplrHarness.h"
#include "tests/support/TestTier.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace kiln::test {
namespace {

using namespace kernels;

constexpr std::uint64_t twoTo31 = std::uint64_t(1) << 31;

/// Which rows are far from each other.
enum class Far { Batches, Heads, Tokens };
constexpr const char *farNames[] = {"batches", "heads", "tokens"};

/// Elements from one row of the far dimension to the next: the last one starts after element 2^31.  A multiple of 64.
std::int64_t farStride(std::uint64_t extent) {
  return static_cast<std::int64_t>((twoTo31 / (extent - 1) / 64 + 1) * 64);
}

/// A tensor of which only the elements are ever touched.
struct Spread {
  Buffer *buffer;
  std::size_t offset; ///< bytes before the first element
  Tensor tensor;

  /// f(offset in bytes, of a row), row by row in C order.
  template <typename F> void eachRow(F f) const {
    const std::int64_t columns = tensor.shape[tensor.rank - 1];
    for (std::int64_t first = 0; first < tensor.elements(); first += columns) {
      std::int64_t at = 0, rest = first / columns;
      for (unsigned d = tensor.rank - 1; d-- > 0; rest /= tensor.shape[d])
        at += rest % tensor.shape[d] * tensor.strides[d];
      f(offset + static_cast<std::size_t>(at) * dtypeBytes(tensor.dtype));
    }
  }
  std::size_t rowBytes() const {
    return static_cast<std::size_t>(tensor.shape[tensor.rank - 1]) * dtypeBytes(tensor.dtype);
  }
  void write(std::span<const std::byte> data) const {
    eachRow([&](std::size_t at) {
      const Status s = buffer->copyFromHost(at, data.first(rowBytes()));
      EXPECT_TRUE(s.ok()) << s.toString();
      data = data.subspan(rowBytes());
    });
  }
  std::vector<std::byte> read() const {
    std::vector<std::byte> out;
    eachRow([&](std::size_t at) {
      out.resize(out.size() + rowBytes());
      const Status s = buffer->copyToHost(at, std::span(out).last(rowBytes()));
      EXPECT_TRUE(s.ok()) << s.toString();
    });
    return out;
  }
};

class DplrLarge : public Dplr {
protected:
  /// Sizes in C order, but for one dimension that is the outermost and far; no `stride`: dense.
  static std::vector<std::int64_t> stridesOf(const Shape &shape, unsigned farDimension, std::int64_t stride) {
    std::vector<std::int64_t> out(shape.size());
    std::int64_t n = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (d == farDimension && stride) {
        out[d] = stride;
        continue;
      }
      out[d] = n;
      n *= static_cast<std::int64_t>(shape[d]);
    }
    return out;
  }
  static std::uint64_t elementsOf(const Shape &shape) {
    std::uint64_t n = 1;
    for (const std::uint64_t extent : shape)
      n *= extent;
    return n;
  }
  /// Bytes from the first to the last element.
  static std::size_t spanOf(const TensorType &type, const std::vector<std::int64_t> &strides) {
    std::int64_t last = 0;
    for (std::size_t d = 0; d < strides.size(); ++d)
      last += (static_cast<std::int64_t>(type.shape[d]) - 1) * strides[d];
    return static_cast<std::size_t>(last + 1) * dtypeBytes(type.dtype);
  }
  Buffer *allocate(std::size_t bytes, const std::string &name) {
    auto made = on->device->allocate(bytes, name);
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return buffers.emplace_back(made.ok() ? std::move(*made) : nullptr).get();
  }
  Spread spread(Buffer *buffer, std::size_t offset, const TensorType &type, const std::vector<std::int64_t> &strides) {
    const std::vector<std::int64_t> shape(type.shape.begin(), type.shape.end());
    auto made = Tensor::strided(*on->device, *buffer, type.dtype, shape, strides, offset);
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return {buffer, offset, made.ok() ? *made : Tensor()};
  }

  /// One direction of the call; the outputs that are named are far, like all inputs.
  Arrays runFar(std::string_view direction, const Arrays &inputs, const DplrProblem &p, Far far,
                const std::vector<std::string> &farOutputs) {
    const Family &family = familyOf(direction);
    OptionValues options = p.options;
    options[direction == "dplr" ? "final_state" : "dh0"] = true;
    TensorTypes types;
    for (const auto &[name, array] : inputs)
      types[name] = {array.type, array.shape};
    const auto outputs = family.callable->outputs(types, options);
    EXPECT_TRUE(outputs.ok()) << outputs.status().toString();
    const auto strides = [&](const std::string &name, const TensorType &type, bool isFar) {
      const bool isState = name == "initial_state" || name == "dht" || name == "final_state" || name == "dh0";
      // Tokens of a state are its rows of K.
      const unsigned dimension = far == Far::Batches ? 0 : (far == Far::Heads) == isState ? 1 : 2;
      isFar = isFar && type.shape.size() == 4;
      return stridesOf(type.shape, dimension, isFar ? farStride(type.shape[dimension]) : 0);
    };
    // Inputs whose rows are equally far apart, in bytes, are in one buffer: each starts after what those before it
    // have at their first rows, and so at all others.
    struct Shared {
      std::size_t first = 0, size = 0;
      Buffer *buffer = nullptr;
    };
    std::map<std::size_t, Shared> shared;
    std::map<std::string, std::size_t> offsets;
    const auto apart = [&](const std::string &name, const TensorType &type) {
      return static_cast<std::size_t>(std::ranges::max(strides(name, type, true))) * dtypeBytes(type.dtype);
    };
    for (const auto &[name, type] : types) {
      Shared &in = shared[apart(name, type)];
      offsets[name] = in.first;
      const std::size_t span = spanOf(type, strides(name, type, true));
      if (type.shape.size() == 4)
        EXPECT_GT(span / dtypeBytes(type.dtype), twoTo31) << name;
      in.size = std::max(in.size, in.first + span);
      in.first += (elementsOf(type.shape) * dtypeBytes(type.dtype) + 255) / 256 * 256;
    }
    Call call{{}, options};
    std::map<std::string, Spread> read, written;
    for (const auto &[name, type] : types) {
      Shared &in = shared[apart(name, type)];
      if (!in.buffer)
        in.buffer = allocate(in.size, "inputs");
      if (HasFailure())
        return {};
      read.emplace(name, spread(in.buffer, offsets[name], type, strides(name, type, true)));
      read.at(name).write(inputs.at(name).data);
      call.tensors[name] = read.at(name).tensor;
    }
    for (const auto &[name, input] : read)
      EXPECT_EQ(input.read(), inputs.at(name).data) << name << " is overwritten";
    for (const auto &[name, type] : *outputs) {
      if (HasFailure())
        return {};
      const bool isFar = std::ranges::find(farOutputs, name) != farOutputs.end();
      const auto s = strides(name, type, isFar);
      if (isFar)
        EXPECT_GT(spanOf(type, s) / dtypeBytes(type.dtype), twoTo31) << name;
      const Spread output = spread(allocate(spanOf(type, s), name), 0, type, s);
      output.write(std::vector<std::byte>(elementsOf(type.shape) * dtypeBytes(type.dtype), std::byte(0xCD)));
      call.tensors[name] = output.tensor;
      written.emplace(name, output);
    }
    Status s = family.callable->run(*on->jit, call, {});
    EXPECT_TRUE(s.ok()) << s.toString();
    s = on->device->defaultStream().synchronize();
    EXPECT_TRUE(s.ok()) << s.toString();
    for (const Finding &f : on->device->takeFindings())
      ADD_FAILURE() << f.toString();
    Arrays out;
    for (const auto &[name, output] : written)
      out[name] = {output.tensor.dtype, outputs->at(name).shape, output.read()};
    buffers.clear();
    return out;
  }

  /// What tensors may take of the device's memory: the rest is for workspaces, and whoever else is there.
  std::uint64_t room() const { return on->device->info().memoryBytes / 10 * 9; }
  /// Far rows of 4 bytes an element take 8 GiB a tensor.
  bool hasRoomForF32() const { return room() > std::uint64_t(60) << 30; }

  /// Runs the direction until each output was far once, as many at a time as there is room for.
  void everyOutputFar(std::string_view direction, const Arrays &inputs, const DplrProblem &p, Far far) {
    const Arrays mine = inputsFor(familyOf(direction), inputs);
    // In units of 4 GiB, a tensor of two bytes an element.
    const std::uint64_t unit = std::uint64_t(4) << 30, all = room() / unit;
    const std::uint64_t taken = hasRoomForF32() ? 6 : 2; // inputs: rows, states, each of one type or two
    const auto costOf = [&](const std::string &name) {
      return name == "final_state" || name == "dh0" || (name == "dg" && hasRoomForF32()) ? 2u : 1u;
    };
    std::vector<std::string> left;
    for (const TensorParameter &parameter : familyOf(direction).callable->tensors())
      if (parameter.output)
        left.push_back(parameter.name);
    while (!left.empty()) {
      std::vector<std::string> now;
      std::uint64_t used = taken;
      for (const std::string &name : left)
        if (used + costOf(name) < all) // one unit and the remainder stay free
          used += costOf(name), now.push_back(name);
      if (now.empty())
        GTEST_SKIP() << direction << ": output '" << left.front() << "' of more than 2^31 elements and its inputs need "
                     << 4 * (taken + costOf(left.front()) + 1) << " GiB of device memory; there are "
                     << room() / (unit / 4);
      std::erase_if(left, [&](const std::string &name) { return std::ranges::find(now, name) != now.end(); });
      const Arrays outputs = runFar(direction, mine, p, far, now);
      ASSERT_FALSE(HasFailure());
      ASSERT_NO_FATAL_FAILURE(compare(direction, inputs, p, outputs));
    }
  }

  void TearDown() override { buffers.clear(); }
  std::vector<std::unique_ptr<Buffer>> buffers;
};

struct FarCase {
  Far far;
  std::uint64_t dim;
  std::vector<std::uint64_t> offsets = {};
};

TEST_P(DplrLarge, RowsFarApart) {
  unsigned number = 0;
  for (const FarCase &c : {FarCase{Far::Batches, 64},
                           {Far::Heads, 64},
                           {Far::Tokens, 64},
                           {Far::Tokens, 64, {0, 70, 70, 110, 140}},
                           {Far::Heads, 128, {0, 128, 150}},
                           {Far::Batches, 128}}) {
    if (!chosen(number++, 4) || (c.dim > 64 && on->emulated() && !isFullTier()))
      continue;
    DplrProblem p{c.offsets.empty() ? 2u : 1u,
                  c.offsets.empty() ? 140u : c.offsets.back(),
                  2,
                  c.dim,
                  c.dim,
                  {1, 0, -.61},
                  {{"lower_bound", -.61}},
                  DType::BF16};
    p.offsets = c.offsets;
    if (!hasRoomForF32())
      p.gateType = DType::BF16, p.first = DType::BF16, p.last = DType::BF16;
    SCOPED_TRACE(deviceNames()[GetParam()] + ": far " + farNames[static_cast<unsigned>(c.far)] + ", " + p.text());
    const Arrays inputs = inputsOf(p);
    for (const char *direction : {"dplr", "dplr_backward"})
      ASSERT_NO_FATAL_FAILURE(everyOutputFar(direction, inputs, p, c.far));
  }
}

/// A whole call of RWKV7 whose rows are those of small tables, in an order of their own: [B, T, H, K = V].
class ManyRows {
public:
  ManyRows(Opened &on, std::uint64_t batches, std::uint64_t tokens, std::uint64_t heads, std::uint64_t dim)
      : on(on), batches(batches), tokens(tokens), heads(heads), dim(dim) {}

  void check(std::string_view name, const std::vector<std::array<std::uint64_t, 2>> &looked) {
    const Family &family = familyOf(name);
    const bool back = name == "rwkv7_backward";
    const OptionValues options{{"lower_bound", -0.60653067}, {"chunk_size", 16}, {back ? "dh0" : "final_state", true}};
    TensorTypes types;
    for (const TensorParameter &parameter : family.callable->tensors()) {
      const std::string &n = parameter.name;
      if (parameter.output || n == "cu_seqlens" || n == "saved")
        continue;
      types[n] = isState(n) ? TensorType{DType::F32, {batches, heads, dim, dim}}
                            : TensorType{n == "w" ? DType::F32 : DType::BF16, {batches, tokens, heads, dim}};
    }
    const auto outputs = family.callable->outputs(types, options);
    ASSERT_TRUE(outputs.ok()) << outputs.status().toString();
    Call call{{}, options};
    std::map<std::string, std::unique_ptr<Buffer>> buffers;
    const auto place = [&](const std::string &n, const TensorType &type) {
      auto made = on.device->allocate(type.elements() * dtypeBytes(type.dtype), n);
      ASSERT_TRUE(made.ok()) << made.status().toString();
      buffers[n] = std::move(*made);
      const std::vector<std::int64_t> shape(type.shape.begin(), type.shape.end());
      auto tensor = Tensor::dense(*on.device, *buffers[n], type.dtype, shape);
      ASSERT_TRUE(tensor.ok()) << tensor.status().toString();
      call.tensors[n] = *tensor;
    };
    for (const auto &[n, type] : types) {
      tables[n] = randomInput(family, n, {type.dtype, {1, tableRows, 1, dim}}, 7);
      ASSERT_NO_FATAL_FAILURE(place(n, type));
      ASSERT_NO_FATAL_FAILURE(fill(*buffers[n], n, type.elements() / dim));
    }
    for (const auto &[n, type] : *outputs) {
      ASSERT_NO_FATAL_FAILURE(place(n, type));
      ASSERT_TRUE(buffers[n]->poison(std::byte(0xCD)).ok());
    }
    Status s = family.callable->run(*on.jit, call, {});
    ASSERT_TRUE(s.ok()) << s.toString();
    s = on.device->defaultStream().synchronize();
    ASSERT_TRUE(s.ok()) << s.toString();
    for (const Finding &f : on.device->takeFindings())
      ADD_FAILURE() << f.toString();
    for (const auto &[b, h] : looked) {
      SCOPED_TRACE(std::string(name) + ": batch " + std::to_string(b) + ", head " + std::to_string(h));
      Arrays in, out;
      for (const auto &[n, type] : types)
        in[n] = headOf(n, type, b, h, [&, &name = n](std::uint64_t row, std::span<std::byte> to) {
          std::memcpy(to.data(), rowOfTable(name, row), to.size());
        });
      for (const auto &[n, type] : *outputs)
        out[n] = headOf(n, type, b, h, [&, &buffer = *buffers[n]](std::uint64_t row, std::span<std::byte> to) {
          const Status copied = buffer.copyToHost(row * to.size(), to);
          EXPECT_TRUE(copied.ok()) << copied.toString();
        });
      const auto compared = compareWithReference(family, in, options, out);
      ASSERT_TRUE(compared.ok()) << compared.status().toString();
      EXPECT_TRUE(compared->good()) << compared->toString();
    }
  }

private:
  static constexpr std::uint64_t tableRows = 4096;
  static bool isState(std::string_view n) {
    return n == "initial_state" || n == "dht" || n == "final_state" || n == "dh0";
  }
  const std::byte *rowOfTable(const std::string &n, std::uint64_t row) const {
    const Array &table = tables.at(n);
    return &table.data[(row + (row >> 12) * 977) % tableRows * dim * dtypeBytes(table.type)];
  }
  void fill(Buffer &buffer, const std::string &n, std::uint64_t rows) {
    const std::size_t bytes = dim * dtypeBytes(tables.at(n).type);
    std::vector<std::byte> part(std::min<std::uint64_t>(rows, 1 << 18) * bytes);
    for (std::uint64_t at = 0; at < rows; at += part.size() / bytes) {
      const std::uint64_t count = std::min(rows - at, part.size() / bytes);
      for (std::uint64_t i = 0; i < count; ++i)
        std::memcpy(&part[i * bytes], rowOfTable(n, at + i), bytes);
      const Status s = buffer.copyFromHost(at * bytes, std::span(part).first(count * bytes));
      ASSERT_TRUE(s.ok()) << s.toString();
    }
  }
  /// What belongs to one batch and head; `get` takes the number of a row of the whole tensor.
  template <typename Get>
  Array headOf(const std::string &n, const TensorType &type, std::uint64_t b, std::uint64_t h, Get get) const {
    const std::uint64_t rows = isState(n) ? dim : tokens, bytes = dim * dtypeBytes(type.dtype);
    Array out{type.dtype, isState(n) ? Shape{1, 1, dim, dim} : Shape{1, tokens, 1, dim}, {}};
    out.data.resize(rows * bytes);
    for (std::uint64_t i = 0; i < rows; ++i)
      get(isState(n) ? (b * heads + h) * dim + i : (b * tokens + i) * heads + h,
          std::span(out.data).subspan(i * bytes, bytes));
    return out;
  }

  Opened &on;
  const std::uint64_t batches, tokens, heads, dim;
  std::map<std::string, Array> tables;
};

TEST_P(DplrLarge, WorkspacesOfMoreThan2To31Elements) {
  const bool large = !on->emulated();
  // A chunk of 16 tokens has as large states as one of 64, and there are more of them: [heads, slots, dim, dim].
  const std::uint64_t batches = large ? 32 : 2, tokens = large ? 520 : 40, heads = large ? 128 : 3,
                      dim = large ? 128 : 64;
  const std::uint64_t slots = batches * ((tokens + 15) / 16), boundary = twoTo31 / (slots * dim * dim);
  std::vector<std::array<std::uint64_t, 2>> looked{{0, 0}, {0, heads - 1}, {batches - 1, 0}, {batches - 1, heads - 1}};
  if (large) {
    ASSERT_LT(boundary, heads - 1);
    looked.insert(looked.end(), {{0, boundary}, {batches / 2, boundary}, {batches - 1, boundary}, {1, boundary + 1}});
  }
  for (const char *name : {"rwkv7", "rwkv7_backward"})
    ASSERT_NO_FATAL_FAILURE(ManyRows(*on, batches, tokens, heads, dim).check(name, looked));
  if (!large && !HasFailure())
    GTEST_SKIP() << "a workspace of more than 2^31 elements is for a GPU, "
                    "--device cuda:0: a small one was right";
}

INSTANTIATE_TEST_SUITE_P(Devices, DplrLarge, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
