#include "kernels/attention/AttentionBackwardOperation.h"

#include "kernels/attention/AttentionBackwardTiling.h"
#include "kernels/attention/AttentionBiasGradient.h"
#include "kernels/attention/AttentionChecks.h"
#include "kernels/attention/AttentionHooks.h"
#include "kernels/attention/AttentionShape.h"
#include "kernels/attention/SumOrder.h"
#include "kernels/support/CallWords.h"

namespace kiln::kernels {
namespace {

using Launch = AttentionBackwardLaunch;

std::int64_t keysOf(const AttentionBackwardArguments &a) {
  return a.of.cuK ? std::min(a.maxKeys, a.of.k.shape[0]) : a.of.k.shape[1];
}

/// [batch, head, row] in the workspace.
struct RowNumbers {
  std::int64_t batch, heads, rows;
  /// Rows of a head, to whole 16 bytes.
  std::int64_t padded() const { return ceilDiv(rows, 4) * 4; }
  std::size_t bytes() const { return static_cast<std::size_t>(batch * heads * padded()) * sizeof(float); }
  Tensor at(DeviceAddress address, DType type = DType::F32) const {
    Tensor t;
    t.address = address, t.dtype = type;
    t.rank = 3;
    t.shape = {batch, heads, rows};
    t.strides = {heads * padded(), padded(), 1};
    return t;
  }
  /// `columns` numbers of each row, side by side.
  Tensor rowsAt(DeviceAddress address, std::int64_t columns) const {
    Tensor t = at(address);
    t.rank = 4;
    t.shape[3] = columns, t.strides[3] = 1;
    for (unsigned d = 0; d < 3; ++d)
      t.strides[d] *= columns;
    return t;
  }
};

/// Whether a head's part of dbias is not dbias itself, and which rows or keys it has then.
bool hasBiasParts(const AttentionBackwardArguments &a) {
  const Tensor &bias = *a.of.bias;
  const bool ofRows = bias.shape[2] != 1, ofKeys = bias.shape[3] != 1;
  const bool shared = bias.shape[0] != batchOf(a.of) || bias.shape[1] != Heads(a.of.q, a.of.cuQ.has_value()).heads;
  return ofRows == ofKeys ? !ofRows : shared;
}
RowNumbers biasPartsOf(const AttentionBackwardArguments &a) {
  const Tensor &bias = *a.of.bias;
  const std::int64_t rows = bias.shape[3] != 1 ? bias.shape[3] : bias.shape[2] != 1 ? bias.shape[2] : queriesOf(a.of);
  return {batchOf(a.of), Heads(a.of.q, a.of.cuQ.has_value()).heads, rows};
}

/// An output apart from everything that the call reads.
Status checkGradient(const Device &device, const AttentionBackwardArguments &a, const char *name, const Tensor &t) {
  auto out = checkTensor(name, t).on(device).writable();
  for (const auto &[other, input] : {std::pair("q", &a.of.q), std::pair("k", &a.of.k), std::pair("v", &a.of.v),
                                     std::pair("o", &a.of.o), std::pair("do", &a.dO)})
    out.apartFrom(other, *input);
  for (const auto &[other, input] :
       {std::pair("lse", &a.of.lse), std::pair("dlse", &a.dlse), std::pair("sink", &a.of.sink),
        std::pair("alibi", &a.of.alibi), std::pair("bias", &a.of.bias), std::pair("cu_seqlens_q", &a.of.cuQ),
        std::pair("cu_seqlens_k", &a.of.cuK), std::pair("seqused_q", &a.of.usedQ), std::pair("seqused_k", &a.of.usedK)})
    if (*input)
      out.apartFrom(other, **input);
  KILN_TRY(out.status());
  return checkApart(name, t, a.of);
}

Status checkTilings(std::string_view operation, const AttentionBackwardArguments &a) {
  Status problem;
  AttentionBackwardArguments::tilings(a, [&](const CallOption &option, int value) {
    if (problem.ok())
      problem = checkTile(operation, option, value);
  });
  return problem;
}

} // namespace

Status AttentionBackwardOperation::check(const AttentionBackwardArguments &a) const {
  const Device &device = jit().device();
  const AttentionArguments &of = a.of;
  const auto refuse = [&](const char *what, const char *remedy) {
    return Status::invalid(std::string(name()) + ": " + what, remedy);
  };
  KILN_TRY(checkTensor("q", of.q).dtype({DType::F16, DType::BF16}).status());
  KILN_TRY(checkAttention(device, name(), of, /*isWritten=*/false));
  if (!of.lse)
    return refuse("argument 'lse' is missing", "have attention write it, and give it here");
  if (of.tiling.given())
    return refuse("the tiling of the forward call is given", "give the tilings ofKeys and ofQueries, or none");
  KILN_TRY(checkTensor("do", a.dO).on(device).dtypeOf("o", of.o).shapeOf("o", of.o).stride(of.o.rank - 1, 1).status());
  if (a.dlse)
    KILN_TRY(checkTensor("dlse", *a.dlse).on(device).dtype({DType::F32}).shapeOf("lse", *of.lse).status());
  if (a.dsink && !of.sink)
    return refuse("argument 'dsink' is given, but no sink is", "leave it out, or give the sink of the forward call");
  const std::tuple<const char *, const Tensor *, const char *, const Tensor *> gradients[] = {
      {"dq", &a.dq, "q", &of.q}, {"dk", &a.dk, "k", &of.k}, {"dv", &a.dv, "v", &of.v}};
  for (unsigned i = 0; i < std::size(gradients); ++i) {
    const auto &[name, t, like, likeTensor] = gradients[i];
    KILN_TRY(checkTensor(name, *t)
                 .on(device)
                 .dtypeOf(like, *likeTensor)
                 .shapeOf(like, *likeTensor)
                 .stride(likeTensor->rank - 1, 1)
                 .status());
    KILN_TRY(checkGradient(device, a, name, *t));
    for (unsigned j = 0; j < i; ++j)
      KILN_TRY(checkTensor(name, *t).apartFrom(std::get<0>(gradients[j]), *std::get<1>(gradients[j])).status());
  }
  if (a.dsink) {
    KILN_TRY(checkTensor("dsink", *a.dsink).on(device).dtype({DType::F32}).rank(1).shapeOf("sink", *of.sink).status());
    KILN_TRY(checkGradient(device, a, "dsink", *a.dsink));
    for (const auto &[name, t, like, likeTensor] : gradients)
      KILN_TRY(checkTensor("dsink", *a.dsink).apartFrom(name, *t).status());
  }
  if (a.dbias && !of.bias)
    return refuse("argument 'dbias' is given, but no bias is", "leave it out, or give the bias of the forward call");
  if (a.dbias && of.blockMask)
    return refuse(
        "argument 'dbias' is given with a block mask: a bias's gradient is of all pairs, not of listed blocks",
        "leave one of the two out; a mask function besides dbias hides the same pairs");
  if (a.dbias) {
    KILN_TRY(checkTensor("dbias", *a.dbias).on(device).dtypeOf("bias", *of.bias).shapeOf("bias", *of.bias).status());
    KILN_TRY(checkGradient(device, a, "dbias", *a.dbias));
    for (const auto &[name, t, like, likeTensor] : gradients)
      KILN_TRY(checkTensor("dbias", *a.dbias).apartFrom(name, *t).status());
    if (a.dsink)
      KILN_TRY(checkTensor("dbias", *a.dbias).apartFrom("dsink", *a.dsink).status());
  }
  if (of.cuK && (a.maxKeys < 0 || (a.maxKeys == 0 && of.k.shape[0] > 0 && batchOf(of) > 0)))
    return Status::invalid(std::string(name()) + ": max_keys = " + std::to_string(a.maxKeys),
                           "give the longest sequence's number of keys, or more");
  if (of.cuK && of.bias)
    KILN_TRY(checkBiasExtent(name(), *of.bias, 3, "max_keys", a.maxKeys, /*orMore=*/true));
  KILN_TRY(checkBackwardHooks(device, name(), of, keysOf(a)));
  KILN_TRY(checkTilings(name(), a));
  for (const auto &[launch, tiling] : {std::pair(Launch::Keys, &a.ofKeys), std::pair(Launch::Queries, &a.ofQueries)}) {
    if (!tiling->given())
      continue;
    KILN_ASSIGN(const AttentionBackwardConfig c, configOf(launch, a));
    KILN_TRY(checkTiles(launch, c));
  }
  return {};
}

Status AttentionBackwardOperation::checkTiles(Launch launch, const AttentionBackwardConfig &c) const {
  KILN_TRY(checkTilesOfBlocks(name(), c.hooks, c.blockM, c.blockN));
  const auto &[rows, step] = launch == Launch::Keys ? std::pair(c.blockM, "block_m") : std::pair(c.blockN, "block_n");
  return checkStages(jit(), name(), c.stages, std::int64_t(2) * rows * (c.dim + c.dimV),
                     std::string(words<Launch>[static_cast<std::size_t>(launch)]) + "_" + step + " = " +
                         std::to_string(rows) + " rows with " + std::to_string(c.dim) + " + " + std::to_string(c.dimV) +
                         " columns");
}

Result<AttentionBackwardConfig> AttentionBackwardOperation::configOf(Launch launch,
                                                                     const AttentionBackwardArguments &a) const {
  const AttentionArguments &of = a.of;
  AttentionBackwardConfig c;
  describeCall(of, c);
  c.sink = a.dsink.has_value();
  c.dlse = a.dlse.has_value();
  c.biasParts = a.dbias && hasBiasParts(a);
  c.hooks = hooksOf(jit().device(), of);
  KILN_ASSIGN(const Targets targets, targetsOf(jit()));
  const bool rowsAligned = isAligned(of.q) && isAligned(a.dO), keysAligned = isAligned(of.k) && isAligned(of.v);
  c.ordered = a.deterministic;
  c.onePass = takesOnePass(c, rowsAligned, targets.code, targets.device);
  c.vectorSums = targets.code.has(Capability::VectorAtomics);
  c = ofLaunch(launch, c);
  const bool aligned = launch == Launch::Keys      ? rowsAligned
                       : launch == Launch::Queries ? keysAligned
                                                   : rowsAligned && keysAligned;
  const auto with = [&](const Tiling &tiling) {
    AttentionBackwardConfig out = c;
    chooseBackwardTiles(launch, out, aligned, targets.code, targets.device);
    for (const auto &[field, value] : {std::pair(&out.blockM, tiling.blockM), std::pair(&out.blockN, tiling.blockN),
                                       std::pair(&out.warps, tiling.warps), std::pair(&out.stages, tiling.stages)})
      if (value)
        *field = value;
    return out;
  };
  if (launch != Launch::Keys && launch != Launch::Queries)
    return with({});
  if (const Tiling &given = launch == Launch::Keys ? a.ofKeys : a.ofQueries; given.given())
    return with(given);
  const auto number = static_cast<std::size_t>(launch);
  return with(tuned[number].get(
      jit(), {.operation = name(), .part = words<Launch>[number], .types = {kernelElement(of.q.dtype)}}, c,
      {{"queries", queriesOf(of)},
       {"keys", keysOf(a)},
       {"heads", batchOf(of) * Heads(of.q, c.packedQ).heads},
       {"key_heads", batchOf(of) * keyHeadsOf(of)},
       {"left", of.windowLeft},
       {"right", rightOf(of)},
       {"aligned", aligned}},
      [&](const Tiling &tiling) { return checkTiles(launch, with(tiling)).ok(); }));
}

Result<JitKernel *> AttentionBackwardOperation::kernelOf(Launch launch, DType element,
                                                         const AttentionBackwardConfig &c) const {
  return variants[static_cast<std::size_t>(launch)].get(jit(), {element}, c,
                                                        [&] { return attentionBackward(launch, element, c); });
}

Status AttentionBackwardOperation::plan(const AttentionBackwardArguments &a, Plan &plan) const {
  const AttentionArguments &of = a.of;
  const Heads q(of.q, of.cuQ.has_value());
  const std::int64_t batch = batchOf(of), keyHeads = keyHeadsOf(of), queries = queriesOf(of), keys = keysOf(a);
  const bool hasRows = batch > 0 && q.heads > 0 && queries > 0, hasKeys = batch > 0 && keyHeads > 0 && keys > 0;
  const DType element = kernelElement(of.q.dtype);
  KILN_ASSIGN(const AttentionBackwardConfig ofRows, configOf(Launch::Rows, a));
  const bool onePass = hasRows && ofRows.onePass, isOrdered = onePass && ofRows.ordered;
  const RowNumbers numbers{q.batch, q.heads, q.rows},
      groups{q.batch, q.heads, QuerySums::groups(q.rows, batch, of.cuQ.has_value())},
      counts{batch, q.heads, SumOrder::countsOfHead(queries)},
      partsOfSinks{batch, q.heads, hasRows ? ceilDiv(queries, ofRows.blockM) : 0};
  const std::int64_t groupNumbers = std::int64_t(QuerySums::groupRows) * ofRows.dim;
  const std::size_t bytes = hasRows ? numbers.bytes() : 0;
  KILN_ASSIGN(const auto parts,
              plan.workspace({{"lse2", bytes},
                              {"delta", bytes},
                              {"dsinks", hasRows && a.dsink ? partsOfSinks.bytes() : 0},
                              {"dbiases", a.dbias && hasBiasParts(a) ? biasPartsOf(a).bytes() : 0},
                              {"dq_sums", onePass ? groups.bytes() * static_cast<std::size_t>(groupNumbers) : 0},
                              {"dq_counts", isOrdered ? counts.bytes() : 0},
                              {"dq_ticket", isOrdered ? sizeof(std::int32_t) : 0}}));
  const Tensor lse2 = numbers.at(parts[0]), delta = numbers.at(parts[1]), dsinks = partsOfSinks.at(parts[2]);
  Tensor dqCounts, dqTicket;
  if (isOrdered) {
    dqCounts = counts.at(parts[5], DType::I32);
    dqTicket = RowNumbers{1, 1, 1}.at(parts[6], DType::I32);
    dqTicket.rank = 1;
  }
  const Tensor dqSums = onePass ? groups.rowsAt(parts[4], groupNumbers) : Tensor();
  const auto i32 = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
  if (hasRows) {
    KILN_ASSIGN(JitKernel * kernel, kernelOf(Launch::Rows, element, ofRows));
    KILN_ASSIGN(const Dim3 grid, gridOf(name(), ceilDiv(queries, ofRows.blockM) * q.heads * batch));
    KILN_TRY(plan.launch(*kernel, grid, named<"o">(byGroup(of.o, of)), named<"do">(byGroup(a.dO, of)),
                         named<"lse">(inFront(of.lse, 3, 1)), named<"dlse">(inFront(a.dlse, 3, 1)),
                         named<"sink">(a.dsink ? *of.sink : Tensor()), named<"lse2">(lse2), named<"delta">(delta),
                         named<"dsinks">(a.dsink ? dsinks : Tensor()), named<"dq_sums">(dqSums),
                         named<"dq_counts">(dqCounts), named<"dq_ticket">(dqTicket), named<"cu_q">(orNone(of.cuQ)),
                         named<"used_q">(orNone(of.usedQ)), named<"queries">(i32(queries))));
  }
  // Both walk over pairs; `own`: what only one of them has.
  const auto launchPairs = [&](Launch launch, const AttentionBackwardConfig &c, std::int64_t programs,
                               const auto &...own) -> Status {
    KILN_ASSIGN(JitKernel * kernel, kernelOf(launch, element, c));
    KILN_ASSIGN(const Dim3 grid, gridOf(name(), programs));
    const auto launchWith = [&](const auto &...options) {
      return plan.launch(*kernel, grid, named<"q">(byGroup(of.q, of)), named<"k">(byKeyHead(of.k, of)),
                         named<"v">(byKeyHead(of.v, of)), named<"do">(byGroup(a.dO, of)), named<"lse2">(lse2),
                         named<"delta">(delta), named<"alibi">(inFront(of.alibi, 2, batch)),
                         named<"cu_q">(orNone(of.cuQ)), named<"cu_k">(orNone(of.cuK)),
                         named<"used_q">(orNone(of.usedQ)), named<"used_k">(orNone(of.usedK)),
                         named<"window_left">(i32(of.windowLeft)), named<"window_right">(i32(rightOf(of))),
                         named<"position_offset">(i32(of.positionOffset.value_or(0))), named<"scale">(scaleOf(of)),
                         named<"cap">(of.softcap), own..., options...);
    };
    const Tensor bias = ofEveryHead(of.bias, batch, q.heads);
    return withOptionArguments(of, of.bias && launch == Launch::Keys ? bias.transposed(2, 3) : bias,
                               launch == Launch::Keys, launchWith);
  };
  if (hasKeys) {
    KILN_ASSIGN(const AttentionBackwardConfig c, configOf(Launch::Keys, a));
    KILN_TRY(launchPairs(Launch::Keys, c, ceilDiv(keys, c.blockN) * keyHeads * batch, named<"dk">(byKeyHead(a.dk, of)),
                         named<"dv">(byKeyHead(a.dv, of)), named<"dq_sums">(dqSums), named<"dq_counts">(dqCounts),
                         named<"dq_ticket">(dqTicket), named<"keys">(i32(keys))));
  }
  if (onePass) {
    KILN_ASSIGN(const AttentionBackwardConfig c, configOf(Launch::Sums, a));
    KILN_ASSIGN(JitKernel * kernel, kernelOf(Launch::Sums, element, c));
    KILN_ASSIGN(const Dim3 grid, gridOf(name(), ceilDiv(queries, c.blockM) * q.heads * batch));
    KILN_TRY(plan.launch(*kernel, grid, named<"dq_sums">(dqSums), named<"dq">(byGroup(a.dq, of)),
                         named<"cu_q">(orNone(of.cuQ)), named<"used_q">(orNone(of.usedQ)),
                         named<"queries">(i32(queries)), named<"scale">(scaleOf(of))));
  } else if (hasRows) {
    KILN_ASSIGN(const AttentionBackwardConfig c, configOf(Launch::Queries, a));
    KILN_TRY(launchPairs(Launch::Queries, c, ceilDiv(queries, c.blockM) * q.heads * batch,
                         named<"dq">(byGroup(a.dq, of)), named<"queries">(i32(queries))));
  }
  if (a.dbias)
    KILN_TRY(planBias(a, lse2, delta, hasBiasParts(a) ? biasPartsOf(a).at(parts[3]) : Tensor(), plan));
  if (!a.dsink || q.heads == 0)
    return {};
  KILN_ASSIGN(const AttentionBackwardConfig c, configOf(Launch::Sink, a));
  KILN_ASSIGN(JitKernel * kernel, kernelOf(Launch::Sink, element, c));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), q.heads));
  return plan.launch(*kernel, grid, named<"dsinks">(dsinks), named<"dsink">(*a.dsink));
}

