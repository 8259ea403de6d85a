//===- Sweep.cpp - Error of the f32 approximations over all inputs ---------===//
//
// Walks the 2^32 bit patterns (or an even sample of them) in chunks: the device computes, host threads compare with
// libm in double.
//
//===----------------------------------------------------------------------===//
#include "support/Text.h"
#include "tests/parity/Generator.h"
#include "tests/parity/Oracle.h"
#include "tests/parity/Session.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <thread>

namespace kiln::parity {

namespace {

constexpr std::size_t chunk = std::size_t(1) << 21;
constexpr double limits[] = {0.5, 1, 2, 4, 16}; ///< of the histogram, in ulp

struct Errors {
  std::size_t points = 0, outside = 0, beyondBound = 0;
  std::size_t histogram[std::size(limits) + 1] = {};
  double worstUlp = 0, worstRelative = 0, worstAbsolute = 0;
  std::uint32_t worstInput = 0;

  void merge(const Errors &o) {
    points += o.points;
    outside += o.outside;
    beyondBound += o.beyondBound;
    for (std::size_t i = 0; i < std::size(histogram); ++i)
      histogram[i] += o.histogram[i];
    if (o.worstUlp > worstUlp) {
      worstUlp = o.worstUlp;
      worstInput = o.worstInput;
    }
    worstRelative = std::max(worstRelative, o.worstRelative);
    worstAbsolute = std::max(worstAbsolute, o.worstAbsolute);
  }
};

void judge(const Form &form, std::uint64_t input, std::uint64_t bits, Errors &e) {
  Approximation a = approximation(form, &input);
  double got = std::bit_cast<float>(std::uint32_t(bits));
  if (!a.defined) {
    ++e.outside;
    return;
  }
  ++e.points;
  if (!withinBound(form, a, bits))
    ++e.beyondBound;
  if (!std::isfinite(a.value) || !std::isfinite(got) || std::abs(a.value) < 0x1p-126 || std::abs(got) < 0x1p-126)
    return;
  double off = std::abs(got - a.value), ulps = off / std::ldexp(1.0, std::ilogb(a.value) - 23);
  ++e.histogram[std::size_t(std::lower_bound(std::begin(limits), std::end(limits), ulps) - std::begin(limits))];
  if (ulps > e.worstUlp) {
    e.worstUlp = ulps;
    e.worstInput = std::uint32_t(input);
  }
  e.worstRelative = std::max(e.worstRelative, off / std::abs(a.value));
  e.worstAbsolute = std::max(e.worstAbsolute, off);
}

} // namespace

Status sweepApproximations(const std::string &deviceName, std::uint64_t points, std::string_view filter) {
  Runner runner(deviceName);
  KILN_TRY(runner.open());
  points = std::clamp<std::uint64_t>(points, chunk, std::uint64_t(1) << 32);
  std::uint64_t step = (std::uint64_t(1) << 32) / points;
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  std::printf("%s, one of %llu inputs; errors of normal results in ulp\n", runner.info().description.c_str(),
              static_cast<unsigned long long>(step));
  std::printf("%-22s %10s %10s %10s %10s  histogram <=0.5 <=1 <=2 <=4 <=16 >16; beyond the documented bound\n", "form",
              "worst ulp", "input", "log2 rel", "log2 abs");
  for (const Form &form : allForms()) {
    if (!form.approximate() || form.inputs.size() != 1 || form.lastType().type != Type::F32 ||
        form.name.find(filter) == std::string::npos)
      continue;
    Errors all;
    for (std::uint64_t base = 0; base < std::uint64_t(1) << 32; base += step * chunk) {
      Cases cases;
      cases.inputs.resize(1);
      for (std::uint64_t i = 0; i < chunk; ++i) // one input of each step, at a place that varies
        cases.inputs[0].push_back(base + i * step + ((base + i) * 0x9e3779b97f4a7c15 >> 32) % step);
      cases.edges = chunk;
      KILN_ASSIGN(Columns results, runner.run(form, cases));
      std::vector<Errors> parts(threads);
      std::vector<std::thread> workers;
      for (unsigned t = 0; t < threads; ++t)
        workers.emplace_back([&, t] {
          for (std::size_t i = t * chunk / threads; i < (t + 1) * chunk / threads; ++i)
            judge(form, cases.inputs[0][i], results[0][i], parts[t]);
        });
      for (std::thread &worker : workers)
        worker.join();
      for (const Errors &part : parts)
        all.merge(part);
    }
    std::printf("%-22s %10.4f 0x%08x %10.3f %10.3f ", form.name.c_str(), all.worstUlp, all.worstInput,
                std::log2(all.worstRelative), std::log2(all.worstAbsolute));
    for (std::size_t n : all.histogram)
      std::printf(" %zu", n);
    std::printf("; %zu of %zu\n", all.beyondBound, all.points);
    std::fflush(stdout);
  }
  return {};
}

} // namespace kiln::parity
