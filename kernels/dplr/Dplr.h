//===- Dplr.h - Kernels of the chunked DPLR delta rule ----------------------===//
//
// For every sequence and head, token by token (specification "DPLR delta rule and RWKV7", S1; state S is K x V):
//
//   p_t = S_{t-1}^T a_t     S_t = diag(e^{g_t}) S_{t-1} + b_t p_t^T + k_t v_t^T     o_t = scale * S_t^T q_t
//
// By chunks of C tokens each chunk is an affine map of the state (S2.1):
//
//   S' = (diag(e^L) + F) S + R        O = Qh S + Oh
//
// F = BG^T W has rank C at most; of heads of many columns it is kept as these factors.
//
// Other rules of the family (Rule.h) are the same without what they have not: without a, F is 0 and Qh is q.
//
// dplr_maps makes all maps at once, dplr_out walks along each sequence with one product a step.  Chunks of all
// sequences have slots in a workspace (Chunks.h).
//
// Where sequences times heads are too few to fill the device, long ones are cut into segments of some chunks: maps
// compose to maps of the same form.  dplr_compose makes those of the segments, dplr_segment_chains walks along them,
// and dplr_out and dplr_chains along each segment's chunks, all segments at once.
//
// Backward: with dO given, the gradient D of the state passes a chunk as dS = (diag(e^L) + F)^T dS' + Qh^T dO.
// dplr_maps_backward makes F, R and Qh^T dO, dplr_chains walks along each sequence in both directions and writes what
// lies between chunks; from that dplr_value_grads makes what each token read and wrote, and the gradient of v, and
// dplr_grads all others (S3.3, S3.4).  One kernel of both has twice the registers and more code than an instruction
// cache holds.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_DPLR_H
#define KILN_KERNELS_DPLR_DPLR_H

#include "kernels/dplr/Rule.h"
#include "kernels/support/Configuration.h"

namespace kiln::kernels {

template <> inline constexpr std::array<std::string_view, 3> words<ChunkRule> = {"dplr", "delta", "linear"};
template <> inline constexpr std::array<std::string_view, 3> words<GateKind> = {"channel", "head", "none"};

struct DplrConfig {
  ChunkRule rule = ChunkRule::Dplr;
  GateKind gate = GateKind::Channel;
  int chunk = 64;
  int dim = 64, dimV = 64;
  bool exact = false;
  int warps = 0;
  bool bounded = false, packed = false;
  bool initial = false, final = false;
  int blockV = 64, chainWarps = 4, stages = 2;
  int segment = 0;
  bool ofSegments = false;
  bool gradients = false, saved = false;
  DType gates = DType::F32;
  DType beta = DType::F32;
  DType state = DType::F32;
  bool wantsFirst = false;
  DType lastState = DType::F32;
  DType offsets = DType::I64;
  bool operator==(const DplrConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("rule", &DplrConfig::rule, anyValue, "what else than k v^T a token does to the state");
    v("gate", &DplrConfig::gate, anyValue, "what decays the state");
    v("chunk", &DplrConfig::chunk, powersOfTwo(16, 1 << 18),
      "C, tokens of a chunk: 16, 32 or 64; of segments their tokens");
    v("dim", &DplrConfig::dim, powersOfTwo(16, 256), "tile width of K: at least the extent, which is an argument");
    v("dimV", &DplrConfig::dimV, powersOfTwo(16, 256), "tile width of V");
    v("exact", &DplrConfig::exact, anyValue, "K and V fill their tiles, and are no arguments");
    v("warps", &DplrConfig::warps, powersOfTwo(1, 32).orChosen().tuned().ofLaunch(),
      "of a program that works on one chunk; 0: as many as its tiles ask for");
    v("bounded", &DplrConfig::bounded, anyValue, "no half of a chunk decays by more than e^-60 (Decay.h)");
    v("packed", &DplrConfig::packed, anyValue, "cu_seqlens says where sequences start");
    v("initial", &DplrConfig::initial, anyValue, "the first state is given, not zero");
    v("final", &DplrConfig::final, anyValue, "the last state is wanted");
    v("blockV", &DplrConfig::blockV, powersOfTwo(16, 256).tuned(),
      "columns of the state of a program that walks along chunks");
    v("chainWarps", &DplrConfig::chainWarps, powersOfTwo(1, 32).tuned().ofLaunch(), "of such a program");
    v("stages", &DplrConfig::stages, between(1, 8).tuned().ofLaunch(), "tiles that it has in flight");
    v("segment", &DplrConfig::segment, powersOfTwo(1, 4096).orChosen(),
      "chunks that it walks along; 0: all of its sequence");
    v("ofSegments", &DplrConfig::ofSegments, anyValue,
      "dplr_chains: what it walks along are segments, of `chunk` tokens each");
    v("gradients", &DplrConfig::gradients, anyValue, "of a call of gradients: walks in both directions");
    v("saved", &DplrConfig::saved, anyValue, "forward: what gradients take is kept (KeptChunks.h); gradients: it was");
    v("gates", &DplrConfig::gates, anyValue, "f32 or the type of the activations");
    v("beta", &DplrConfig::beta, anyValue, "the same");
    v("state", &DplrConfig::state, anyValue, "of the first state: f32, f16, bf16");
    v("wantsFirst", &DplrConfig::wantsFirst, anyValue,
      "the gradient of the first state; `final`: that of the last state is given");
    v("lastState", &DplrConfig::lastState, anyValue, "of that gradient: f32 or the type of the activations");
    v("offsets", &DplrConfig::offsets, anyValue, "of cu_seqlens: i32 or i64");
  }
};

/// Which kernel of a call, counted from 0, a command records: a setting in addition to those of the configuration.
struct DplrLaunch {
  int launch = 0;
  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("launch", &DplrLaunch::launch, between(0, 5), "which kernel of the call, in the order of their launches");
  }
};

