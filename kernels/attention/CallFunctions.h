//===- CallFunctions.h - Functions and block masks of a call by name ---------------===//
//
// The parameters score, mask, block_mask and aux of commands, for both directions: texts (FunctionText.h), the tensors
// that they read, lists of blocks that the host makes of the masks, and what is counted with these.
//
// Invariant.  Aux tensors come in the order of their names: as the call's tensors, in the text and on the host.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_CALLFUNCTIONS_H
#define KILN_KERNELS_ATTENTION_CALLFUNCTIONS_H

#include "kernels/attention/AttentionCall.h"
#include "kernels/attention/FunctionOnHost.h"

#include <mutex>

namespace kiln::kernels {

/// What a call by name says of them.
struct FunctionWords {
  std::string score = {}, mask = {}, blockMask = {};

  template <typename Self, typename Visitor> static void options(Self &w, Visitor &&v) {
    v(CallOption{"score", "of a pair in place of x, its scaled score: an expression"}, w.score);
    v(CallOption{"mask", "which pairs there are: an expression over b, h, i, j and aux tensors"}, w.mask);
    v(CallOption{"block_mask", "ROWSxKEYS: blocks of so many pairs that the masks hide are not visited"}, w.blockMask);
  }
};

/// The same as settings of a kernel that is compiled alone.
struct FunctionSettings {
  std::string score = {}, mask = {}, aux = {}, blockMask = {};

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("score", &FunctionSettings::score, anyValue, "an expression: the score of a pair");
    v("mask", &FunctionSettings::mask, anyValue, "an expression: which pairs there are");
    v("aux", &FunctionSettings::aux, anyValue, "NAME:DTYPE:RANK,..: what they read");
    v("blockMask", &FunctionSettings::blockMask, anyValue, "ROWSxKEYS of a block of the lists; empty: none");
  }

  Status apply(AttentionHooks &hooks) const;
};

/// The group of inputs that functions read.
const TensorParameter &auxParameter();

/// Texts of a call, with aux tensors in the order of their names, among tensors of any kind.
template <typename Map> Result<AttentionFunctionsText> functionTextOf(const Map &tensors, const OptionValues &options) {
  KILN_ASSIGN(FunctionWords words, readOptions<FunctionWords>("attention", options));
  AttentionFunctionsText out{std::move(words.score), std::move(words.mask), {}};
  const TensorParameter &aux = auxParameter();
  for (const auto &[name, t] : tensors)
    if (aux.has(name)) {
      std::size_t rank;
      if constexpr (requires { t.rank; })
        rank = t.rank;
      else
        rank = t.shape.size();
      out.aux.push_back({name.substr(aux.name.size() + 1), t.dtype, static_cast<int>(rank)});
    }
  return out;
}

/// Whether the call has a score function.
inline bool hasScore(const OptionValues &options) {
  return options.contains("score");
}

/// Refuses texts that are none, and sizes of blocks.
Status checkFunctions(const TensorTypes &inputs, const OptionValues &options);

/// Functions that were made before are the same objects again, which have kernels.
class KnownFunctions {
public:
  /// Those of a call; none, and nothing is allocated or locked, if it has no texts.
  Result<AttentionFunctions> of(const Tensors &tensors, const OptionValues &options);

private:
  std::mutex mutex;
  std::vector<std::pair<AttentionFunctionsText, AttentionFunctions>> known;
};

/// Aux tensors and lists of blocks among a call's tensors.
void addHookTensors(const Tensors &tensors, const OptionValues &options, AttentionArguments &arguments);

/// Functions of a call, and what they read, on the host.
struct CallOnHost {
  FunctionsOnHost functions;
  std::vector<AuxOnHost> aux;
};
/// `inputs` must outlive it.
Result<CallOnHost> functionsOnHost(const HostTensors &inputs, const OptionValues &options);

/// Pairs that the masks of a call leave, of one head: of all heads their mean.
double pairsOfMasks(const CallOnHost &on, const AttentionArguments &arguments,
                    const std::vector<AttentionSequence> &sequences);

/// Lists of blocks of a call, if it asks for them (Callable::tables).
Result<Arrays> blockTables(const Arrays &inputs, const OptionValues &options);

/// ", mask, blocks 128x128": for the call's size in words.
std::string functionsText(const OptionValues &options);

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_CALLFUNCTIONS_H
