#include "kernels/attention/CallFunctions.h"

#include "support/ParseNumber.h"
#include "support/Text.h"

#include <cstring>

namespace kiln::kernels {
namespace {

/// "128x64" as a size of blocks.
Result<BlockSize> blockSizeOf(const std::string &text) {
  const std::vector<std::string_view> pieces = split(text, 'x');
  std::optional<std::int64_t> numbers[2];
  for (std::size_t i = 0; i < 2 && pieces.size() == 2; ++i)
    numbers[i] = parseNumber<std::int64_t>(pieces[i]);
  if (!numbers[0] || !numbers[1])
    return Status::invalid("attention: block_mask = " + text + ": expected ROWSxKEYS", "give 128x128");
  const BlockSize out{*numbers[0], *numbers[1]};
  KILN_TRY(checkBlockSize("attention", out));
  return out;
}

/// The lists of a BlockMask, in the order of `lists` below.
struct List {
  const char *counts, *blocks;
  std::optional<BlockLists> BlockMask::*member;
  BlockMaskOnHost::Kind kind;
  bool ofKeys;
};
constexpr List lists[] = {
    {"block_mask.partial_counts", "block_mask.partial_blocks", &BlockMask::partial, BlockMaskOnHost::Kind::Partial,
     false},
    {"block_mask.full_counts", "block_mask.full_blocks", &BlockMask::full, BlockMaskOnHost::Kind::Full, false},
    {"block_mask.partial_of_keys_counts", "block_mask.partial_of_keys_blocks", &BlockMask::partialOfKeys,
     BlockMaskOnHost::Kind::Partial, true},
    {"block_mask.full_of_keys_counts", "block_mask.full_of_keys_blocks", &BlockMask::fullOfKeys,
     BlockMaskOnHost::Kind::Full, true}};

/// Which keys query i of a sequence sees.
void seenBy(std::int64_t i, std::int64_t head, const AttentionSequence &s, std::int64_t number, const CallOnHost &on,
            const AttentionArguments &a, std::span<std::uint8_t> seen) {
  std::fill(seen.begin(), seen.end(), std::uint8_t(0));
  if (i >= s.queries)
    return;
  const KeyRange keys = keysSeenBy(i, s, a);
  if (!on.functions.hasMask()) {
    for (std::int64_t j = keys.first; j < keys.end; ++j)
      seen[static_cast<std::size_t>(j)] = 1;
    return;
  }
  for (std::int64_t first = keys.first; first < keys.end; first += host::mostLanes) {
    auto lanes =
        host::Wholes::several(static_cast<unsigned>(std::min<std::int64_t>(host::mostLanes, keys.end - first)));
    for (unsigned lane = 0; lane < lanes.size(); ++lane)
      lanes[lane] = static_cast<std::int32_t>(first + lane);
    const host::Masks mask = on.functions.mask({static_cast<std::int32_t>(number), static_cast<std::int32_t>(head),
                                                host::Wholes(static_cast<std::int32_t>(i)), lanes, on.aux});
    for (unsigned lane = 0; lane < lanes.size(); ++lane)
      seen[static_cast<std::size_t>(first + lane)] = mask.at(lane);
  }
}

Array arrayOfWhole(const std::vector<std::int32_t> &values, const Shape &shape) {
  Array out{DType::I32, shape, std::vector<std::byte>(values.size() * sizeof(std::int32_t))};
  if (!values.empty())
    std::memcpy(out.data.data(), values.data(), out.data.size());
  return out;
}

} // namespace

const TensorParameter &auxParameter() {
  static const TensorParameter group = [] {
    TensorParameter out{"aux", false, true, "what score and mask read as NAME[index, ..], 1 to 4 dimensions"};
    out.isGroup = true;
    return out;
  }();
  return group;
}

Status FunctionSettings::apply(AttentionHooks &hooks) const {
  AttentionFunctionsText text{score, mask, {}};
  for (const std::string_view piece : aux.empty() ? std::vector<std::string_view>() : split(aux, ',')) {
    const std::vector<std::string_view> parts = split(piece, ':');
    const std::optional<int> rank = parts.size() == 3 ? parseNumber<int>(parts[2]) : std::nullopt;
    if (!rank)
      return Status::invalid("aux=" + aux + ": expected NAME:DTYPE:RANK,..", "such as documents:i32:2");
    KILN_ASSIGN(const DType type, parseDType(std::string(parts[1])));
    text.aux.push_back({std::string(parts[0]), type, *rank});
  }
  std::ranges::sort(text.aux, {}, &AttentionFunctionsText::Aux::name);
  if (!score.empty() || !mask.empty()) {
    KILN_ASSIGN(hooks.functions, parseAttentionFunctions(text));
    for (std::size_t i = 0; i < text.aux.size(); ++i)
      hooks.aux[i] = {kernelElement(text.aux[i].element), static_cast<std::uint8_t>(text.aux[i].rank)};
  }
  if (!blockMask.empty()) {
    KILN_ASSIGN(const BlockSize size, blockSizeOf(blockMask));
    hooks.blockRows = static_cast<int>(size.rows), hooks.blockKeys = static_cast<int>(size.keys);
    hooks.hasPartialBlocks = hooks.hasFullBlocks = true;
  }
  return {};
}

Status checkFunctions(const TensorTypes &inputs, const OptionValues &options) {
  KILN_ASSIGN(const AttentionFunctionsText text, functionTextOf(inputs, options));
  KILN_TRY(FunctionsOnHost::parse(text).status());
  if (!text.aux.empty() && text.score.empty() && text.mask.empty())
    return Status::invalid("attention: aux tensor '" + text.aux[0].name + "' is given, and no function reads it",
                           "give score or mask, or leave it out");
  KILN_ASSIGN(const FunctionWords words, readOptions<FunctionWords>("attention", options));
  return words.blockMask.empty() ? Status() : blockSizeOf(words.blockMask).status();
}

Result<AttentionFunctions> KnownFunctions::of(const Tensors &tensors, const OptionValues &options) {
  if (!options.contains("score") && !options.contains("mask"))
    return AttentionFunctions();
  KILN_ASSIGN(const AttentionFunctionsText text, functionTextOf(tensors, options));
  if (text.score.empty() && text.mask.empty())
    return AttentionFunctions();
  const std::lock_guard lock(mutex);
  for (const auto &[made, functions] : known)
    if (made == text)
      return functions;
  KILN_ASSIGN(const AttentionFunctions functions, parseAttentionFunctions(text));
  known.emplace_back(text, functions);
  return functions;
}

void addHookTensors(const Tensors &tensors, const OptionValues &options, AttentionArguments &a) {
  const TensorParameter &aux = auxParameter();
  for (const auto &[name, t] : tensors)
    if (aux.has(name))
      a.aux.push_back(t);
  if (!tensors.contains(lists[0].counts))
    return;
  const auto words = readOptions<FunctionWords>("attention", options);
  if (!words.ok() || words->blockMask.empty())
    return;
  if (const auto size = blockSizeOf(words->blockMask); size.ok()) {
    BlockMask &mask = a.blockMask.emplace();
    mask.rows = size->rows, mask.keys = size->keys;
    for (const List &list : lists)
      mask.*list.member = BlockLists{tensors.find(list.counts)->second, tensors.find(list.blocks)->second};
  }
}

Result<CallOnHost> functionsOnHost(const HostTensors &inputs, const OptionValues &options) {
  CallOnHost out;
  KILN_ASSIGN(const AttentionFunctionsText text, functionTextOf(inputs, options));
  KILN_ASSIGN(out.functions, FunctionsOnHost::parse(text));
  const TensorParameter &aux = auxParameter();
  for (const auto &[name, t] : inputs)
    if (aux.has(name))
      out.aux.push_back({t.shape, t.values});
  return out;
}

double pairsOfMasks(const CallOnHost &on, const AttentionArguments &a,
                    const std::vector<AttentionSequence> &sequences) {
  double pairs = 0;
  const std::int64_t heads = on.functions.isMaskOfHead() ? extentsOf(a).heads : 1;
  std::vector<std::uint8_t> seen;
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const AttentionSequence &s = sequences[b];
    if (!on.functions.hasMask()) {
      pairs += pairsOf(s, a);
      continue;
    }
    seen.resize(static_cast<std::size_t>(s.keys));
    std::int64_t count = 0;
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t i = 0; i < s.queries; ++i) {
        seenBy(i, head, s, static_cast<std::int64_t>(b), on, a, seen);
        count += std::count(seen.begin(), seen.end(), std::uint8_t(1));
      }
    pairs += static_cast<double>(count) / static_cast<double>(heads);
  }
  return pairs;
}

