#include "tests/barriers/KernelSubjects.h"

#include "tests/barriers/SubjectArguments.h"

#include "kernels/cumsum/Cumsum.h"
#include "kernels/dplr/Dplr.h"
#include "kernels/matmul/Matmul.h"
#include "kernels/softmax/Softmax.h"
#include "kernels/transpose/Transpose.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

namespace kiln::test {

using kernels::MatmulConfig;

namespace {

/// A chunk of DPLR as a map of the state, and the gradients of one: straight code with tens of barriers.
Subject chunkOfDplr(const char *target, bool gradients) {
  constexpr std::int64_t C = 64, K = 64, rows = C * K;
  kernels::DplrConfig c;
  c.chunk = C, c.dim = c.dimV = K;
  c.gates = DType::F16;
  c.bounded = true; // one of the two ways
  Subject s{gradients ? "dplr_grads" : "dplr_maps",
            gradients ? kernels::dplrGrads(DType::F16, c) : kernels::dplrMaps(DType::F16, c),
            {target, gradients ? "dplr_grads" : "dplr_maps", {}, {}},
            {},
            {},
            0,
            {}};
  s.pipelined = false, s.coarse = true;
  s.facts.divisible = divisibleFacts(s.kernel, true);
  s.facts.noTensorMaps = true; // launched here, with the arguments alone
  s.facts.equals = unitFacts(s.kernel);
  const std::vector<const char *> inputs{"q", "k", "v", "a", "b", "g", "do", "h", "dh", "y", "written"};
  s.inputs.assign(inputs.size(), std::size_t(rows));
  s.output = std::size_t(4 * rows); // each result has rows halves of f16, or decay
  s.arguments = [=, kernel = s.kernel](const std::vector<const Buffer *> &in, const Buffer &out) {
    std::map<std::string, Whole> tensors;
    const auto put = [&](const char *name, const Argument &address, bool bySlot) {
      tensors.emplace(name, bySlot ? Whole{address, {1, 1, C, K}, {rows, rows, K, 1}}
                                   : Whole{address, {1, C, 1, K}, {rows, K, K, 1}});
    };
    for (std::size_t i = 0; i < inputs.size(); ++i)
      put(inputs[i], *in[i], i >= 7);
    std::int64_t at = 0;
    for (const char *name : {"f", "rt", "qh", "oht", "dq", "dk", "da", "db", "dg"})
      put(name, std::uint64_t(out.address() + 2 * rows * (at++ % 6)), *name != 'd');
    tensors.emplace("decay", Whole{std::uint64_t(out.address() + 2 * rows * 6), {1, 1, K}, {K, K, 1}});
    return argumentsOf(kernel, tensors, {{"sequences", std::int32_t(1)}, {"scale", 1.0f}});
  };
  return s;
}
} // namespace

Subject matmulOf(const char *target, bool aligned) {
  const std::int64_t M = 128, N = 128, K = 96;
  MatmulConfig c;
  Subject s{"matmul", kernels::matmul(DType::F16, DType::F32, c), {target, "matmul", {}, {}}, {}, {}, 0, {}};
  s.facts.divisible = divisibleFacts(s.kernel, aligned);
  s.facts.noTensorMaps = true; // launched here, with the arguments alone
  s.facts.equals = unitFacts(s.kernel);
  s.inputs = {std::size_t(M * K), std::size_t(K * N)};
  s.output = std::size_t(M * N);
  s.arguments = [=, kernel = s.kernel](const std::vector<const Buffer *> &in, const Buffer &out) {
    return argumentsOf(kernel,
                       {{"a", {*in[0], {1, M, K}, {M * K, K, 1}}},
                        {"b", {*in[1], {1, K, N}, {K * N, N, 1}}},
                        {"out", {out, {1, M, N}, {M * N, N, 1}}}},
                       {{"scale", 1.0f}, {"splits", std::int64_t(1)}});
  };
  return s;
}

/// Linear attention by chunks: o = q S + tril(q k^T) v, S += k^T v; a round stores its o.  v is only added up: one copy
/// for a product and one for elementwise work.
Subject chunksOf(const char *target, bool aligned) {
  namespace kl = language;
  constexpr int C = 32, D = 32;
  const std::int64_t tokens = 150; // the fifth chunk ends outside
  Subject s{"chunks",
            kl::kernel("chunks", {.warps = 4, .stages = 2},
                       [&](kl::Arg<kl::Pointer<kl::f16>, "q"> q, kl::Arg<kl::Pointer<kl::f16>, "k"> k,
                           kl::Arg<kl::Pointer<kl::f16>, "v"> v, kl::Arg<kl::Pointer<kl::f32>, "o"> o,
                           kl::Arg<kl::i64, "row_stride"> stride, kl::Arg<kl::i32, "tokens"> rows) {
                         const auto view = [&](const auto &p) {
                           return kl::makeView(p, {rows, D}, {stride, 1}, {C, D});
                         };
                         const auto Q = view(q), K = view(k), V = view(v);
                         const auto O = view(o);
                         const auto i = kl::expandDims(kl::range(0, C), 1), j = kl::expandDims(kl::range(0, C), 0);
                         (void)kl::loop(kl::over(0, rows, C), kl::zeros<kl::f32>({D, D}), [&](auto t, auto S) {
                           const auto qt = kl::loadView(Q, {t, 0}), kt = kl::loadView(K, {t, 0});
                           const auto vt = kl::loadView(V, {t, 0});
                           auto A = kl::dot(qt, kl::transpose(kt), kl::zeros<kl::f32>({C, C}));
                           A = kl::select(i >= j, A, 0.0f);
                           auto out = kl::dot(qt, kl::cast<kl::f16>(S), kl::cast<kl::f32>(vt));
                           out = kl::dot(kl::cast<kl::f16>(A), vt, out);
                           kl::storeView(O, {t, 0}, out);
                           return kl::dot(kl::transpose(kt), vt, S);
                         });
                       }),
            {target, "chunks", {"0=16", "1=16", "2=16", "3=16"}, {}},
            {},
            {},
            0,
            {}};
  if (aligned)
    s.facts.divisible.push_back("4=16");
  s.inputs.assign(3, std::size_t(tokens * D));
  s.output = std::size_t(tokens * D);
  s.arguments = [=](const std::vector<const Buffer *> &in, const Buffer &out) -> std::vector<Argument> {
    return {*in[0], *in[1], *in[2], out, std::int64_t(D), static_cast<std::int32_t>(tokens)};
  };
  return s;
}

/// Two products, the second of the first and of a tile that both read: by warpgroups where the target has them.  Two of
/// them: one alone has read its operands when any of its warps goes on, which the proof does not know.
Subject warpgroupsOf(const char *target, bool aligned) {
  namespace kl = language;
  constexpr int D = 64;
  Subject s{"warpgroups",
            kl::kernel("warpgroups", {.warps = 8},
                       [&](kl::Arg<kl::Pointer<kl::f16>, "a"> a, kl::Arg<kl::Pointer<kl::f16>, "b"> b,
                           kl::Arg<kl::Pointer<kl::f16>, "c"> c, kl::Arg<kl::Pointer<kl::f32>, "o"> o,
                           kl::Arg<kl::i64, "row_stride"> stride, kl::Arg<kl::i32, "rows"> rows) {
                         const auto view = [&](const auto &p) {
                           return kl::makeView(p, {rows, D}, {stride, 1}, {D, D});
                         };
                         const auto A = kl::loadView(view(a), {0, 0}), B = kl::loadView(view(b), {0, 0}),
                                    C = kl::loadView(view(c), {0, 0});
                         const auto X = kl::cast<kl::f16>(kl::dot(A, kl::transpose(B), kl::cast<kl::f32>(C)));
                         kl::storeView(view(o), {0, 0}, kl::dot(kl::transpose(X), B, kl::zeros<kl::f32>({D, D})));
                       }),
            {target, "warpgroups", {"0=16", "1=16", "2=16", "3=16"}, {}},
            {},
            {},
            0,
            {}};
  s.pipelined = false;
  if (aligned)
    s.facts.divisible.push_back("4=16");
  s.inputs.assign(3, std::size_t(D * D));
  s.output = std::size_t(D * D);
  s.arguments = [=](const std::vector<const Buffer *> &in, const Buffer &out) -> std::vector<Argument> {
    return {*in[0], *in[1], *in[2], out, std::int64_t(D), std::int32_t(D)};
  };
  return s;
}

Subject mapsOfDplr(const char *target, bool) {
  return chunkOfDplr(target, false);
}
Subject gradientsOfDplr(const char *target, bool) {
  return chunkOfDplr(target, true);
}

namespace {
/// Of x[rows, columns] to a matrix of the same elements; a program has a row, or a tile.
Subject ofMatrix(const char *target, bool aligned, const char *name, language::Kernel kernel, std::int64_t rows,
                 std::int64_t columns, bool transposed) {
  Subject s{name, std::move(kernel), {target, name, {}, {}}, {}, {}, 0, {}};
  s.pipelined = false;
  s.facts.divisible = divisibleFacts(s.kernel, aligned);
  s.facts.noTensorMaps = true; // launched here, with the arguments alone
  s.facts.equals = unitFacts(s.kernel);
  s.inputs = {std::size_t(rows * columns)};
  s.output = std::size_t(rows * columns);
  s.arguments = [=, kernel = s.kernel](const std::vector<const Buffer *> &in, const Buffer &out) {
    const std::int64_t toRows = transposed ? columns : rows, toColumns = transposed ? rows : columns;
    return argumentsOf(
        kernel, {{"x", {*in[0], {rows, columns}, {columns, 1}}}, {"out", {out, {toRows, toColumns}, {toColumns, 1}}}},
        {});
  };
  return s;
}
} // namespace

Subject softmaxOf(const char *target, bool aligned) {
  Subject s = ofMatrix(target, aligned, "softmax", kernels::softmax(DType::F16), 2, 1024, false);
  s.grid = {2};
  return s;
}
Subject cumsumOf(const char *target, bool aligned) {
  Subject s = ofMatrix(target, aligned, "cumsum", kernels::cumsum(DType::F16), 2, 1024, false);
  s.grid = {2};
  return s;
}
Subject transposeOf(const char *target, bool aligned) {
  return ofMatrix(target, aligned, "transpose", kernels::transpose(DType::F16), 64, 64, true);
}

Launched Subject::run(Emulator &gpu, const std::string &ptx, std::uint32_t sharedBytes, Buffer &result,
                      const Arguments &call, const std::vector<Argument> &more) const {
  std::mt19937_64 random(3);
  std::vector<const Buffer *> given;
  for (const std::size_t n : inputs) {
    std::vector<std::uint16_t> halves(n); // of magnitude 0.5 to 1
    for (std::uint16_t &h : halves)
      h = static_cast<std::uint16_t>(0x3800 | (random() & 0x83ff));
    given.push_back(&gpu.upload(halves));
  }
  (void)result.poison(std::byte(0xCD));
  std::vector<Argument> all = call(given, result);
  all.insert(all.end(), more.begin(), more.end());
  return gpu.run(ptx, grid, {static_cast<std::uint32_t>(kernel.warps()) * 32}, all, sharedBytes, name);
}

} // namespace kiln::test
