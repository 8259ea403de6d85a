//===- DplrInputs.h - What operations of the family read, checked ---------------===//
//
// Every operation of the family (Rule.h) turns its arguments into these; checks, tiles and workspaces follow from them.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_DPLRINPUTS_H
#define KILN_KERNELS_DPLR_DPLRINPUTS_H

#include "kernels/dplr/ChunkTiling.h"
#include "kernels/dplr/Dplr.h"
#include "kernels/support/TunedTable.h"

#include <array>
#include <optional>

namespace kiln::kernels {

/// What an operation calls itself, q and g.
struct DplrWords {
  const char *operation, *q = "q", *g = "g";
};

/// Under the names of DplrArguments.  Tensors that the rule has not stay as they are made here.
struct DplrInputs {
  Tensor q, k, v, a, b, g;
  std::optional<Tensor> initialState = {}, cuSeqlens = {};
  std::optional<float> scale = {};
  bool safeGate = false;
  std::optional<float> lowerBound = {};
  std::int64_t chunkSize = 0;
  ChunkTiling tiling = {};
  std::int64_t segmentSize = 0;
  ChunkRule rule = ChunkRule::Dplr;
  GateKind gate = GateKind::Channel;
  Tensor beta = {}; ///< [B, T, H]

  std::int64_t batch() const { return q.shape[0]; }
  std::int64_t tokens() const { return q.shape[1]; }
  std::int64_t heads() const { return q.shape[2]; }
  std::int64_t dim() const { return q.shape[3]; }
  std::int64_t dimV() const { return v.shape[3]; }
  std::int64_t sequences() const { return cuSeqlens ? cuSeqlens->shape[0] - 1 : batch(); }
};

/// A tensor and what messages call it.
struct NamedTensor {
  const char *name;
  const Tensor *tensor;
};
/// Those of q, k, v, a, b, g, beta that the rule has.  No memory is allocated: calls go through this.
class RuleTensorList {
public:
  RuleTensorList(const DplrWords &words, const DplrInputs &inputs);
  const NamedTensor *begin() const { return items.data(); }
  const NamedTensor *end() const { return items.data() + count; }

private:
  std::array<NamedTensor, 7> items;
  std::size_t count = 0;
};

/// The largest K; and of the chunked forms the largest V.
inline constexpr std::int64_t largestDim = 256;

/// `types`: of q, k, v, a, b.
Status checkInputs(const Device &device, const DplrWords &words, const DplrInputs &inputs,
                   std::initializer_list<DType> types = {DType::F16, DType::BF16});
/// Limits of the chunked forms, of inputs that checkInputs accepts.  `gradients`: of such a call; `saved`: from what
/// was saved.
Status checkChunks(const Jit &jit, const DplrWords &words, const DplrInputs &inputs, bool gradients = false,
                   bool saved = false);
/// 2^k or 3 2^k, at least 16: a tile that holds so many columns.
int tileWidth(std::int64_t columns);
/// An output lies in no input's memory: rows are read after others have been written.
Status checkApart(const DplrWords &words, const DplrInputs &inputs, const char *name, const Tensor &output);
/// An output that has the shape of an input, and of no input the memory.
Status checkOutput(const Device &device, const DplrWords &words, const DplrInputs &inputs, const char *name,
                   const Tensor &tensor, const char *like, const Tensor &likeTensor);
/// A state [N, H, K, V] that is read (of `types`) or written (f32).
Status checkState(const Device &device, const DplrWords &words, const DplrInputs &inputs, const char *name,
                  const Tensor &state, std::initializer_list<DType> types, bool isOutput);
/// Rule, gate and the tiles of chunks, which depend on no device.
DplrConfig tilesOf(const DplrInputs &inputs);
/// What is in the code besides a tiling: types, and whether sequences are walked along in segments (by the number of
/// tokens, extents and the device).
DplrConfig untiled(const Device &device, const DplrInputs &inputs, bool gradients = false);
/// With this tiling; what that leaves open follows from extents and the device, never from the number of tokens.
DplrConfig withTiling(const Device &device, const DplrInputs &inputs, DplrConfig config, const ChunkTiling &tiling);
/// Refuses a tiling that the call does not take, by name.
Status checkTiling(const Jit &jit, const DplrWords &words, const DplrInputs &inputs, const DplrConfig &config,
                   const ChunkTiling &tiling);
/// With the tiling that the call says, or the one that a sweep kept.
DplrConfig tiled(Jit &jit, const DplrWords &words, const DplrInputs &inputs, const DplrConfig &config,
                 TunedTable<DplrConfig, ChunkTiling> &tuned);
/// The gate that an operation of optional gates has: [B, T, H] is a head's, anything else a channel's.
GateKind gateOf(const std::optional<Tensor> &g);
/// Slots of chunks (Chunks.h).
std::int64_t slotsOf(const DplrInputs &inputs, int chunk);
/// A part of a workspace: [heads, rows, columns], dense.
Tensor workspaceTensor(DeviceAddress address, DType dtype, std::int64_t heads, std::int64_t rows, std::int64_t columns);
/// The same as [heads, slots, rows of a slot, columns].  Of none, none.
Tensor bySlot(const Tensor &part, std::int64_t slots);
float scaleOf(const DplrInputs &inputs);

/// A launch of a kernel that works on one chunk: one program a chunk and head, or several.
template <ArgumentName... names, typename... Args>
Status launchOnChunks(Plan &plan, JitKernel &kernel, Dim3 grid, const DplrInputs &in,
                      const NamedArgument<names, Args> &...more) {
  const Tensor none;
  return plan.launch(kernel, grid, named<"q">(in.q), named<"k">(in.k), named<"v">(in.v), named<"a">(in.a),
                     named<"b">(in.b), named<"g">(in.gate == GateKind::Channel ? in.g : none),
                     named<"gate_of_head">(in.gate == GateKind::Head ? in.g : none), named<"beta">(in.beta),
                     named<"cu_seqlens">(in.cuSeqlens.value_or(none)),
                     named<"sequences">(static_cast<std::int32_t>(in.sequences())), named<"scale">(scaleOf(in)),
                     more...);
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLRINPUTS_H