/// The configuration without what kernels that work on one chunk do not depend on, and without what kernels that walk
/// along chunks do not.
DplrConfig ofChunks(DplrConfig config);
DplrConfig ofChain(DplrConfig config);
/// Of programs that walk: of dplr_compose, of dplr_segment_chains (from the call's).
DplrConfig ofComposition(DplrConfig config);
DplrConfig ofWalkOfSegments(DplrConfig config);

/// Columns of K that programs of one chunk work on at a time: what they have of wider tiles outgrows registers by
/// kilobytes, and products of wider tiles are not for warpgroups (accelerate-dot).
int sliceOfK(const DplrConfig &config);
/// Columns of V that they work on at a time.
int partOfV(int dimV);
/// Heads of up to so many columns of K take their slices one by one in the program's text, and have their matrices from
/// whole rows; wider ones take them in loops.
inline constexpr int widestWhole = 128;
/// Whether a chunk's F is kept as its two factors, BG and W, of at most 64 rows each: fewer numbers, and two products
/// with them are less work than one with F.
inline bool isThin(const DplrConfig &c) {
  return c.dim > widestWhole;
}
/// Rows of what is kept of F.
inline int rowsOfF(const DplrConfig &c) {
  return isThin(c) ? 2 * c.chunk : c.dim;
}
/// Of a program that works on one chunk.  Narrow heads by few warps: addresses and the inverse take each of them as
/// many instructions, whatever it has of the rows; gradients have more tiles at once than these have registers.
inline int warpsOfChunks(const DplrConfig &c, bool gradients) {
  return c.warps ? c.warps : std::max(c.dim, c.dimV) > 64 || gradients ? 8 : 4;
}
/// Whether gradients are sums over K: those of gates of a head, and of beta.
inline bool sumsOverK(const DplrConfig &c) {
  return c.gate == GateKind::Head || c.rule == ChunkRule::Delta;
}
/// Programs of dplr_grads for a chunk and head: one a slice, unless sums over K are wanted.
inline int programsOfGradients(const DplrConfig &c) {
  return sumsOverK(c) ? 1 : c.dim / sliceOfK(c);
}

/// Directions in which a call walks.  States that were saved need no walk.
inline bool walksForward(const DplrConfig &c) {
  return !(c.gradients && c.saved);
}
inline int directionsOf(const DplrConfig &c) {
  return c.gradients && walksForward(c) ? 2 : 1;
}
/// Whether a step back makes what it adds, (Qh^T dO) transposed, itself: nothing has left it in memory.
inline bool makesRht(const DplrConfig &c) {
  return c.gradients && c.saved && !c.ofSegments;
}

/// Programs of dplr_value_grads for a chunk and head.
inline int programsOfValueGradients(const DplrConfig &c) {
  return c.dimV / partOfV(c.dimV);
}

