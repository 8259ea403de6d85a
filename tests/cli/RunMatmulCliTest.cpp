// `kiln run matmul`: types, operands that lie transposed, batches, the epilogue, split K, and every way to get it
// wrong.
#include "tests/cli/Arrays.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace kiln::test {
namespace {

using Words = std::vector<std::string>;

class RunMatmulCliTest : public CliTest {
protected:
  static constexpr std::size_t M = 20, N = 24, K = 40;

  void SetUp() override {
    setenv("KILN_CACHE_DIR", file("cache").c_str(), 1);
    a = normals(M * K, 1), b = normals(K * N, 2);
  }
  void TearDown() override { unsetenv("KILN_CACHE_DIR"); }

  std::string save(const std::string &name, DType type, const Shape &shape, const std::vector<double> &values) {
    return saveArray(file(name), type, shape, values);
  }
  static std::vector<double> turned(const std::vector<double> &m, std::size_t rows, std::size_t columns) {
    std::vector<double> out(m.size());
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        out[j * rows + i] = m[i * columns + j];
    return out;
  }
  std::vector<double> product() const {
    std::vector<double> out(M * N);
    for (std::size_t i = 0; i < M; ++i)
      for (std::size_t j = 0; j < N; ++j)
        for (std::size_t k = 0; k < K; ++k)
          out[i * N + j] += a[i * K + k] * b[k * N + j];
    return out;
  }
  Outcome run(Words words) {
    words.insert(words.begin(), {"run", "matmul", "--target", "sm_80"});
    return kiln(words);
  }
  /// out of a run with these words.
  std::vector<double> result(Words words, Shape *shape = nullptr) {
    words.insert(words.end(), {"--output", file("out.npy")});
    const Outcome o = run(words);
    EXPECT_EQ(o.status, 0) << o.out << o.err;
    return o.status ? std::vector<double>(M * N) : valuesOf(file("out.npy"), shape);
  }
  static void near(const std::vector<double> &got, const std::vector<double> &want, double bound) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i], bound * (1 + std::abs(want[i]))) << i;
  }
  void refused(Words words, const std::string &part) {
    words.insert(words.begin(), {"run", "matmul", "--target", "sm_80"});
    words.insert(words.end(), {"--output", file("out.npy")});
    expectRefused(words, part);
  }
  std::vector<double> a, b;
};

TEST_F(RunMatmulCliTest, TypesOfTheOperandsAndOfOut) {
  for (const auto &[type, bound] : {std::pair("f16", 1e-3), {"bf16", 8e-3}, {"f32", 1e-5}}) {
    const Words words = {
        "--a", save("a.npy", DType::F32, {M, K}, a), "--b", save("b.npy", DType::F32, {K, N}, b), "--dtype", type};
    near(result(words), product(), type == std::string("bf16") ? 0.2 : bound); // bf16 also rounds the operands
    const Outcome o = run([&] {
      Words w = words;
      w.insert(w.end(), {"--out-dtype", "f32", "--output", file("wide.npy"), "--json"});
      return w;
    }());
    const auto j = nlohmann::json::parse(o.out);
    EXPECT_EQ(j["outputs"][0]["dtype"], "float32");
    EXPECT_EQ(j["size"], "20x24x40");
    EXPECT_EQ(j["times"]["flops"], 2 * M * N * K);
  }
  // Integers: exact.
  for (std::vector<double> *m : {&a, &b})
    for (double &v : *m)
      v = std::clamp(std::round(v * 40), -128.0, 127.0);
  near(result({"--a", save("a.npy", DType::I8, {M, K}, a), "--b", save("b.npy", DType::I8, {K, N}, b)}), product(), 0);
  // 8-bit floats: of small whole numbers, which they hold.
  for (std::vector<double> *m : {&a, &b})
    for (double &v : *m)
      v = std::clamp(std::round(v / 40), -4.0, 4.0);
  for (const char *type : {"e4m3", "e5m2"})
    near(result({"--a", save("a.npy", DType::F32, {M, K}, a), "--b", save("b.npy", DType::F32, {K, N}, b), "--dtype",
                 type}),
         product(), 0);
}

