//===- AttentionBackwardHarness.h - Attention's gradients against float64, and mask probes ---===//
//
// The tolerance is the specification's (section 10), as of the forward direction (AttentionHarness.h): f = 2, with
// softcap 3 and 3e-4 besides.  Kernels read o and lse as the definition has them, rounded; with a cap as the forward
// kernels wrote them, whose tanh they share.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_ATTENTIONBACKWARDHARNESS_H
#define KILN_TESTS_KERNELS_ATTENTIONBACKWARDHARNESS_H

#include "kernels/attention/AttentionBackwardOperation.h"
#include "tests/kernels/AttentionGradients.h"
#include "tests/kernels/AttentionHarness.h"

namespace kiln::test {

/// A call's tensors on a device.
struct PreparedGradients {
  PreparedCall forward;
  Operand o, lse, dO, dlse, dq, dk, dv, dsink, dbias;
  kernels::AttentionBackwardArguments arguments;
};
/// `o` and `lse`: what the kernels read.
PreparedGradients prepare(Device &device, const Problem &p, const Data &d, const LossGradients &g, const Numbers &o,
                          const Numbers &lse);

class AttentionBackward : public AttentionForward {
protected:
  /// With o and lse of the definition, or of the forward kernels.
  PreparedGradients prepared(const Problem &p, const Data &d, const LossGradients &g);
  /// The call on the device, its workspace full of NaN; findings and failures are the test's.
  Gradients runGradients(const PreparedGradients &call);
  void compareGradients(const Problem &p, const Data &d, const LossGradients &g, const PreparedGradients &call,
                        const Gradients &got);
  void probeGradients(const Problem &p, GradientProbe probe, std::int64_t by, std::mt19937_64 &engine);
  /// Of the call with these inputs and random gradients of the loss, with NaN in rows that are not used.
  void compareGradientsOf(const Problem &p, const Data &d, bool withLse) { compareGradientsOf(p, d, withLse, random); }
  void compareGradientsOf(const Problem &p, const Data &d, bool withLse, std::mt19937_64 &engine);
  /// The same with random inputs, too.
  void compareRandom(const Problem &p, bool withLse = false) { compareRandom(p, withLse, random); }
  void compareRandom(const Problem &p, bool withLse, std::mt19937_64 &engine);
  /// That, and both probes: in the full tier and on a GPU each twice, shifted; else one of them is.
  void all(const Problem &p, bool withLse = false) { all(p, withLse, random); }
  void all(const Problem &p, bool withLse, std::mt19937_64 &engine);
};

/// Tiles that do not depend on how tensors lie.
void fixTiles(kernels::AttentionBackwardArguments &a);
/// The same bits; of dq, unless it is to be, numbers that differ by their last bits.
void expectSame(const Gradients &got, const Gradients &want, bool deterministic);

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_ATTENTIONBACKWARDHARNESS_H
