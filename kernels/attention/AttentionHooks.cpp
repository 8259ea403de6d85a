#include "kernels/attention/AttentionHooks.h"

namespace kiln::kernels {
namespace {

/// Lists of `own` blocks, in which blocks of the other side stand.
Status checkLists(const Device &device, std::string_view operation, const std::string &name,
                  const std::optional<BlockLists> &lists, const AttentionArguments &a, std::int64_t own) {
  if (!lists)
    return {};
  const std::int64_t batch = batchOf(a), heads = Heads(a.q, a.cuQ.has_value()).heads;
  const std::string counts = name + ".counts", blocks = name + ".blocks";
  for (const auto &[label, t, rank] :
       {std::tuple(&counts, &lists->counts, 3u), std::tuple(&blocks, &lists->blocks, 4u)}) {
    KILN_TRY(checkTensor(*label, *t).on(device).dtype({DType::I32}).rank(rank).status());
    if (t->shape[0] != 1)
      KILN_TRY(checkTensor(*label, *t).extent(0, batch, "the batch, or 1").status());
    if (t->shape[1] != 1)
      KILN_TRY(checkTensor(*label, *t).extent(1, heads, "the heads of q, or 1").status());
    if (t->shape[2] < own)
      return Status::invalid(std::string(operation) + ": argument '" + *label + "' has lists of " +
                                 std::to_string(t->shape[2]) + " blocks, and the longest sequence has " +
                                 std::to_string(own),
                             "give each block a list; it may be empty");
  }
  return checkTensor(blocks, lists->blocks).stride(3, 1).status();
}

std::int64_t blocksOf(std::int64_t length, std::int64_t size) {
  return (length + size - 1) / size;
}

} // namespace

Status checkApart(std::string_view name, const Tensor &output, const AttentionArguments &a) {
  auto out = checkTensor(name, output);
  for (std::size_t i = 0; i < a.aux.size(); ++i)
    KILN_TRY(out.apartFrom(i < maxAux ? auxNames[i] : "aux", a.aux[i]).status());
  if (a.blockMask)
    for (const auto &[label, lists] :
         {std::pair("block_mask.partial", &a.blockMask->partial), std::pair("block_mask.full", &a.blockMask->full),
          std::pair("block_mask.partial_of_keys", &a.blockMask->partialOfKeys),
          std::pair("block_mask.full_of_keys", &a.blockMask->fullOfKeys)})
      if (*lists)
        KILN_TRY(out.apartFrom(label, (*lists)->counts).apartFrom(label, (*lists)->blocks).status());
  return {};
}

Status checkHooks(const Device &device, std::string_view operation, const AttentionArguments &a, bool isWritten) {
  const auto refuse = [&](const std::string &what, std::string remedy) {
    return Status::invalid(std::string(operation) + ": " + what, std::move(remedy));
  };
  if (a.functions.hasScore() && a.softcap > 0)
    return refuse("softcap and a score function are given", "cap the scores in the function: x = cap * tanh(x / cap)");
  if (a.functions.given() && a.functions.definition().scoreGradient && !a.functions.hasScore())
    return refuse("a score's gradient is given without a score function", "give both, or none");
  if (!a.aux.empty() && !a.functions.given())
    return refuse("aux has " + std::to_string(a.aux.size()) + " tensors, and no function reads them",
                  "give functions, or leave aux out");
  if (a.aux.size() > maxAux)
    return refuse("aux has " + std::to_string(a.aux.size()) + " tensors: at most " + std::to_string(maxAux),
                  "put numbers of one type side by side into one tensor");
  for (std::size_t i = 0; i < a.aux.size(); ++i)
    KILN_TRY(checkTensor(auxNames[i], a.aux[i])
                 .on(device)
                 .dtype({DType::F32, DType::F16, DType::BF16, DType::I8, DType::U8, DType::I16, DType::U16, DType::I32,
                         DType::U32, DType::I64, DType::U64, DType::F64})
                 .rankBetween(1, maxAuxRank)
                 .status());
  if (a.blockMask) {
    const BlockMask &m = *a.blockMask;
    KILN_TRY(checkBlockSize(operation, {m.rows, m.keys}));
    if (!m.partial && !m.full)
      return refuse("a block mask without lists", "give the partial blocks, the full ones, or both");
    const std::int64_t own = blocksOf(queriesOf(a), m.rows);
    KILN_TRY(checkLists(device, operation, "block_mask.partial", m.partial, a, own));
    KILN_TRY(checkLists(device, operation, "block_mask.full", m.full, a, own));
  }
  if (isWritten) {
    KILN_TRY(checkApart("o", a.o, a));
    if (a.lse)
      KILN_TRY(checkApart("lse", *a.lse, a));
  }
  return {};
}

Status checkBackwardHooks(const Device &device, std::string_view operation, const AttentionArguments &a,
                          std::int64_t keys) {
  if (a.functions.hasScore() && !a.functions.hasGradient())
    return Status::invalid(std::string(operation) + ": the score function has no derivative",
                           "give scoreGradient, or write the function for any number, [](const auto &x, ..), which is "
                           "differentiated");
  if (!a.blockMask)
    return {};
  const BlockMask &m = *a.blockMask;
  for (const auto &[name, rows, ofKeys] :
       {std::tuple("partial", &m.partial, &m.partialOfKeys), std::tuple("full", &m.full, &m.fullOfKeys)}) {
    const std::string list = std::string("block_mask.") + name + "_of_keys";
    if (rows->has_value() && !ofKeys->has_value())
      return Status::invalid(std::string(operation) + ": " + list +
                                 " is missing: the blocks of rows of each block of "
                                 "keys, of which dk and dv are made",
                             std::string("give the transposed lists of block_mask.") + name +
                                 " (BlockMaskOnHost makes them)");
    if (!rows->has_value() && ofKeys->has_value())
      return Status::invalid(std::string(operation) + ": " + list + " is given without block_mask." + name,
                             "give both, or none");
    KILN_TRY(checkLists(device, operation, list, *ofKeys, a, blocksOf(keys, m.keys)));
  }
  return {};
}

Status checkTilesOfBlocks(std::string_view operation, const AttentionHooks &hooks, int rows, int keys) {
  if (!hooks.hasLists())
    return {};
  for (const auto &[name, tile, block] :
       {std::tuple("rows", rows, hooks.blockRows), std::tuple("keys", keys, hooks.blockKeys)})
    if (block % tile)
      return Status::invalid(std::string(operation) + ": tiles of " + std::to_string(tile) + " " + name +
                                 " do not divide blocks of " + std::to_string(block),
                             "leave the tiling out, or give blocks of a multiple");
  return {};
}

AttentionHooks hooksOf(const Device &device, const AttentionArguments &a) {
  AttentionHooks out;
  out.functions = a.functions;
  for (std::size_t i = 0; i < a.aux.size(); ++i)
    out.aux[i] = {kernelElement(a.aux[i].dtype), static_cast<std::uint8_t>(a.aux[i].rank)};
  if (a.blockMask) {
    out.blockRows = static_cast<int>(a.blockMask->rows), out.blockKeys = static_cast<int>(a.blockMask->keys);
    out.hasPartialBlocks = a.blockMask->partial.has_value(), out.hasFullBlocks = a.blockMask->full.has_value();
  }
  if (a.functions.given() || a.blockMask)
    out.isChecked = a.checked.value_or(device.info().kind == DeviceKind::Emulator);
  return out;
}

} // namespace kiln::kernels
