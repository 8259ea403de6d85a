//===- AttentionCall.h - A call of attention from the command line's parameters ---===//
//
// What parameters by name (q, kv, window_left, ..) say together: the layout, the views, which rows belong to which
// sequence.  The command runs it, and the reference computes it in float64.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONCALL_H
#define KILN_KERNELS_ATTENTION_ATTENTIONCALL_H

#include "kernels/attention/AttentionLayouts.h"
#include "kernels/attention/AttentionOperation.h"
#include "kernels/support/Callable.h"

namespace kiln::kernels {

using Tensors = std::map<std::string, Tensor, std::less<>>;

/// What a call by name says that AttentionArguments have as views.
struct AttentionWords {
  std::string_view layout = {};         ///< of attentionLayoutNames(); empty: the usual one
  std::int64_t heads = 0, keyHeads = 0; ///< of a flat layout; others have them in their shapes

  template <typename Self, typename Visitor> static void options(Self &w, Visitor &&v) {
    v(CallOption{"layout", "how q, k and v lie in memory", {}, nullptr, attentionLayoutNames()}, w.layout);
    v(CallOption{"heads", "H,Hk: of q and of k, for the flat layouts", {}, "heads"}, w.heads);
    v(CallOption{"key_heads", "", {}, "heads"}, w.keyHeads);
  }
};

/// Inputs that calls of both directions may have: what the masks and slopes are made of.
std::vector<TensorParameter> optionalParameters();

/// What an input of a file is converted to (Callable::inputType): a bias stays as it is.
std::optional<DType> inputTypeOfCall(const TensorParameter &parameter, std::optional<DType> called);

/// Values that follow from the tables of lengths: upper bounds of a sequence's queries and keys, and how many pairs of
/// a query and a key that it sees there are in all sequences.
constexpr std::string_view maxQueriesValue = "max_queries", maxKeysValue = "max_keys", pairsValue = "pairs";

/// Refuses tables that are wrong, and adds these values (Callable::complete).
Status completeCall(const Arrays &inputs, OptionValues &options);

/// The layout that was named: by default bshd_bshd_bshd, bshd_bs2hd, bs3hd, or flat_gqa where heads are given; with
/// cu_seqlens_q thd_thd_thd, thd_t2hd, t3hd, t_flat_gqa.  The failure says which tensors are missing.
Result<const AttentionLayout *> layoutOfCall(const Tensors &tensors, const OptionValues &options);

/// Everything but o, lse and the functions; it is how q, k and v lie that is returned.  Allocates nothing of a call
/// without aux tensors.
Result<const AttentionLayout *> readCall(const Tensors &tensors, const OptionValues &options, AttentionArguments &to);
inline Result<AttentionArguments> argumentsOfCall(const Tensors &tensors, const OptionValues &options) {
  AttentionArguments out;
  KILN_TRY(readCall(tensors, options, out).status());
  return out;
}

/// Tensors of these types that lie nowhere, dense.
Tensors tensorsOfTypes(const TensorTypes &types);

struct AttentionExtents {
  std::int64_t batch, rowsQ, rowsK; ///< rows: of a sequence, or of all if packed
  std::int64_t heads, keyHeads, dim, dimV;
};
AttentionExtents extentsOf(const AttentionArguments &arguments);

/// Types of o, and of lse where it is asked for.
Result<TensorTypes> attentionOutputs(const TensorTypes &inputs, const OptionValues &options);

/// The call's size in a few words.
std::string sizeTextOfCall(const TensorTypes &inputs, const OptionValues &options);

/// A sequence: where its rows lie, and how many count.
struct AttentionSequence {
  std::int64_t startQ = 0, queries = 0, startK = 0, keys = 0; ///< rows; of a dense tensor from the batch's first on
  std::int64_t batchQ = 0, batchK = 0;                        ///< index of the batch; 0 if packed
};

/// Values of the integer tables, as the host has them.
struct AttentionTables {
  std::vector<double> cuQ, cuK, usedQ, usedK; ///< empty: not given
};
AttentionTables tablesOf(const HostTensors &inputs);
/// The sequences (none if q has no elements), or the first entry that is wrong.
Result<std::vector<AttentionSequence>> sequencesOf(const AttentionArguments &arguments, const AttentionTables &tables);

/// Row i of the sequence's queries stands at i + shift among its keys.
std::int64_t shiftOf(const AttentionSequence &sequence, const AttentionArguments &arguments);

/// Keys that row i of the sequence sees by the built-in mask.
struct KeyRange {
  std::int64_t first = 0, end = 0;
};
KeyRange keysSeenBy(std::int64_t i, const AttentionSequence &sequence, const AttentionArguments &arguments);

/// A call's arguments (but o and lse), its inputs as numbers, its sequences.
struct CallInputs {
  AttentionArguments arguments;
  HostTensors numbers; ///< of the inputs whose values say more than what is multiplied: tables and aux tensors
  std::vector<AttentionSequence> sequences;
};
Result<CallInputs> callInputs(const Arrays &inputs, const OptionValues &options);

/// Pairs of a query and a key that it sees, of one head: the full count, Sq Sk - Sq^2 / 2 for causal (of as many
/// queries as keys half), windows exactly.
double pairsOf(const AttentionSequence &sequence, const AttentionArguments &arguments);

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONCALL_H
