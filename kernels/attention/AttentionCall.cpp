#include "kernels/attention/AttentionCall.h"

#include "kernels/attention/CallFunctions.h"
#include "support/Text.h"

#include <algorithm>
#include <cmath>

namespace kiln::kernels {
namespace {

/// The ways in which q, k and v are given, and tensors that are fields as they are.
constexpr const char *dataNames[] = {"q", "k", "v", "kv", "qkv"};
struct OptionalTensor {
  const char *name;
  std::optional<Tensor> AttentionArguments::*field;
};
constexpr OptionalTensor optionalTensors[] = {
    {"cu_seqlens_q", &AttentionArguments::cuQ},   {"cu_seqlens_k", &AttentionArguments::cuK},
    {"sink", &AttentionArguments::sink},          {"alibi", &AttentionArguments::alibi},
    {"bias", &AttentionArguments::bias},          {"seqused_q", &AttentionArguments::usedQ},
    {"seqused_k", &AttentionArguments::usedK},    {"q_descale", &AttentionArguments::descaleQ},
    {"k_descale", &AttentionArguments::descaleK}, {"v_descale", &AttentionArguments::descaleV}};

/// A call's tensors by what they are; nullptr: not given.  Looked up once.
struct TensorsOfCall {
  std::array<const Tensor *, std::size(dataNames)> data = {};
  std::array<const Tensor *, std::size(optionalTensors)> optional = {};
  const Tensor *cuQ() const { return optional[0]; }
  const Tensor *cuK() const { return optional[1]; }