/// Programs of dplr_compose for a segment and head.
int programsOfComposition(const DplrConfig &c);

/// dplr_maps(q, k, v, a, b, g, gate_of_head, beta, cu_seqlens, f, rt, qh, oht, decay, matrices, sequences, scale): q,
/// k, a, b, g [B, T, H, K], v [B, T, H, V], gate_of_head and beta [B, T, H], those that the rule has; of every slot f
/// [H, slots, rowsOfF, dim] (F, or W and below it BG), rt [H, slots, dimV, dim] (R transposed), qh [H, slots, C, dim],
/// oht [H, slots, dimV, C] (Oh transposed), decay [H, slots, dim] f32 (e^L); matrices (`saved`) as dplr_maps_backward.
/// Grid [slots * H].
language::Kernel dplrMaps(DType element, const DplrConfig &config = {});

/// dplr_out(h0, f, rt, qh, oht, decay, cu_seqlens, starts, o, ht, h, sequences): h0 [N, H, K, V], ht the same in f32,
/// o [B, T, H, V]; h (`saved`) as dplr_chains; of slots the rows: f [H, slots * rowsOfF, dim].  Grid [N * H * ceil(V /
/// blockV)].  By segments: starts, the states before them, [H, slots of segments * dimV, dim] f32, in place of h0 and
/// ht; grid [slots of segments * H * ceil(V / blockV)].
language::Kernel dplrOut(DType element, const DplrConfig &config = {});

/// dplr_compose(f, rt, rht, qh, do, decay, cu_seqlens, fs, rts, rhts, decays, tokens, heads, sequences): the maps of
/// segments, fs [H, slots of segments * dim, dim], rts and rhts [.. * dimV, dim] f32, decays [H, slots of segments,
/// dim] f32, from those of chunks; rht (or, see `makesRht`, qh and do) and rhts for `gradients`, rt and rts but for
/// `gradients` with `saved`.  Grid [slots of segments * H * programsOfComposition].
language::Kernel dplrCompose(DType element, const DplrConfig &config = {});

/// dplr_maps_backward(q, k, v, a, b, g, gate_of_head, beta, do, cu_seqlens, f, rt, rht, decay, matrices, sequences,
/// scale): of every slot f, rt and decay as dplr_maps, rht [H, slots, dimV, dim], (Qh^T dO) transposed: what the
/// gradient of the state gains, and matrices [H, slots, keptMatrices * C, C], which dplr_value_grads reads.
language::Kernel dplrMapsBackward(DType element, const DplrConfig &config = {});

/// dplr_chains(h0, dht, f, rt, rht, qh, do, decay, cu_seqlens, starts, ends, h, dh, ht, dh0, tokens, heads, sequences):
/// of every slot h, the state before the chunk, and dh, the gradient of the state after it, both transposed, [H, slots
/// * dimV, dim]; dh0 [N, H, K, V] f32.  Grid [2 * N * H * dimV / blockV]: half of the programs walk forward, half
/// backward.  By segments: starts and ends, the states and gradients at their ends, as of dplr_out, in place of h0, dht
/// and dh0. `ofSegments`, dplr_segment_chains: f of segments, rt, rht, h and dh of segments in f32; where only the
/// forward direction is wanted (not `gradients`) no rht, dht, dh, dh0, but ht [N, H, K, V] f32, and half the grid. With
/// `saved` gradients walk backward only: no h0, rt, starts, h, and qh and do for rht (`makesRht`), half the grid too.
language::Kernel dplrChains(DType element, const DplrConfig &config = {});

/// dplr_value_grads(q, k, v, a, b, g, gate_of_head, beta, do, cu_seqlens, h, dh, matrices, dv, y, written, sequences,
/// scale): dv, and of every slot y [H, slots, C, dimV], the gradient of what each token read of the state, and written,
/// the same, what it added along b (where b is k: along k, v and that).  Rules without a have neither.
/// Grid [slots * H * programsOfValueGradients].
language::Kernel dplrValueGrads(DType element, const DplrConfig &config = {});

/// dplr_grads(q, k, v, a, b, g, gate_of_head, beta, do, cu_seqlens, h, dh, y, written, dq, dk, da, db, dg,
/// dgate_of_head, dbeta, sequences, scale): all other gradients.  Grid [slots * H * programsOfGradients].
language::Kernel dplrGrads(DType element, const DplrConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLR_H
