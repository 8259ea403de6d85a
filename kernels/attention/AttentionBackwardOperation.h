//===- AttentionBackwardOperation.h - Gradients of attention, as users call them --===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONBACKWARDOPERATION_H
#define KILN_KERNELS_ATTENTION_ATTENTIONBACKWARDOPERATION_H

#include "kernels/attention/AttentionBackward.h"
#include "kernels/attention/AttentionOperation.h"

namespace kiln::kernels {

/// Of a loss whose gradients by o and lse are dO and dlse.  Every tensor has strides of its own, 1 along the last
/// dimension; dO may have strides of 0.  Outputs must lie apart from everything else that the call has: from its first
/// to its last element an output's bytes are its own.  Elements of rows that no sequence uses are left alone.
struct AttentionBackwardArguments {
  AttentionArguments of; ///< the forward call: f16 or bf16, with its o and its lse as inputs; `tiling` is not given
  Tensor dO;             ///< as o
  Tensor dq, dk, dv;     ///< out: as q, k and v
  std::optional<Tensor> dlse = {};  ///< f32, as lse; none: zeros
  std::optional<Tensor> dsink = {}; ///< out: f32 [H]; with a sink
  /// out: of the bias's type and shape; with a bias and without a block mask.  Sums in fp32, rounded once; every
  /// element is written.
  std::optional<Tensor> dbias = {};
  std::int64_t maxKeys = 0; ///< packed k and v: an upper bound of the keys of one sequence
  /// dq, too, is the same bit for bit from run to run; as dk, dv, dsink and dbias always are.
  bool deterministic = false;
  Tiling ofKeys = {};    ///< dk and dv: blockN keys of a program, blockM rows of a step
  Tiling ofQueries = {}; ///< dq: blockM rows of a program, blockN keys of a step

  template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v) {
    AttentionArguments::definition(a.of, v);
    v(CallOption{"deterministic", "the same bits in every run, of dq too: sums of dq have one order", true},
      a.deterministic);
    tilings(a, v);
  }
  template <typename Self, typename Visitor> static void tilings(Self &a, Visitor &&v) {
    constexpr Values tile = powersOfTwo(16, 256).tuned(), warps = powersOfTwo(1, 32).tuned(),
                     stages = between(1, 8).tuned();
    v(CallOption{.name = "keys_block_m", .text = "dk, dv: rows of a step; 0: chosen", .values = tile}, a.ofKeys.blockM);
    v(CallOption{.name = "keys_block_n", .text = "dk, dv: keys of a program; 0: chosen", .values = tile},
      a.ofKeys.blockN);
    v(CallOption{.name = "keys_warps", .text = "dk, dv: of a program; 0: chosen", .values = warps}, a.ofKeys.warps);
    v(CallOption{.name = "keys_stages", .text = "dk, dv: steps in flight; 0: chosen", .values = stages},
      a.ofKeys.stages);
    v(CallOption{.name = "queries_block_m", .text = "dq: rows of a program; 0: chosen", .values = tile},
      a.ofQueries.blockM);
    v(CallOption{.name = "queries_block_n", .text = "dq: keys of a step; 0: chosen", .values = tile},
      a.ofQueries.blockN);
    v(CallOption{.name = "queries_warps", .text = "dq: of a program; 0: chosen", .values = warps}, a.ofQueries.warps);
    v(CallOption{.name = "queries_stages", .text = "dq: steps in flight; 0: chosen", .values = stages},
      a.ofQueries.stages);
  }
};

class AttentionBackwardOperation : public Operation<AttentionBackwardArguments> {
public:
  using Operation::Operation;
  std::string_view name() const override { return "attention_backward"; }
  Status check(const AttentionBackwardArguments &arguments) const override;

protected:
  Status plan(const AttentionBackwardArguments &arguments, Plan &plan) const override;
  std::optional<std::string> callText(const AttentionBackwardArguments &arguments) const override;

private:
  Result<JitKernel *> kernelOf(AttentionBackwardLaunch launch, DType element,
                               const AttentionBackwardConfig &config) const;
  /// The launches for dbias; `parts`: of the workspace, as `biasParts` says.
  Status planBias(const AttentionBackwardArguments &arguments, const Tensor &lse2, const Tensor &delta,
                  const Tensor &parts, Plan &plan) const;
  /// Of a tiling that somebody gave.
  Status checkTiles(AttentionBackwardLaunch launch, const AttentionBackwardConfig &config) const;
  Result<AttentionBackwardConfig> configOf(AttentionBackwardLaunch launch,
                                           const AttentionBackwardArguments &arguments) const;

  // By launch.
  mutable KernelTable<AttentionBackwardConfig> variants[words<AttentionBackwardLaunch>.size()];
  mutable TunedTable<AttentionBackwardConfig> tuned[words<AttentionBackwardLaunch>.size()];
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONBACKWARDOPERATION_H