Result<Arrays> blockTables(const Arrays &inputs, const OptionValues &options) {
  KILN_ASSIGN(const FunctionWords words, readOptions<FunctionWords>("attention", options));
  if (words.blockMask.empty())
    return Arrays();
  KILN_ASSIGN(const BlockSize size, blockSizeOf(words.blockMask));
  KILN_ASSIGN(const CallInputs call, callInputs(inputs, options));
  KILN_ASSIGN(const CallOnHost on, functionsOnHost(call.numbers, options));
  const AttentionArguments &a = call.arguments;
  const AttentionExtents e = extentsOf(a);
  const bool isPacked = a.cuQ || a.cuK, hasLengths = isPacked || a.usedQ || a.usedK;
  BlockMaskExtents extents;
  extents.batch = hasLengths || on.functions.isMaskOfBatch() ? std::max<std::int64_t>(1, e.batch) : 1;
  extents.heads = on.functions.isMaskOfHead() ? std::max<std::int64_t>(1, e.heads) : 1;
  extents.queries = a.cuQ ? 1 : e.rowsQ, extents.keys = a.cuK ? 1 : e.rowsK;
  for (const AttentionSequence &s : call.sequences)
    extents.queries = std::max(extents.queries, s.queries), extents.keys = std::max(extents.keys, s.keys);
  const auto row = [&](std::int64_t b, std::int64_t head, std::int64_t i, std::span<std::uint8_t> seen) {
    if (static_cast<std::size_t>(b) < call.sequences.size())
      seenBy(i, head, call.sequences[static_cast<std::size_t>(b)], b, on, a, seen);
  };
  KILN_ASSIGN(const BlockMaskOnHost blocks, BlockMaskOnHost::fromRows(extents, size, row));
  Arrays out;
  const auto extent = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  for (const List &list : lists) {
    const BlockMaskOnHost::Lists made = blocks.lists(list.kind, list.ofKeys);
    const Shape own = {extent(extents.batch), extent(extents.heads), extent(made.own)};
    out[list.counts] = arrayOfWhole(made.counts, own);
    out[list.blocks] = arrayOfWhole(made.blocks, {own[0], own[1], own[2], extent(made.most)});
  }
  return out;
}

std::string functionsText(const OptionValues &options) {
  const auto words = readOptions<FunctionWords>("attention", options);
  if (!words.ok())
    return {};
  return std::string(words->score.empty() ? "" : " score") + (words->mask.empty() ? "" : " mask") +
         (words->blockMask.empty() ? "" : " blocks " + words->blockMask);
}

} // namespace kiln::kernels
