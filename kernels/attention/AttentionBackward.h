//===- AttentionBackward.h - Gradients of flash attention ----------------------===//
//
// Specification "Attention kernels", section 7.  Nothing but lse is kept from the forward direction: scores are computed
// again, block by block.  Up to four launches:
//
//   rows      what a row needs in every block: lse to base 2, delta = sum(do * o) - dlse; of a sink its gradient
//   keys      dk and dv: a program takes blockN keys of a key head and walks over the rows that see them, of every
//             query head that the key head serves; sums stay in registers and are rounded once
//   queries   dq: a program takes blockM rows of a head and walks over the keys that they see
//   sink      the sum of the rows' gradients of a head's sink
//
// No launch adds with atomics: gradients are the same bit for bit from run to run.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONBACKWARD_H
#define KILN_KERNELS_ATTENTION_ATTENTIONBACKWARD_H

#include "kernels/attention/Attention.h"

namespace kiln::kernels {

/// Grid [ceil(longest q / blockM) * query heads * batch].
struct AttentionRowsConfig {
  int blockM = 64, warps = 4;
  int dimV = 128;
  bool packedQ = false, usedQ = false;
  bool dlse = false, sink = false;
  bool operator==(const AttentionRowsConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("blockM", &AttentionRowsConfig::blockM, powersOfTwo(16, 256), "rows of a program");
    v("warps", &AttentionRowsConfig::warps, powersOfTwo(1, 32).ofLaunch(), "of a program");
    v("dimV", &AttentionRowsConfig::dimV, multiplesOf(8, 256), "tile width of o and do");
    v("packedQ", &AttentionRowsConfig::packedQ, anyValue, "cu_q says where each sequence starts in o");
    v("usedQ", &AttentionRowsConfig::usedQ, anyValue, "used_q: rows of each sequence that count");
    v("dlse", &AttentionRowsConfig::dlse, anyValue, "lse has a gradient");
    v("sink", &AttentionRowsConfig::sink, anyValue, "one more logit of each head has one");
  }
};

/// f16 or bf16.  Arguments by name: o and do [batch, row, head, dim], lse and dlse [batch, head, row], sink [head];
/// out: lse2 and delta [batch, head, row], dsinks [batch, head, block of rows], cu_q, used_q, queries.
language::Kernel attentionRows(DType element, const AttentionRowsConfig &config = {});

/// dk and dv.  Grid [ceil(longest k / blockN) * key heads * batch].  Arguments as of `attention`, with do as o, lse2 and
/// delta of `attentionRows`, dk and dv as k and v, and `keys`, the longest sequence's.  Sinks, descales and the
/// output of lse are no fields of this one.
language::Kernel attentionKeyGradients(DType element, const AttentionConfig &config = {});
/// dq, as q.  Grid and arguments as of `attention`.
language::Kernel attentionQueryGradients(DType element, const AttentionConfig &config = {});

struct AttentionSinkConfig {
  int block = 256, warps = 4;
  bool operator==(const AttentionSinkConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("block", &AttentionSinkConfig::block, powersOfTwo(32, 4096), "numbers of a step");
    v("warps", &AttentionSinkConfig::warps, powersOfTwo(1, 32).ofLaunch(), "of a program");
  }
};
/// dsink [head], of dsinks [batch, head, block of rows].  Grid [heads].
language::Kernel attentionSinkGradient(const AttentionSinkConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONBACKWARD_H
