//===- AttentionShape.h - What the arguments of attention say together ----------===//
//
// Numbers that both directions derive from AttentionArguments, and tensors as kernels take them.  All but `Heads` is
// for arguments that `checkAttention` accepts.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONSHAPE_H
#define KILN_KERNELS_ATTENTION_ATTENTIONSHAPE_H

#include "kernels/attention/AttentionOperation.h"
#include "kernels/attention/Dropout.h"
#include "kernels/support/Grid.h"

#include <cmath>

namespace kiln::kernels {

/// q or o: the heads in one dimension, or split into key heads and members of their groups.
struct Heads {
  std::int64_t batch, rows, heads, dim;
  bool split;
  Heads(const Tensor &t, bool packed) {
    const unsigned lead = packed ? 0 : 1; // dimensions before the rows
    split = t.rank == lead + 4;
    batch = packed ? 1 : t.shape[0];
    rows = t.shape[lead];
    dim = t.shape[t.rank - 1];
    heads = split ? t.shape[lead + 1] * t.shape[lead + 2] : t.shape[lead + 1];
  }
};

/// Sequences, which all tables have.
inline std::int64_t batchOf(const AttentionArguments &a) {
  return a.cuQ ? a.cuQ->shape[0] - 1 : a.q.shape[0];
}

/// Of a sequence, at most.
inline std::int64_t queriesOf(const AttentionArguments &a) {
  return a.cuQ ? std::min(a.maxQueries, a.q.shape[0]) : a.q.shape[1];
}

inline std::int64_t keyHeadsOf(const AttentionArguments &a) {
  return a.k.shape[a.k.rank - 2];
}

inline float scaleOf(const AttentionArguments &a) {
  return a.scale.value_or(1 / std::sqrt(static_cast<float>(a.q.shape[a.q.rank - 1])));
}

/// Keys after its own that a query sees; -1: all.
inline std::int64_t rightOf(const AttentionArguments &a) {
  return a.causal ? 0 : a.windowRight;
}

/// The narrowest tile for so many columns: matrix instructions have a depth of 32 bytes.
inline int tileWidth(std::int64_t columns, DType element) {
  const std::int64_t depth = 32 / static_cast<std::int64_t>(dtypeBytes(element));
  return static_cast<int>(std::max<std::int64_t>(depth, (columns + depth - 1) / depth * depth));
}

/// Sets the fields that the configurations of both directions have of what is computed.
template <typename Config> void describeCall(const AttentionArguments &a, Config &c) {
  c.dim = tileWidth(a.q.shape[a.q.rank - 1], a.q.dtype);
  c.dimV = tileWidth(a.v.shape[a.v.rank - 1], a.q.dtype);
  c.left = a.windowLeft >= 0;
  c.right = rightOf(a) >= 0;
  c.bottomRight = a.alignment == Alignment::BottomRight && !a.positionOffset;
  c.softcap = a.softcap > 0;
  c.alibi = a.alibi.has_value();
  c.dropout = a.dropoutP > 0;
  if (a.bias) {
    c.bias = biasTypeOf(a.bias->dtype);
    c.biasOfRows = a.bias->shape[2] != 1;
    c.biasOfKeys = a.bias->shape[3] != 1;
  }
  c.packedQ = a.cuQ.has_value();
  c.packedK = a.cuK.has_value();
  c.usedQ = a.usedQ.has_value();
  c.usedK = a.usedK.has_value();
}

/// What the code may use, and what runs it.
struct Targets {
  const Target &code, &device;
};
inline Result<Targets> targetsOf(const Jit &jit) {
  KILN_ASSIGN(const Target *code, findTarget(jit.codeTarget()));
  const Target *const device = jit.device().info().target;
  return Targets{*code, device ? *device : *code};
}

/// Rows of whole 16 bytes, wherever they begin: what the kernel is compiled for (Stride, Pointer).
inline bool isAligned(const Tensor &t) {
  constexpr std::int64_t bytes = 16;
  bool out = t.address % bytes == 0;
  for (unsigned d = 0; d + 1 < t.rank; ++d)
    out &= t.strides[d] * static_cast<std::int64_t>(dtypeBytes(t.dtype)) % bytes == 0;
  return out;
}

/// [batch, row, key head, member of its group, dim] of q or of what lies as it.
inline Tensor byGroup(Tensor t, const AttentionArguments &a) {
  if (a.cuQ)
    t = withDim(t, 0, 1, 0);
  if (t.rank == 5)
    return t;
  const std::int64_t keyHeads = keyHeadsOf(a), group = keyHeads ? t.shape[2] / keyHeads : 0, step = t.strides[2];
  t.shape[2] = keyHeads, t.strides[2] = step * group;
  return withDim(t, 3, group, step);
}

/// [batch, row, key head, dim] of k or of what lies as it.
inline Tensor byKeyHead(const Tensor &t, const AttentionArguments &a) {
  return a.cuK ? withDim(t, 0, 1, 0) : t;
}

inline Tensor orNone(const std::optional<Tensor> &t) {
  return t ? *t : Tensor();
}
/// A bias, or lists of blocks: [batch, head, ..] whichever of them it is the same for.
inline Tensor ofEveryHead(const std::optional<Tensor> &given, std::int64_t batch, std::int64_t heads) {
  if (!given)
    return {};
  Tensor t = *given;
  for (const auto &[d, extent] : {std::pair(0u, batch), std::pair(1u, heads)})
    if (t.shape[d] == 1)
      t.shape[d] = extent, t.strides[d] = 0;
  return t;
}
/// `launch` with the arguments of PairOptions.h, if there are any; `bias`: as the kernel takes it.
template <typename Launch> Status withPairArguments(const AttentionArguments &a, const Tensor &bias, Launch launch) {
  if (!a.bias && a.dropoutP == 0)
    return launch();
  const Dropout dropout(a.dropoutP, a.seed, a.offset);
  return launch(named<"bias">(bias), named<"dropout_key0">(dropout.key0), named<"dropout_key1">(dropout.key1),
                named<"dropout_base">(dropout.base), named<"dropout_below">(dropout.below),
                named<"dropout_factor">(dropout.factor));
}
/// With a dimension in front if it has fewer than `rank`.
inline Tensor inFront(const std::optional<Tensor> &t, unsigned rank, std::int64_t extent) {
  return !t ? Tensor() : t->rank < rank ? withDim(*t, 0, extent, 0) : *t;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONSHAPE_H