Status AttentionBackwardOperation::planBias(const AttentionBackwardArguments &a, const Tensor &lse2,
                                            const Tensor &delta, const Tensor &parts, Plan &plan) const {
  const AttentionArguments &of = a.of;
  const std::int64_t batch = batchOf(of), heads = Heads(of.q, of.cuQ.has_value()).heads;
  const auto i32 = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
  const DType element = kernelElement(of.q.dtype);
  KILN_ASSIGN(const AttentionBackwardConfig c, configOf(Launch::Bias, a));
  // What is summed besides: of a bias that is the same for all of them, sequences and heads.
  const std::int32_t sequences = i32(of.bias->shape[0] == 1 ? batch : 1),
                     shared = i32(of.bias->shape[1] == 1 ? heads : 1);
  Tensor out = *a.dbias;
  if (c.biasParts) {
    out = parts;
    const std::int64_t rows = out.shape[2], stride = out.strides[2];
    out.rank = 4;
    out.shape[2] = hasRowsOfBias(c) ? rows : 1, out.strides[2] = stride;
    out.shape[3] = hasRowsOfBias(c) ? 1 : rows, out.strides[3] = stride;
  }
  const std::int64_t programs = out.shape[0] * out.shape[1] * ceilDiv(out.shape[2], hasRowsOfBias(c) ? c.blockM : 1) *
                                ceilDiv(out.shape[3], hasRowsOfBias(c) && !c.biasOfKeys ? 1 : c.blockN);
  if (programs > 0) {
    KILN_ASSIGN(JitKernel * kernel, kernelOf(Launch::Bias, element, c));
    KILN_ASSIGN(const Dim3 grid, gridOf(name(), programs));
    const auto launch = [&](const auto &...options) {
      return plan.launch(
          *kernel, grid, named<"q">(byGroup(of.q, of)), named<"k">(byKeyHead(of.k, of)),
          named<"v">(byKeyHead(of.v, of)), named<"do">(byGroup(a.dO, of)), named<"lse2">(lse2), named<"delta">(delta),
          named<"dbias">(out), named<"alibi">(inFront(of.alibi, 2, batch)), named<"cu_q">(orNone(of.cuQ)),
          named<"cu_k">(orNone(of.cuK)), named<"used_q">(orNone(of.usedQ)), named<"used_k">(orNone(of.usedK)),
          named<"sequences">(sequences), named<"heads_of_bias">(shared), named<"window_left">(i32(of.windowLeft)),
          named<"window_right">(i32(rightOf(of))), named<"position_offset">(i32(of.positionOffset.value_or(0))),
          named<"scale">(scaleOf(of)), named<"cap">(of.softcap), options...);
    };
    KILN_TRY(withOptionArguments(of, ofEveryHead(of.bias, batch, heads), /*ofKeys=*/false, launch));
  }
  if (!c.biasParts)
    return {};
  // [batch, head, row or key or 1].
  Tensor sums = *a.dbias;
  sums.rank = 3;
  if (c.biasOfKeys)
    sums.shape[2] = sums.shape[3], sums.strides[2] = sums.strides[3];
  KILN_ASSIGN(const AttentionBackwardConfig ofSums, configOf(Launch::BiasSums, a));
  const std::int64_t blocks = sums.shape[0] * sums.shape[1] * ceilDiv(sums.shape[2], ofSums.blockM);
  if (blocks == 0)
    return {};
  KILN_ASSIGN(JitKernel * kernel, kernelOf(Launch::BiasSums, element, ofSums));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), blocks));
  return plan.launch(*kernel, grid, named<"parts">(parts), named<"dbias">(sums), named<"sequences">(sequences),
                     named<"heads_of_bias">(shared));
}

std::optional<std::string> AttentionBackwardOperation::callText(const AttentionBackwardArguments &a) const {
  const AttentionArguments &of = a.of;
  if (of.functions.given() || of.blockMask || !of.aux.empty() || of.q.rank != (of.cuQ ? 3 : 4))
    return std::nullopt;
  const CallTensor tensors[] = {{"q", of.q},
                                {"k", of.k},
                                {"v", of.v},
                                {"o", of.o},
                                {"lse", of.lse},
                                {"do", a.dO},
                                {"dlse", a.dlse},
                                {"sink", of.sink},
                                {"alibi", of.alibi},
                                {"bias", of.bias},
                                {"cu_seqlens_q", of.cuQ},
                                {"cu_seqlens_k", of.cuK},
                                {"seqused_q", of.usedQ},
                                {"seqused_k", of.usedK},
                                {"dsink", a.dsink},
                                {"dbias", a.dbias}};
  return callWords(name(), tensors, optionValuesOf(a));
}

} // namespace kiln::kernels