TEST_F(RunMatmulCliTest, TransposedOperandsBatchesAndSplits) {
  const std::string plainA = save("a.npy", DType::F16, {M, K}, a), plainB = save("b.npy", DType::F16, {K, N}, b);
  const std::string turnedA = save("at.npy", DType::F16, {K, M}, turned(a, M, K)),
                    turnedB = save("bt.npy", DType::F16, {N, K}, turned(b, K, N));
  const std::vector<double> want = result({"--a", plainA, "--b", plainB});
  near(want, product(), 1e-3);
  EXPECT_EQ(result({"--a", turnedA, "--transpose-a", "--b", plainB}), want);
  EXPECT_EQ(result({"--a", plainA, "--b", turnedB, "--transpose-b"}), want);
  EXPECT_EQ(result({"--a", turnedA, "--transpose-a", "--b", turnedB, "--transpose-b"}), want);
  near(result({"--a", plainA, "--b", plainB, "--splits", "3"}), want, 1e-3);
  near(result({"--a", plainA, "--b", plainB, "--splits", "2", "--atomic"}), want, 1e-3);
  // A batch of a; one b for all.
  std::vector<double> twice = a;
  twice.insert(twice.end(), a.begin(), a.end());
  Shape shape;
  const std::vector<double> both = result({"--a", save("a2.npy", DType::F16, {2, M, K}, twice), "--b", plainB}, &shape);
  EXPECT_EQ(shape, (Shape{2, M, N}));
  EXPECT_EQ(std::vector<double>(both.begin() + M * N, both.end()), want);
}

TEST_F(RunMatmulCliTest, Epilogue) {
  const std::vector<double> bias = normals(N, 3), sums = product();
  const Words words = {"--a",         save("a.npy", DType::F16, {M, K}, a),
                       "--b",         save("b.npy", DType::F16, {K, N}, b),
                       "--bias",      save("bias.npy", DType::F32, {N}, bias),
                       "--scale",     "0.25",
                       "--out-dtype", "f32"};
  for (const std::string name : {"none", "relu", "gelu", "silu"}) {
    std::vector<double> want;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const double x = 0.25 * sums[i] + bias[i % N];
      want.push_back(name == "relu"   ? std::max(x, 0.0)
                     : name == "gelu" ? x / 2 * std::erfc(-x / std::sqrt(2))
                     : name == "silu" ? x / (1 + std::exp(-x))
                                      : x);
    }
    Words all = words;
    all.insert(all.end(), {"--activation", name});
    near(result(all), want, 1e-5);
  }
}

TEST_F(RunMatmulCliTest, WrongInput) {
  const std::string left = save("a.npy", DType::F16, {M, K}, a), right = save("b.npy", DType::F16, {K, N}, b);
  refused({"--a", left}, "kernel 'matmul' needs --b FILE.npy");
  refused({"--a", left, "--b", left},
          "argument 'b' has the shape 20x40, a 20x40: b must have as many rows as a has columns, 40");
  refused({"--a", left, "--b", right, "--transpose-b"}, "argument 'b' has the shape 40x24, transposed");
  refused({"--a", save("row.npy", DType::F16, {K}, normals(K, 1)), "--b", right},
          "argument 'a' has the shape 40: a matrix");
  refused({"--a", left, "--b", save("b32.npy", DType::F32, {K, N}, b)}, "argument 'b' has dtype f32, 'a' has f16");
  refused({"--a", left, "--b", right, "--bias", save("bias.npy", DType::F16, {3}, {1, 2, 3})}, "argument 'bias'");
  refused({"--a", left, "--b", right, "--bias", save("wide.npy", DType::F32, {N}, normals(N, 1))},
          "argument 'bias' has dtype f32");
  refused({"--a", left, "--b", right, "--activation", "tanh"},
          "--activation tanh: there is no such choice (the choices are none, relu, gelu, silu)");
  refused({"--a", left, "--b", right, "--precision", "tf32"}, "a precision for operands of f16");
  refused({"--a", left, "--b", right, "--out-dtype", "bf16"},
          "argument 'out' has dtype bf16, of operands of f16 it is f16 or f32 (ask for f16 or f32,");
  refused({"--a", left, "--b", right, "--scale", "inf"}, "scale = inf");
  refused({"--a", left, "--b", right, "--splits", "1000"}, "splits = 1000");
  refused({"--a", left, "--b", right, "--splits", "1.5"}, "splits = 1.5");
  std::vector<double> two(2 * M * K), three(3 * K * N);
  refused({"--a", save("a2.npy", DType::F16, {2, M, K}, two), "--b", save("b3.npy", DType::F16, {3, K, N}, three)},
          "argument 'b' has a batch of 3, a one of 2");
  refused({"--a", save("a64.npy", DType::I64, {M, K}, a), "--b", right},
          "a64.npy: the file holds i64; kernel 'matmul' takes f32,");
}

} // namespace
} // namespace kiln::test