  explicit TensorsOfCall(const Tensors &tensors) {
    static const NamePlaces places = [] {
      NamePlaces out;
      for (const char *name : dataNames)
        out.add(name);
      for (const OptionalTensor &t : optionalTensors)
        out.add(t.name);
      return out;
    }();
    for (const auto &[name, t] : tensors)
      if (const std::size_t place = places.of(name); place < data.size())
        data[place] = &t;
      else if (place != NamePlaces::none)
        optional[place - data.size()] = &t;
  }
};

/// Which of the three ways q, k and v were given.
struct Given {
  std::array<const Tensor *, 3> tensors;
  std::size_t count;
};

Result<Given> givenTensors(const TensorsOfCall &tensors) {
  const auto &[q, k, v, kv, qkv] = tensors.data;
  if (qkv && !q && !k && !v && !kv)
    return Given{{qkv}, 1};
  if (q && kv && !k && !v && !qkv)
    return Given{{q, kv}, 2};
  if (q && k && v && !kv && !qkv)
    return Given{{q, k, v}, 3};
  std::string got;
  for (std::size_t i = 0; i < tensors.data.size(); ++i)
    if (tensors.data[i])
      got += (got.empty() ? "" : ", ") + std::string(dataNames[i]);
  return Status::invalid("attention needs q, k and v; or q and kv; or qkv; given: " + (got.empty() ? "none" : got),
                         "give --q, --k and --v; or --q and --kv; or --qkv");
}

Status badEntry(const char *table, std::size_t at, double value, const std::string &why) {
  return Status::invalid("attention: " + std::string(table) + "[" + std::to_string(at) +
                             "] = " + format("%.0f", value) + ": " + why,
                         "correct the table");
}

/// Offsets that begin at 0, do not fall, and end within the rows.
Status checkOffsets(const char *table, const std::vector<double> &cu, std::int64_t rows) {
  for (std::size_t i = 0; i < cu.size(); ++i) {
    if (i == 0 && cu[0] != 0)
      return badEntry(table, i, cu[i], "the first offset must be 0");
    if (i > 0 && cu[i] < cu[i - 1])
      return badEntry(table, i, cu[i], "below the offset before it, " + format("%.0f", cu[i - 1]));
    if (cu[i] > static_cast<double>(rows))
      return badEntry(table, i, cu[i], "the tensor has " + std::to_string(rows) + " rows");
  }
  return {};
}

Status checkUsed(const char *table, std::size_t i, double used, std::int64_t rows) {
  if (used < 0 || used > static_cast<double>(rows))
    return badEntry(table, i, used, "the sequence has " + std::to_string(rows) + " rows");
  return {};
}

std::int64_t integer(double v) {
  return static_cast<std::int64_t>(v);
}

} // namespace

std::vector<TensorParameter> optionalParameters() {
  return {{"sink", false, true, "H, f32: a logit of each head that has no value", DType::F32},
          {"alibi", false, true, "H or B x H, f32: slopes", DType::F32},
          {"bias", false, true, "B x H x Sq x Sk, each of them or 1, f32 or 16 bits: added to the scores"},
          {"cu_seqlens_q", false, true, "B + 1, int32: where each sequence's queries start", DType::I32},
          {"cu_seqlens_k", false, true, "B + 1, int32: where each sequence's keys start", DType::I32},
          {"seqused_q", false, true, "B, int32: how many queries of each sequence count", DType::I32},
          {"seqused_k", false, true, "B, int32: how many keys of each sequence count", DType::I32},
          auxParameter()};
}

std::optional<DType> inputTypeOfCall(const TensorParameter &parameter, std::optional<DType> called) {
  return parameter.name == "bias" || parameter.isGroup ? std::nullopt : parameter.dtype ? parameter.dtype : called;
}

static Result<const AttentionLayout *> layoutOf(const AttentionWords &words, std::size_t count,
                                                const TensorsOfCall &tensors) {
  const bool packed = tensors.cuQ(), named = !words.layout.empty();
  std::string_view chosen = words.layout;
  if (!named)
    chosen = count == 1 && words.heads != 0 ? (packed ? "t_flat_gqa" : "flat_gqa")
             : count == 1                   ? (packed ? "t3hd" : "bs3hd")
             : count == 2                   ? (packed ? "thd_t2hd" : "bshd_bs2hd")
                                            : (packed ? "thd_thd_thd" : "bshd_bshd_bshd");
  KILN_ASSIGN(const AttentionLayout *const layout, attentionLayout(chosen));
  for (const auto &[name, isPacked, tensor] : {std::tuple("cu_seqlens_q", layout->packedQ(), tensors.cuQ()),
                                               std::tuple("cu_seqlens_k", layout->packedK(), tensors.cuK())})
    if (const bool table = tensor; table != isPacked)
      return Status::invalid("attention: layout " + layout->name +
                                 (named    ? ""
                                  : packed ? ", which cu_seqlens_q stands for,"
                                           : ", the usual one without cu_seqlens_q,") +
                                 (table ? " takes no " : " needs ") + name,
                             table ? "leave it out, or give a layout with t" : "give it, or a layout with b and s");
  return layout;
}

Result<const AttentionLayout *> layoutOfCall(const Tensors &tensors, const OptionValues &options) {
  KILN_ASSIGN(const AttentionWords words, readOptions<AttentionWords>("attention", options));
  const TensorsOfCall named(tensors);
  KILN_ASSIGN(const Given given, givenTensors(named));
  return layoutOf(words, given.count, named);
}

Result<const AttentionLayout *> readCall(const Tensors &tensors, const OptionValues &options, AttentionArguments &a) {
  KILN_ASSIGN(const AttentionWords words, readOptions<AttentionWords>("attention", options));
  const TensorsOfCall named(tensors);
  KILN_ASSIGN(const Given given, givenTensors(named));
  KILN_ASSIGN(const AttentionLayout *const layout, layoutOf(words, given.count, named));
  std::array<Tensor, 3> list;
  for (std::size_t i = 0; i < given.count; ++i)
    list[i] = *given.tensors[i];
  KILN_ASSIGN(const AttentionViews views,
              attentionViews(*layout, std::span(list).first(given.count), words.heads, words.keyHeads));
  a.q = views.q, a.k = views.k, a.v = views.v;
  // So that products of two extents fit, also of tensors without elements, which may have any.
  for (const auto &[name, t] : {std::pair("q", &a.q), std::pair("k", &a.k), std::pair("v", &a.v)})
    for (unsigned d = 0; d < t->rank; ++d)
      if (t->shape[d] > 1 << 30)
        return Status::invalid("attention: argument '" + std::string(name) + "' has an extent of " +
                                   std::to_string(t->shape[d]) + "; the limit is 2^30",
                               "split the call");
  KILN_TRY(readOptions("attention", options, a));
  for (std::size_t i = 0; i < std::size(optionalTensors); ++i)
    if (named.optional[i])
      a.*optionalTensors[i].field = *named.optional[i];
  for (const auto &[name, table] : {std::pair("cu_seqlens_q", &a.cuQ), std::pair("cu_seqlens_k", &a.cuK)})
    if (*table && (*table)->rank != 1)
      return Status::invalid("attention: argument '" + std::string(name) + "' has rank " +
                                 std::to_string((*table)->rank) + ", it must be 1: batch + 1 offsets",
                             "reshape it");
  // A call whose tables nobody has read: no sequence is longer than all of them.
  a.maxQueries = valueOr<std::int64_t>(options, maxQueriesValue, a.cuQ ? extentsOf(a).rowsQ : 0);
  addHookTensors(tensors, options, a);
  return layout;
}

Tensors tensorsOfTypes(const TensorTypes &types) {
  Tensors out;
  for (const auto &[name, type] : types) {
    Tensor &t = out[name];
    t.dtype = type.dtype;
    t.rank = static_cast<unsigned>(std::min<std::size_t>(type.shape.size(), Tensor::maxRank));
    std::uint64_t stride = 1; // of tensors without elements it may be any number
    for (unsigned d = t.rank; d-- > 0; stride *= type.shape[d]) {
      t.shape[d] = static_cast<std::int64_t>(type.shape[d]);
      t.strides[d] = static_cast<std::int64_t>(stride);
    }
  }
  return out;
}

AttentionExtents extentsOf(const AttentionArguments &a) {
  const unsigned q = a.cuQ ? 0 : 1, k = a.cuK ? 0 : 1;
  const bool split = a.q.rank == q + 4;
  return {a.cuQ   ? a.cuQ->shape[0] - 1
          : a.cuK ? a.cuK->shape[0] - 1
                  : a.q.shape[0],
          a.q.shape[q],
          a.k.shape[k],
          split ? a.q.shape[q + 1] * a.q.shape[q + 2] : a.q.shape[q + 1],
          a.k.shape[k + 1],
          a.q.shape[a.q.rank - 1],
          a.v.shape[a.v.rank - 1]};
}

Result<TensorTypes> attentionOutputs(const TensorTypes &inputs, const OptionValues &options) {
  KILN_TRY(checkFunctions(inputs, options));
  const Tensors tensors = tensorsOfTypes(inputs);
  AttentionArguments a;
  KILN_ASSIGN(const AttentionLayout *const layout, readCall(tensors, options, a));
  const AttentionExtents e = extentsOf(a);
  TensorTypes out;
  TensorType &o = out["o"] = {outputOf(a.q.dtype), {}};
  for (const char axis : layout->output())
    o.shape.push_back(static_cast<std::uint64_t>(axis == 'b'   ? a.q.shape[0]
                                                 : axis == 'h' ? e.heads
                                                 : axis == 'd' ? e.dimV
                                                               : e.rowsQ));
  // Rows that no sequence uses are left alone.
  const bool partial = a.cuQ || a.usedQ;
  if (partial)
    o.rest = 0;
  if (isSet(options, "lse")) {
    TensorType &lse = out["lse"] = {DType::F32, {}};
    if (!a.cuQ)
      lse.shape.push_back(static_cast<std::uint64_t>(a.q.shape[0]));
    lse.shape.push_back(static_cast<std::uint64_t>(e.heads));
    lse.shape.push_back(static_cast<std::uint64_t>(e.rowsQ));
    if (partial)
      lse.rest = -INFINITY;
  }
  return out;
}

std::string sizeTextOfCall(const TensorTypes &inputs, const OptionValues &options) {
  const Tensors tensors = tensorsOfTypes(inputs);
  AttentionArguments a;
  const auto layout = readCall(tensors, options, a);
  if (!layout.ok())
    return {};
  const auto n = [](std::int64_t v) { return std::to_string(v); };
  const AttentionExtents e = extentsOf(a);
  std::string out = "B" + n(e.batch) + (a.cuQ ? " T" : " S") + n(e.rowsQ);
  out += (e.rowsK == e.rowsQ ? "" : "," + n(e.rowsK)) + " H" + n(e.heads);
  out +=
      (e.keyHeads == e.heads ? "" : "/" + n(e.keyHeads)) + " D" + n(e.dim) + (e.dim == e.dimV ? "" : "," + n(e.dimV));
  if (a.causal)
    out += " causal";
  if (a.windowLeft >= 0 || a.windowRight >= 0)
    out += " window " + n(a.windowLeft) + "," + n(a.windowRight);
  out += functionsText(options);
  return (*layout)->name == "bshd_bshd_bshd" ? out : out + " " + (*layout)->name;
}

AttentionTables tablesOf(const HostTensors &inputs) {
  AttentionTables out;
  for (const auto &[name, table] : {std::pair("cu_seqlens_q", &out.cuQ), std::pair("cu_seqlens_k", &out.cuK),
                                    std::pair("seqused_q", &out.usedQ), std::pair("seqused_k", &out.usedK)})
    if (const auto found = inputs.find(name); found != inputs.end())
      *table = found->second.values;
  return out;
}

Result<std::vector<AttentionSequence>> sequencesOf(const AttentionArguments &a, const AttentionTables &tables) {
  const AttentionExtents e = extentsOf(a);
  KILN_TRY(checkOffsets("cu_seqlens_q", tables.cuQ, e.rowsQ));
  KILN_TRY(checkOffsets("cu_seqlens_k", tables.cuK, e.rowsK));
  for (const auto &[name, given, table] : {std::tuple("cu_seqlens_q", a.cuQ.has_value(), &tables.cuQ),
                                           std::tuple("cu_seqlens_k", a.cuK.has_value(), &tables.cuK)})
    if (given && table->empty())
      return Status::invalid("attention: argument '" + std::string(name) + "' is empty",
                             "give batch + 1 offsets, the first of them 0");
  if (a.cuQ && a.cuK && tables.cuQ.size() != tables.cuK.size())
    return Status::invalid("attention: arguments 'cu_seqlens_q' and 'cu_seqlens_k' have " +
                               std::to_string(tables.cuQ.size()) + " and " + std::to_string(tables.cuK.size()) +
                               " offsets",
                           "give both one for each sequence, and where the last one ends");
  const auto batch = static_cast<std::size_t>(e.batch);
  for (const auto &[name, table, extra] :
       {std::tuple("cu_seqlens_q", &tables.cuQ, 1), std::tuple("cu_seqlens_k", &tables.cuK, 1),
        std::tuple("seqused_q", &tables.usedQ, 0), std::tuple("seqused_k", &tables.usedK, 0)})
    if (const std::size_t wanted = batch + static_cast<std::size_t>(extra); !table->empty() && table->size() != wanted)
      return Status::invalid("attention: argument '" + std::string(name) + "' has " + std::to_string(table->size()) +
                                 " entries; a batch of " + std::to_string(batch) + " needs " + std::to_string(wanted),
                             "give one for each sequence" + std::string(extra ? ", and where the last one ends" : ""));
  std::vector<AttentionSequence> out;
  // Without elements there is nothing to list, however large the batch says it is.
  for (std::size_t b = 0; b < batch && e.rowsQ > 0 && e.heads > 0 && e.dim > 0; ++b) {
    AttentionSequence s;
    s.batchQ = s.batchK = static_cast<std::int64_t>(b);
    s.queries = e.rowsQ, s.keys = e.rowsK;
    if (a.cuQ)
      s.batchQ = 0, s.startQ = integer(tables.cuQ[b]), s.queries = integer(tables.cuQ[b + 1]) - s.startQ;
    if (a.cuK)
      s.batchK = 0, s.startK = integer(tables.cuK[b]), s.keys = integer(tables.cuK[b + 1]) - s.startK;
    if (!tables.usedQ.empty()) {
      KILN_TRY(checkUsed("seqused_q", b, tables.usedQ[b], s.queries));
      s.queries = integer(tables.usedQ[b]);
    }
    if (!tables.usedK.empty()) {
      KILN_TRY(checkUsed("seqused_k", b, tables.usedK[b], s.keys));
      s.keys = integer(tables.usedK[b]);
    }
    out.push_back(s);
  }
  return out;
}

std::int64_t shiftOf(const AttentionSequence &s, const AttentionArguments &a) {
  return a.positionOffset.value_or(a.alignment == Alignment::BottomRight ? s.keys - s.queries : 0);
}

KeyRange keysSeenBy(std::int64_t i, const AttentionSequence &s, const AttentionArguments &a) {
  const std::int64_t right = a.causal ? 0 : a.windowRight, p = i + shiftOf(s, a);
  KeyRange out;
  out.first = a.windowLeft < 0 ? 0 : std::clamp<std::int64_t>(p - a.windowLeft, 0, s.keys);
  out.end = std::max(out.first, right < 0 ? s.keys : std::min(s.keys, p + right + 1));
  return out;
}

double pairsOf(const AttentionSequence &s, const AttentionArguments &a) {
  const auto queries = static_cast<double>(s.queries), keys = static_cast<double>(s.keys);
  const std::int64_t right = a.causal ? 0 : a.windowRight;
  if (a.windowLeft < 0 && right < 0)
    return queries * keys;
  if (a.causal && a.windowLeft < 0 && !a.positionOffset && a.alignment == Alignment::BottomRight)
    return s.queries <= s.keys ? queries * keys - queries * queries / 2 : keys * keys / 2;
  double pairs = 0;
  for (std::int64_t i = 0; i < s.queries; ++i) {
    const KeyRange seen = keysSeenBy(i, s, a);
    pairs += static_cast<double>(seen.end - seen.first);
  }
  return pairs;
}

Result<CallInputs> callInputs(const Arrays &inputs, const OptionValues &options) {
  CallInputs out;
  TensorTypes types;
  const TensorParameter aux = auxParameter();
  for (const auto &[name, array] : inputs) {
    types[name] = {array.type, array.shape};
    if (array.type == DType::I32 || aux.has(name))
      out.numbers[name] = toHost(array);
  }
  KILN_ASSIGN(out.arguments, argumentsOfCall(tensorsOfTypes(types), options));
  KILN_ASSIGN(out.sequences, sequencesOf(out.arguments, tablesOf(out.numbers)));
  return out;
}

Status completeCall(const Arrays &inputs, OptionValues &options) {
  KILN_ASSIGN(const CallInputs call, callInputs(inputs, options));
  KILN_ASSIGN(const CallOnHost on, functionsOnHost(call.numbers, options));
  const auto &[arguments, numbers, sequences] = call;
  const double pairs = pairsOfMasks(on, arguments, sequences);
  std::int64_t queries = 1, keys = 1;
  for (const AttentionSequence &s : sequences)
    queries = std::max(queries, s.queries), keys = std::max(keys, s.keys);
  options[std::string(pairsValue)] = pairs;
  options[std::string(maxQueriesValue)] = queries;
  // Without queries no sequences are listed, and keys have gradients.
  options[std::string(maxKeysValue)] = sequences.empty() ? std::max<std::int64_t>(1, extentsOf(arguments).rowsK) : keys;
  return {};
}

} // namespace kiln::kernels
