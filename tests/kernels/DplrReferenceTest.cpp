//===- DplrReferenceTest.cpp - The reference's gradients by differences ----------===//
//
// Every gradient against (loss(x + d) - loss(x - d)) / 2 d of the recurrence, in float64, along random directions of
// each input and element by element for a few.
//
//===----------------------------------------------------------------------===//
#include "kernels/dplr/DplrReference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kiln::test {
namespace {

using namespace kernels;
using Values = std::vector<double>;

struct Problem {
  DplrHead head;
  Values dO, dLast;
};

Problem problem(std::size_t tokens, std::size_t dim, std::size_t dimV, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const auto draw = [&](std::size_t n, double by = 1) {
    Values x(n);
    for (double &y : x)
      y = by * normal(random);
    return x;
  };
  const double part = 1 / std::sqrt(static_cast<double>(dim));
  DplrHead h{tokens, dim, dimV, 0.7, draw(tokens * dim), draw(tokens * dim), draw(tokens * dimV), {}, {}, {}, {}};
  h.a = draw(tokens * dim, part), h.b = draw(tokens * dim, part), h.g = draw(tokens * dim);
  for (double &g : h.g)
    g = -std::log1p(std::exp(-g));
  h.first = draw(dim * dimV);
  return {std::move(h), draw(tokens * dimV), draw(dim * dimV)};
}

double lossOf(const Problem &p) {
  const DplrHeadResult r = dplrForward(p.head);
  double loss = 0;
  for (std::size_t i = 0; i < r.o.size(); ++i)
    loss += r.o[i] * p.dO[i];
  for (std::size_t i = 0; i < r.last.size(); ++i)
    loss += r.last[i] * p.dLast[i];
  return loss;
}

TEST(DplrReference, GradientsAreDifferences) {
  for (const auto &[tokens, dim, dimV] :
       {std::tuple<std::size_t, std::size_t, std::size_t>{9, 5, 3}, {1, 4, 6}, {20, 3, 3}}) {
    Problem p = problem(tokens, dim, dimV, 3);
    const DplrHeadGradients d = dplrBackward(p.head, p.dO, p.dLast);
    struct Input {
      const char *name;
      Values DplrHead::*value;
      const Values *gradient;
    };
    for (const Input &in :
         {Input{"q", &DplrHead::q, &d.q}, Input{"k", &DplrHead::k, &d.k}, Input{"v", &DplrHead::v, &d.v},
          Input{"a", &DplrHead::a, &d.a}, Input{"b", &DplrHead::b, &d.b}, Input{"g", &DplrHead::g, &d.g},
          Input{"first", &DplrHead::first, &d.first}}) {
      Values &x = p.head.*in.value;
      ASSERT_EQ(x.size(), in.gradient->size()) << in.name;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double was = x[i], by = 1e-5;
        x[i] = was + by;
        const double more = lossOf(p);
        x[i] = was - by;
        const double less = lossOf(p);
        x[i] = was;
        const double wanted = (more - less) / (2 * by);
        ASSERT_NEAR((*in.gradient)[i], wanted, 1e-6 * (1 + std::abs(wanted)))
            << in.name << "[" << i << "], T " << tokens;
      }
    }
  }
}

TEST(DplrReference, LongSequencesAreTheSame) {
  // States are kept here and there only: a call longer than what lies between them.
  const Problem p = problem(700, 4, 4, 5);
  const DplrHeadGradients d = dplrBackward(p.head, p.dO, p.dLast);
  Problem other = p;
  for (const std::size_t t : {0u, 255u, 256u, 511u, 699u}) {
    const double by = 1e-5;
    other.head.k[t * 4 + 1] = p.head.k[t * 4 + 1] + by;
    const double more = lossOf(other);
    other.head.k[t * 4 + 1] = p.head.k[t * 4 + 1] - by;
    const double less = lossOf(other);
    other.head.k[t * 4 + 1] = p.head.k[t * 4 + 1];
    EXPECT_NEAR(d.k[t * 4 + 1], (more - less) / (2 * by), 1e-5 * (1 + std::abs(more - less) / by)) << t;
  }
}

} // namespace
} // namespace kiln::test
