//===- AttentionHarness.h - Attention forward against float64, and the mask probe -===//
//
// The tolerance is the specification's (section 10): with `base` the same mathematics in the working type,
//   max |x - ref| <= f max |base - ref| + a,  mean |x - ref| <= 1.5 mean |base - ref| + a / 8,
// a = 2 u max |ref| + 1e-5, u = 2^-9 (bf16), 2^-12 (f16), f = 2, with softcap 3, of e4m3 4 (and 3 in place of 1.5); lse
// within 1e-4 + 1e-5 |lse|, with softcap 1e-3 softcap.  Random numbers cannot see one wrong key among hundreds; the
// probe does: q = 0, slopes 0, v one-hot, so lse is the logarithm of the number of visible keys (and the sink's weight)
// and o counts them by class.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_ATTENTIONHARNESS_H
#define KILN_TESTS_KERNELS_ATTENTIONHARNESS_H

#include "tests/kernels/AttentionProblem.h"
#include "tests/kernels/Bench.h"
#include "tests/kernels/Operand.h"

namespace kiln::test {

/// A call's tensors on a device.
struct PreparedCall {
  Operand q, k, v, o, lse;
  std::vector<Operand> tables;
  kernels::OwnedBlockMask blocks;
  kernels::AttentionArguments arguments;
};
PreparedCall prepare(Device &device, const Problem &p, const Data &d);

/// How many heads a call might have in all its sequences: with programs of 64 rows each on an SM of its own; of 128
/// rows; more, and many keys.
enum class Heads { Few, Some, Many };
inline constexpr Heads everyHeads[] = {Heads::Few, Heads::Some, Heads::Many};
/// The tiles of such a call.
kernels::Tiling tilingOf(const Device &device, const kernels::AttentionArguments &a, Heads heads);

class AttentionForward : public testing::TestWithParam<std::size_t> {
protected:
  void SetUp() override;

  std::string deviceName() const { return on ? on->device->info().name : deviceNames()[GetParam()]; }
  /// In the default tier each device takes another sample: every `stride`-th case.
  bool chosen(unsigned number, unsigned stride) const;

  /// A GPU runs all cases; in the full tier the emulators share them, in the default tier each takes one of `stride`.
  bool shared(unsigned number, unsigned stride) const;

  /// Whether this device is one of those, by number; a GPU, and all of the full tier, are.
  bool isOneOf(std::initializer_list<std::size_t> devices) const;

  /// The call's tensors on the device; findings and failures are the test's.
  Results run(const PreparedCall &call);
  Results run(const Problem &p, const Data &d) { return run(prepare(*on->device, p, d)); }
  void compare(const Problem &p, const Data &d, const Results &got);
  void compare(const Problem &p, const Data &d);
  /// `base`: `want` with each step rounded.
  void compare(const Problem &p, const Results &want, const Results &base, const Results &got);
  void compareProbe(const Problem &p, const Data &d, const Results &got);
  void compareProbe(const Problem &p, const Results &want, const Results &got);
  void probe(const Problem &p, std::int64_t by, std::mt19937_64 &engine);
  /// Random numbers, with NaN in rows that are not used; and the probe, twice.
  void both(const Problem &p) { both(p, random); }
  void both(const Problem &p, std::mt19937_64 &engine);
  /// `work` on each number below `count`, with random numbers of its own.  On a GPU all the host's cores compute
  /// references: float64 takes most of the time there.
  void inParallel(std::size_t count, const std::function<void(std::size_t, std::mt19937_64 &)> &work);
  /// `both` of each, in parallel.
  void bothOfAll(const std::vector<Problem> &problems) {
    inParallel(problems.size(), [&](std::size_t i, std::mt19937_64 &engine) { both(problems[i], engine); });
  }

  Opened *on = nullptr;
  std::mt19937_64 random{41};
};

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_ATTENTIONHARNESS_H
