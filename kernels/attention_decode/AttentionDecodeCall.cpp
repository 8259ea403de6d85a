#include "kernels/attention_decode/AttentionDecodeCall.h"

#include "support/Text.h"

#include <cmath>

namespace kiln::kernels {
namespace {

Status refuse(const std::string &what, std::string remedy) {
  return Status::invalid("attention_decode: " + what, std::move(remedy));
}

Status badEntry(const std::string &table, std::size_t at, double value, const std::string &why) {
  return refuse(table + "[" + std::to_string(at) + "] = " + format("%.0f", value) + ": " + why, "correct the table");
}

/// A value of a table, which is one for each sequence.
double entryOf(const HostTensors &tables, std::string_view name, std::size_t at, double otherwise) {
  const auto found = tables.find(name);
  return found == tables.end() ? otherwise : found->second.values[at];
}

} // namespace

Result<DecodeSizes> decodeSizes(const TensorTypes &inputs) {
  const auto shapeOf = [&](std::string_view name) -> const Shape * {
    const auto found = inputs.find(name);
    return found == inputs.end() ? nullptr : &found->second.shape;
  };
  DecodeSizes s;
  const auto ranked = [&](const char *name, std::size_t least, std::size_t most) -> Status {
    if (const Shape *shape = shapeOf(name); shape && (shape->size() < least || shape->size() > most))
      return refuse("argument '" + std::string(name) + "' has rank " + std::to_string(shape->size()) + ", it must be " +
                        std::to_string(least) + (most > least ? " or " + std::to_string(most) : ""),
                    "reshape it");
    return {};
  };
  KILN_TRY(ranked("q", 4, 5));
  for (const char *name : {"k_cache", "v_cache", "k_new", "v_new"})
    KILN_TRY(ranked(name, 4, 4));
  for (const char *name : {"rotary_cos", "rotary_sin", "page_table"})
    KILN_TRY(ranked(name, 2, 2));
  for (const auto &[name, shape] : inputs)
    for (const std::uint64_t extent : shape.shape)
      if (extent > 1u << 29) // so that products of two fit
        return refuse("argument '" + name + "' has an extent of " + std::to_string(extent) + "; the limit is 2^29",
                      "split the call");
  const Shape &q = *shapeOf("q"), &k = *shapeOf("k_cache"), &v = *shapeOf("v_cache");
  s.batch = q[0], s.tokens = q[1], s.heads = q.size() == 5 ? q[2] * q[3] : q[2], s.dim = q.back();
  s.parts = k[0], s.rows = k[1], s.keyHeads = k[2], s.dimV = v[3];
  if (const Shape *table = shapeOf("page_table"))
    s.paged = true, s.pages = (*table)[1];
  if (const Shape *shape = shapeOf("k_new"))
    s.newTokens = (*shape)[1];
  if (const Shape *shape = shapeOf("rotary_cos"))
    s.angles = (*shape)[1];
  const auto fits = [&](const char *name, const Shape &wanted) -> Status {
    if (const Shape *shape = shapeOf(name); shape && *shape != wanted)
      return refuse("argument '" + std::string(name) + "' is " + shapeText(*shape) + "; the others want " +
                        shapeText(wanted),
                    "give it that shape");
    return {};
  };
  KILN_TRY(fits("k_cache", {s.parts, s.rows, s.keyHeads, s.dim}));
  KILN_TRY(fits("v_cache", {s.parts, s.rows, s.keyHeads, s.dimV}));
  KILN_TRY(fits("k_new", {s.batch, s.newTokens, s.keyHeads, s.dim}));
  KILN_TRY(fits("v_new", {s.batch, s.newTokens, s.keyHeads, s.dimV}));
  KILN_TRY(fits("page_table", {s.batch, s.pages}));
  for (const char *name : {"cache_seqlens", "cache_batch_idx", "leftpad_k"})
    KILN_TRY(fits(name, {s.batch}));
  for (const char *name : {"q_descale", "k_descale", "v_descale"})
    KILN_TRY(fits(name, {s.batch, s.keyHeads}));
  if (const Shape *shape = shapeOf("rotary_cos"))
    KILN_TRY(fits("rotary_sin", *shape));
  if (s.keyHeads == 0 ? s.heads != 0 : s.heads % s.keyHeads != 0)
    return refuse("q has " + std::to_string(s.heads) + " heads, k_cache " + std::to_string(s.keyHeads) +
                      ": the first must be a multiple of the second",
                  "give q so many heads that each key head serves equally many");
  return s;
}

Result<std::vector<DecodeSequence>> decodeSequences(const DecodeSizes &s, const HostTensors &tables) {
  std::vector<DecodeSequence> out(s.batch);
  std::vector<bool> isTaken(s.parts);
  for (std::size_t b = 0; b < s.batch; ++b) {
    const double pad = entryOf(tables, "leftpad_k", b, 0), part = entryOf(tables, "cache_batch_idx", b, double(b)),
                 room = static_cast<double>(s.capacity()) - pad;
    if (!(pad >= 0 && room >= 0))
      return badEntry("leftpad_k", b, pad, "a sequence has " + std::to_string(s.capacity()) + " rows in the cache");
    const double cached = entryOf(tables, "cache_seqlens", b, room), most = room - static_cast<double>(s.newTokens);
    if (!(cached >= 0 && cached <= most))
      return badEntry("cache_seqlens", b, cached,
                      "a sequence has " + format("%.0f", room) + " rows in the cache" +
                          (s.newTokens ? ", " + std::to_string(s.newTokens) + " of them for new tokens" : ""));
    if (!s.paged && !(part >= 0 && part < static_cast<double>(s.parts)))
      return badEntry("cache_batch_idx", b, part, "the cache has " + std::to_string(s.parts) + " sequences");
    if (!s.paged && s.newTokens && s.rows) {
      if (isTaken[static_cast<std::size_t>(part)])
        return badEntry("cache_batch_idx", b, part, "two sequences write there");
      isTaken[static_cast<std::size_t>(part)] = true;
    }
    DecodeSequence &to = out[b];
    to.cached = static_cast<std::uint64_t>(cached), to.keys = to.cached + s.newTokens;
    for (std::uint64_t t = 0; t < to.keys; ++t) {
      const std::uint64_t row = t + static_cast<std::uint64_t>(pad);
      std::uint64_t of = static_cast<std::uint64_t>(part);
      if (s.paged) {
        const std::size_t at = b * s.pages + row / s.rows;
        const double page = tables.find("page_table")->second.values[at];
        if (!(page >= 0 && page < static_cast<double>(s.parts)))
          return badEntry("page_table", at, page, "the cache has " + std::to_string(s.parts) + " pages");
        of = static_cast<std::uint64_t>(page);
      }
      to.rowOf.push_back(of * s.rows + row % s.rows);
    }
  }
  return out;
}

} // namespace kiln::kernels
