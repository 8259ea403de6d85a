#include "kernels/attention/AttentionChecks.h"

#include "kernels/attention/AttentionHooks.h"
#include "kernels/attention/AttentionShape.h"
#include "kernels/attention/Logits.h"
#include "support/Text.h"

#include <cmath>

namespace kiln::kernels {
namespace {

struct Descale {
  const char *name, *of;
  std::optional<Tensor> AttentionArguments::*tensor;
};
constexpr Descale descales[] = {{"q_descale", "q", &AttentionArguments::descaleQ},
                                {"k_descale", "k", &AttentionArguments::descaleK},
                                {"v_descale", "v", &AttentionArguments::descaleV}};

Status checkBias(const Device &device, std::string_view operation, const AttentionArguments &a, std::int64_t batch,
                 const Heads &q) {
  if (!a.bias)
    return {};
  KILN_TRY(checkTensor("bias", *a.bias).on(device).dtype({DType::F32, DType::F16, DType::BF16}).rank(4).status());
  KILN_TRY(checkBiasExtent(operation, *a.bias, 0, "the batch", batch));
  KILN_TRY(checkBiasExtent(operation, *a.bias, 1, "the heads of q", q.heads));
  KILN_TRY(a.cuQ ? checkBiasExtent(operation, *a.bias, 2, "max_queries", a.maxQueries, /*orMore=*/true)
                 : checkBiasExtent(operation, *a.bias, 2, "the rows of q", q.rows));
  return a.cuK ? Status() : checkBiasExtent(operation, *a.bias, 3, "the rows of k", a.k.shape[1]);
}

} // namespace

Status checkBiasExtent(std::string_view operation, const Tensor &bias, unsigned dim, const char *of,
                       std::int64_t extent, bool orMore) {
  const std::int64_t given = bias.shape[dim];
  if (given == 1 || (orMore ? given >= extent : given == extent))
    return {};
  const std::string wanted = (orMore ? "at least " : "") + std::to_string(extent);
  return Status::invalid(std::string(operation) + ": argument 'bias' has the extent " + std::to_string(given) +
                             " in dimension " + std::to_string(dim) + "; it must be 1, or " + wanted + ", " + of,
                         "give it " + wanted + ", or 1 if the bias is the same for all");
}

Status checkAttention(const Device &device, std::string_view operation, const AttentionArguments &a, bool isWritten) {
  const auto refuse = [&](const std::string &what, std::string remedy) {
    return Status::invalid(std::string(operation) + ": " + what, std::move(remedy));
  };
  const bool packedQ = a.cuQ.has_value(), packedK = a.cuK.has_value();
  const unsigned rankQ = packedQ ? 3 : 4, rank = packedK ? 3 : 4;
  for (const auto &[name, tensor, t, packed] :
       {std::tuple("cu_seqlens_q", "q", &a.q, packedQ), std::tuple("cu_seqlens_k", "k", &a.k, packedK)})
    if (!packed && t->rank == 3)
      return refuse(std::string(name) + " is missing: argument '" + tensor + "' has rank 3",
                    std::string("give ") + name + " for packed sequences, or " + tensor + " a batch in front");
  auto checkQ = checkTensor("q", a.q);
  KILN_TRY(checkQ.on(device).dtype({DType::F16, DType::BF16, DType::F8E4M3}).rankBetween(rankQ, rankQ + 1).status());
  auto checkK = checkTensor("k", a.k), checkV = checkTensor("v", a.v);
  KILN_TRY(checkK.on(device).dtypeOf("q", a.q).rank(rank).stride(rank - 1, 1).status());
  KILN_TRY(checkV.on(device).dtypeOf("q", a.q).rank(rank).stride(rank - 1, 1).status());
  KILN_TRY(checkQ.stride(a.q.rank - 1, 1).status());
  const std::int64_t keyHeads = a.k.shape[rank - 2], dimV = a.v.shape[rank - 1];
  const Heads q(a.q, packedQ);
  if (keyHeads == 0 ? q.heads != 0 : q.heads % keyHeads != 0)
    return refuse("q has " + std::to_string(q.heads) + " heads, k " + std::to_string(keyHeads) +
                      ": the first must be a multiple of the second",
                  "give q so many heads that each key head serves equally many");
  if (q.split && a.q.shape[rankQ - 2] != keyHeads)
    return refuse("q is split into " + std::to_string(a.q.shape[rankQ - 2]) + " groups of heads, k has " +
                      std::to_string(keyHeads) + " heads",
                  "give q the shape [.., heads of k, heads of a group, D]");
  for (const auto &[name, d] : {std::pair("q", q.dim), std::pair("v", dimV)})
    if (const std::int64_t unit = headDimUnit(a.q.dtype); d < unit || d > 256 || d % unit)
      return refuse(std::string("argument '") + name + "' has the head dim " + std::to_string(d) + ": a multiple of " +
                        std::to_string(unit) + " from " + std::to_string(unit) + " to 256",
                    "pad the last dimension with zeros");
  KILN_TRY(checkK.extent(rank - 1, q.dim, "the head dim of q").status());
  checkV.extent(rank - 2, keyHeads, "the heads of k").extent(rank - 3, a.k.shape[rank - 3], "the rows of k");
  // The batch is that of q, or what the offsets say.
  std::int64_t batch = a.q.shape[0];
  const char *const of = packedQ   ? "one less than cu_seqlens_q's"
                         : packedK ? "one less than cu_seqlens_k's"
                                   : "the batch of q";
  for (const auto &[name, cu] : {std::pair("cu_seqlens_k", &a.cuK), std::pair("cu_seqlens_q", &a.cuQ)}) {
    if (!*cu)
      continue;
    KILN_TRY(checkTensor(name, **cu).on(device).dtype({DType::I32}).rank(1).stride(0, 1).status());
    batch = (*cu)->shape[0] - 1;
    if (batch < 0)
      return refuse(std::string(name) + " is empty", "give batch + 1 offsets, the first of them 0");
  }
  if (packedK)
    KILN_TRY(checkTensor("cu_seqlens_k", *a.cuK)
                 .extent(0, batch + 1, packedQ ? "as of cu_seqlens_q" : "one more than q's batch")
                 .status());
  if (!packedQ)
    KILN_TRY(checkQ.extent(0, batch, of).status());
  if (!packedK) {
    KILN_TRY(checkK.extent(0, batch, of).status());
    checkV.extent(0, batch, of);
  }
  KILN_TRY(checkV.status());
  if (packedQ && (a.maxQueries < 0 || (a.maxQueries == 0 && q.rows > 0 && batch > 0)))
    return refuse("max_queries = " + std::to_string(a.maxQueries),
                  "give the longest sequence's number of queries, or more");
  auto o = checkTensor("o", a.o).on(device);
  KILN_TRY((outputOf(a.q.dtype) == a.q.dtype ? o.dtypeOf("q", a.q) : o.dtype({outputOf(a.q.dtype)}))
               .rank(a.q.rank)
               .status());
  for (unsigned d = 0; d + 1 < a.q.rank; ++d)
    o.extent(d, a.q.shape[d], "as of q");
  o.extent(a.o.rank - 1, dimV, "the head dim of v").stride(a.o.rank - 1, 1);
  if (isWritten)
    o.writable().notOverlapping("q", a.q).apartFrom("k", a.k).apartFrom("v", a.v);
  KILN_TRY(o.status());
  for (const auto &[name, t] : {std::pair("seqused_q", &a.usedQ), std::pair("seqused_k", &a.usedK)})
    if (*t)
      KILN_TRY(checkTensor(name, **t)
                   .on(device)
                   .dtype({DType::I32})
                   .rank(1)
                   .stride(0, 1)
                   .extent(0, batch, "the batch")
                   .status());
  if (a.lse) {
    auto lse = checkTensor("lse", *a.lse).on(device).dtype({DType::F32}).rank(packedQ ? 2 : 3);
    KILN_TRY(lse.status());
    if (!packedQ)
      lse.extent(0, batch, "the batch");
    lse.extent(a.lse->rank - 2, q.heads, "the heads of q").extent(a.lse->rank - 1, q.rows, "the rows of q");
    if (isWritten)
      lse.writable();
    KILN_TRY(lse.status());
  }
  for (const Descale &d : descales)
    if (const std::optional<Tensor> &t = a.*d.tensor) {
      if (a.q.dtype != DType::F8E4M3)
        return refuse(std::string(d.name) + " is given, " + d.of + " is " + std::string(dtypeName(a.q.dtype)) +
                          ": it belongs to f8e4m3",
                      "leave it out, or multiply scale or the result");
      KILN_TRY(checkTensor(d.name, *t)
                   .on(device)
                   .dtype({DType::F32})
                   .rank(2)
                   .extent(0, batch, "the batch")
                   .extent(1, keyHeads, "the heads of k")
                   .status());
    }
  if (a.sink)
    KILN_TRY(checkTensor("sink", *a.sink)
                 .on(device)
                 .dtype({DType::F32})
                 .rank(1)
                 .extent(0, q.heads, "the heads of q")
                 .status());
  if (a.alibi) {
    auto alibi = checkTensor("alibi", *a.alibi).on(device).dtype({DType::F32}).rankBetween(1, 2);
    KILN_TRY(alibi.status());
    if (a.alibi->rank == 2)
      alibi.extent(0, batch, "the batch");
    KILN_TRY(alibi.extent(a.alibi->rank - 1, q.heads, "the heads of q").status());
  }
  KILN_TRY(checkBias(device, operation, a, batch, q));
  if (a.bias && isWritten) {
    KILN_TRY(checkTensor("o", a.o).apartFrom("bias", *a.bias).status());
    if (a.lse)
      KILN_TRY(checkTensor("lse", *a.lse).apartFrom("bias", *a.bias).status());
  }
  for (const auto &[name, window] : {std::pair("window_left", a.windowLeft), std::pair("window_right", a.windowRight)})
    if (window < -1 || window > 1 << 30)
      return refuse(std::string(name) + " = " + std::to_string(window) + ": -1 (everything), or 0 to 2^30",
                    "give -1 for an open side");
  if (a.positionOffset && (*a.positionOffset < 0 || *a.positionOffset > 1 << 28)) // sums of a row, it and a window
    return refuse("position_offset = " + std::to_string(*a.positionOffset) + ": 0 to 2^28",
                  "give the number of tokens before the first row of q");
  KILN_TRY(checkHooks(device, operation, a, isWritten));
  if (!(a.dropoutP >= 0 && a.dropoutP < 1))
    return refuse(format("dropout_p = %g: from 0 up, and below 1", static_cast<double>(a.dropoutP)),
                  "give the share of probabilities that are to become 0; 0 means none");
  if (a.tiling.given())
    KILN_TRY(checkTiling(operation, a.tiling));
  if (a.scale && !(std::isfinite(*a.scale * log2e) && *a.scale > 0))
    return refuse(format("scale = %g", static_cast<double>(*a.scale)), "give a number above 0, at most 2e38");
  if (!(std::isfinite(a.softcap) && a.softcap >= 0))
    return refuse(format("softcap = %g", static_cast<double>(a.softcap)),
                  "give a finite number from 0 up; 0 means none");
  const float share = scaleOf(a) / a.softcap;
  if (a.softcap > 0 && !(std::isnormal(share) && std::isnormal(a.softcap * log2e)))
    return refuse(format("softcap = %g with scale = %g: the cap and the scale's share of it must "
                         "lie between 1.2e-38 and 2e38",
                         static_cast<double>(a.softcap), static_cast<double>(scaleOf(a))),
                  a.softcap > scaleOf(a) ? "give softcap 0 (none): no logit comes near this cap" : "give a larger cap");
  for (const auto &[name, rows] : {std::pair("q", q.rows), std::pair("k", a.k.shape[rank - 3])})
    if (rows > 1 << 29) // sums of a row, a shift and a window stay in 32 bits
      return refuse(std::string("argument '") + name + "' has " + std::to_string(rows) + " rows; the limit is 2^29",
                    "split the call");
  return {};
}

} // namespace kiln::kernels
