//===- AttentionGradients.h - Attention's gradients, defined in float64 ------------===//
//
// Of the loss sum(do * o) + sum(dlse * lse), by the specification's section 7: everything is computed again, from q, k
// and v, and the rounding of o is no part of it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_ATTENTIONGRADIENTS_H
#define KILN_TESTS_KERNELS_ATTENTIONGRADIENTS_H

#include "tests/kernels/AttentionProblem.h"

namespace kiln::test {

/// The loss's gradients by o, as o, and by lse, as lse (empty: none).
struct LossGradients {
  Numbers dO, dlse;
};
LossGradients randomGradients(const Problem &p, bool withLse, std::mt19937_64 &random);

/// Rows of do and dlse that are not used become NaN.
void poisonUnused(const Problem &p, LossGradients &g);

/// Elements that are not to be written are NaN.
struct Gradients {
  Numbers dq, dk, dv;
  Numbers dsink = {}; ///< of kernels
  Numbers dbias = {}; ///< of Problem::biasShape; with a bias, of kernels and probes
};
/// `roundSteps`: each step rounded to the problem's type.
Gradients defineGradients(const Problem &p, const Data &d, const LossGradients &g, bool roundSteps = false);

/// dsink and dbias by the specification's section 7, of the o and lse that kernels read; and what their terms are in
/// all, without their signs.  `rounded`, dbias only: the same of the numbers that fp32 rounds on the way to each term,
/// which are the products in its inner products and the logits in its share.
struct SumsOfGradients {
  Numbers value, magnitude, rounded = {};
};
SumsOfGradients defineSinks(const Problem &p, const Data &d, const LossGradients &g, const Numbers &o,
                            const Numbers &lse);
SumsOfGradients defineBias(const Problem &p, const Data &d, const LossGradients &g, const Numbers &o,
                           const Numbers &lse);

/// What a mask says alone.  Probe A: k = 0, q[i] one-hot in (i + by) mod D.  Probe B: q = 0, k[j] one-hot so.  In both
/// v is 1 everywhere, do[i] one-hot in (i + by) mod Dv, a bias 0 or minus infinity, and o, which the kernels read, 0:
/// every pair that a row sees has dx = p = 1 / (keys it sees), so A's dk and dv and B's dq and dv count pairs by class
/// (those that dropout keeps, as much larger as it makes them), and the others are 0.
enum class GradientProbe : std::uint8_t { A, B };
struct ProbeOfGradients {
  Data d;
  LossGradients g;
  Numbers o, lse; ///< what the kernels read
  Gradients want;
  double leastShare = 1; ///< of a key in a row that sees it: the smallest p and dx of all
};
ProbeOfGradients probeOf(const Problem &p, GradientProbe probe, std::int64_t by, std::mt19937_64 &random);

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_ATTENTIONGRADIENTS_H
