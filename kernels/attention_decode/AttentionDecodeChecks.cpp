#include "kernels/attention_decode/AttentionDecodeChecks.h"

#include "kernels/attention/AttentionChecks.h"
#include "kernels/attention/AttentionShape.h"

namespace kiln::kernels {
namespace {

constexpr std::int64_t mostRows = 1 << 29; // sums of a row, a shift and a window stay in 32 bits

Status refuse(const std::string &what, std::string remedy) {
  return Status::invalid("attention_decode: " + what, std::move(remedy));
}

/// Tables of one number a sequence.
Status checkTables(const Device &device, const AttentionDecodeArguments &a, std::int64_t batch) {
  for (const auto &[name, table] :
       {std::pair("cache_seqlens", &a.cacheSeqlens), std::pair("cache_batch_idx", &a.cacheBatchIdx),
        std::pair("leftpad_k", &a.leftPadK)})
    if (*table)
      KILN_TRY(checkTensor(name, **table)
                   .on(device)
                   .dtype({DType::I32})
                   .rank(1)
                   .extent(0, batch, "the batch of q")
                   .status());
  return {};
}

Status checkCache(const Device &device, const AttentionDecodeArguments &a, std::int64_t batch) {
  for (const auto &[name, t] : {std::pair("k_cache", &a.kCache), std::pair("v_cache", &a.vCache)})
    KILN_TRY(checkTensor(name, *t).on(device).dtypeOf("q", a.q).rank(4).stride(3, 1).status());
  KILN_TRY(checkTensor("k_cache", a.kCache).extent(3, a.q.shape[a.q.rank - 1], "the head dim of q").status());
  auto v = checkTensor("v_cache", a.vCache);
  for (unsigned d = 0; d < 3; ++d)
    v.extent(d, a.kCache.shape[d], "as of k_cache");
  KILN_TRY(v.status());
  if (!a.pageTable) {
    if (!a.cacheBatchIdx && a.kCache.shape[0] < batch)
      return refuse("k_cache has room for " + std::to_string(a.kCache.shape[0]) + " sequences, q has " +
                        std::to_string(batch),
                    "give a larger cache, or cache_batch_idx");
  } else {
    if (a.cacheBatchIdx)
      return refuse("cache_batch_idx and page_table are given", "leave one out: a page table says where pages lie");
    KILN_TRY(checkTensor("page_table", *a.pageTable)
                 .on(device)
                 .dtype({DType::I32})
                 .rank(2)
                 .extent(0, batch, "the batch of q")
                 .status());
    if (a.kCache.shape[1] == 0 && a.pageTable->shape[1] > 0)
      return refuse("pages of k_cache have 0 rows", "give pages of at least 1 row");
    if (a.kCache.shape[1] > mostRows || a.pageTable->shape[1] > mostRows || capacityOf(a) > mostRows)
      return refuse("page_table has " + std::to_string(a.pageTable->shape[1]) + " pages of " +
                        std::to_string(a.kCache.shape[1]) + " rows for a sequence; the limit is 2^29 rows",
                    "give a narrower table");
  }
  return {};
}

/// New keys and values, and how they are rotated.
Status checkNew(const Device &device, const AttentionDecodeArguments &a, std::int64_t batch) {
  if (a.kNew.has_value() != a.vNew.has_value())
    return refuse(std::string(a.kNew ? "k_new" : "v_new") + " is given without " + (a.kNew ? "v_new" : "k_new"),
                  "give both or none");
  for (const auto &[name, one, other] :
       {std::tuple("rotary_cos", &a.rotaryCos, "rotary_sin"), std::tuple("rotary_sin", &a.rotarySin, "rotary_cos")})
    if (*one && !(a.rotaryCos && a.rotarySin))
      return refuse(std::string(name) + " is given without " + other, "give both or none");
  if (!a.kNew || !a.vNew) {
    if (a.rotaryCos)
      return refuse("rotary_cos is given without k_new: q is rotated by the positions of new tokens",
                    "give k_new and v_new, or leave the tables out");
    return a.rotaryInterleaved ? refuse("rotary_interleaved is set, and there is no rotary_cos", "leave it out")
                               : Status();
  }
  for (const auto &[name, t, cache] :
       {std::tuple("k_new", &*a.kNew, &a.kCache), std::tuple("v_new", &*a.vNew, &a.vCache)})
    KILN_TRY(checkTensor(name, *t)
                 .on(device)
                 .dtypeOf("q", a.q)
                 .rank(4)
                 .stride(3, 1)
                 .extent(0, batch, "the batch of q")
                 .extent(2, cache->shape[2], "the heads of k_cache")
                 .extent(3, cache->shape[3], cache == &a.kCache ? "the head dim of q" : "the head dim of v_cache")
                 .status());
  KILN_TRY(checkTensor("v_new", *a.vNew).extent(1, a.kNew->shape[1], "the tokens of k_new").status());
  if (!a.cacheSeqlens)
    return refuse("k_new is given without cache_seqlens", "give the number of keys that each sequence has already");
  if (a.kNew->shape[1] > capacityOf(a))
    return refuse("k_new has " + std::to_string(a.kNew->shape[1]) + " tokens, a sequence has room for " +
                      std::to_string(capacityOf(a)),
                  "give a larger cache");
  if (a.kCache.address == a.vCache.address && a.kCache.elements() > 0)
    return refuse("k_cache and v_cache are the same memory, and both are written", "give each its own");
  if (!a.rotaryCos)
    return a.rotaryInterleaved ? refuse("rotary_interleaved is set, and there is no rotary_cos", "leave it out")
                               : Status();
  if (a.q.dtype == DType::F8E4M3)
    return refuse("rotary_cos is given, q is f8e4m3: numbers of 8 bits are not rotated",
                  "rotate q and k_new before they are rounded");
  KILN_TRY(checkTensor("rotary_cos", *a.rotaryCos).on(device).dtype({DType::F32, a.q.dtype}).rank(2).status());
  KILN_TRY(checkTensor("rotary_sin", *a.rotarySin)
               .on(device)
               .dtypeOf("rotary_cos", *a.rotaryCos)
               .rank(2)
               .extent(0, a.rotaryCos->shape[0], "the rows of rotary_cos")
               .extent(1, a.rotaryCos->shape[1], "the columns of rotary_cos")
               .status());
  const std::int64_t dim = a.q.shape[a.q.rank - 1], rotated = 2 * a.rotaryCos->shape[1];
  if (rotated == 0 || rotated % 16 != 0 || rotated > dim)
    return refuse("rotary_cos has " + std::to_string(a.rotaryCos->shape[1]) + " columns, for " +
                      std::to_string(rotated) + " of q: those must be a multiple of 16, and at most " +
                      std::to_string(dim),
                  "give tables with a multiple of 8 columns, at most half of q's");
  // The last position of a new key, and with a mask of a query: so many after the cached keys.
  const bool isMasked = a.causal || a.windowLeft >= 0 || a.windowRight >= 0;
  const std::int64_t keys = a.maxKeys ? std::min(a.maxKeys, capacityOf(a)) : capacityOf(a), added = a.kNew->shape[1],
                     positions = keys - added + std::max(added, isMasked ? a.q.shape[1] : 1);
  if (a.rotaryCos->shape[0] < positions)
    return refuse("rotary_cos has " + std::to_string(a.rotaryCos->shape[0]) + " rows, a sequence may need " +
                      std::to_string(positions),
                  "give longer tables, or max_keys");
  return {};
}

/// What a call writes lies apart from all else: programs read, for as long as it runs, what others have written.  Two
/// may lie together: o where q does, row by row, and the two caches, whose rows may take turns.
Status checkApart(const AttentionDecodeArguments &a) {
  struct Part {
    const char *name;
    const Tensor *tensor; ///< null: not given
    bool isWritten;
  };
  const auto given = [](const std::optional<Tensor> &t) { return t ? &*t : nullptr; };
  const bool appends = a.kNew.has_value();
  const Part parts[] = {{"o", &a.o, true},
                        {"lse", given(a.lse), true},
                        {"k_cache", &a.kCache, appends},
                        {"v_cache", &a.vCache, appends},
                        {"q", &a.q, false},
                        {"k_new", given(a.kNew), false},
                        {"v_new", given(a.vNew), false},
                        {"rotary_cos", given(a.rotaryCos), false},
                        {"rotary_sin", given(a.rotarySin), false},
                        {"cache_seqlens", given(a.cacheSeqlens), false},
                        {"page_table", given(a.pageTable), false},
                        {"cache_batch_idx", given(a.cacheBatchIdx), false},
                        {"leftpad_k", given(a.leftPadK), false},
                        {"q_descale", given(a.descaleQ), false},
                        {"k_descale", given(a.descaleK), false},
                        {"v_descale", given(a.descaleV), false},
                        {"sink", given(a.sink), false},
                        {"alibi", given(a.alibi), false}};
  for (const Part *one = parts; one->isWritten; ++one) { // what is written comes first
    if (!one->tensor)
      continue;
    auto check = checkTensor(one->name, *one->tensor).writable();
    for (const Part *other = one + 1; other != std::end(parts); ++other)
      if (one->tensor == &a.o && other->tensor == &a.q)
        check.notOverlapping(other->name, *other->tensor);
      else if (other->tensor && !(one->tensor == &a.kCache && other->tensor == &a.vCache))
        check.apartFrom(other->name, *other->tensor);
    KILN_TRY(check.status());
  }
  return {};
}

} // namespace

std::int64_t capacityOf(const AttentionDecodeArguments &a) {
  return a.kCache.shape[1] * (a.pageTable ? a.pageTable->shape[1] : 1);
}

AttentionArguments asAttention(const AttentionDecodeArguments &a) {
  AttentionArguments out;
  out.q = a.q, out.k = a.kCache, out.v = a.vCache, out.o = a.o;
  for (Tensor *t : {&out.k, &out.v}) {
    if (t->elements() == 0)
      t->shape[1] = 0;
    t->shape[0] = a.q.shape[0], t->strides[0] = 0;
  }
  out.lse = a.lse, out.scale = a.scale, out.causal = a.causal;
  out.windowLeft = a.windowLeft, out.windowRight = a.windowRight, out.softcap = a.softcap;
  out.sink = a.sink, out.alibi = a.alibi, out.tiling = a.tiling;
  out.descaleQ = a.descaleQ, out.descaleK = a.descaleK, out.descaleV = a.descaleV;
  return out;
}

Status checkAttentionDecode(const Device &device, const AttentionDecodeArguments &a) {
  KILN_TRY(checkTensor("q", a.q).on(device).dtype({DType::F16, DType::BF16, DType::F8E4M3}).rankBetween(4, 5).status());
  const std::int64_t batch = a.q.shape[0];
  KILN_TRY(checkCache(device, a, batch));
  KILN_TRY(checkTables(device, a, batch));
  KILN_TRY(checkAttention(device, "attention_decode", asAttention(a), /*isWritten=*/false));
  KILN_TRY(checkNew(device, a, batch));
  KILN_TRY(checkApart(a));
  const std::int64_t keyHeads = a.kCache.shape[2];
  if (keyHeads && a.q.shape[1] * Heads(a.q, false).heads / keyHeads > mostRows)
    return refuse("q has " + std::to_string(a.q.shape[1]) + " tokens of " + std::to_string(Heads(a.q, false).heads) +
                      " heads: more than 2^29 rows for each of " + std::to_string(keyHeads) + " key heads",
                  "split the call");
  if (a.maxKeys < 0 || a.maxKeys > mostRows)
    return refuse("max_keys = " + std::to_string(a.maxKeys) + ": 0 to 2^29",
                  "give an upper bound of a sequence's keys, or 0 for the room that it has");
  if (a.splits < 0 || a.splits > SplitCombineConfig::mostSplits)
    return refuse("splits = " + std::to_string(a.splits) + ": 1 to " + std::to_string(SplitCombineConfig::mostSplits),
                  "give 0 to have it chosen");
  return {};
}

} // namespace kiln::kernels
