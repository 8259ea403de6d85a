//===- FamilyWords.h - The parameters of a library kernel on a command line --------===//
//
// --NAME VALUE for tensors and options, --NAME alone for flags, --NAME MEMBER=VALUE, as often as there are members, for
// those of a group; a dash in NAME stands for the underscore of the parameter.  Which names there are, the family says.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_FAMILYWORDS_H
#define KILN_RUNTIME_TOOLS_FAMILYWORDS_H

#include "kernels/support/Callable.h"

namespace kiln::tools {

struct FamilyWords {
  std::map<std::string, std::string, std::less<>> tensors; ///< what was written after --NAME, by tensor
  kernels::OptionValues options;
};

/// The failure names the word, and what exists.
Result<FamilyWords> parseFamilyWords(const kernels::Callable &callable, const std::vector<std::string> &words);

/// Every input that a call cannot go without is there; the failure names one that is not.
Status requireInputs(const kernels::Callable &callable, const kernels::TensorTypes &inputs);

/// ", causal, scale 0.5": the values that are not the defaults.
std::string optionsText(const kernels::Callable &callable, const kernels::OptionValues &options);

/// "--x, --out, --eps".
std::string parameterList(const kernels::Callable &callable);

/// An input of a file: its type is one that the kernel takes.  The failure says which --dtype helps.  `named`: the one
/// that the caller gave.
Status checkInputType(const kernels::Callable &callable, const kernels::TensorParameter &parameter,
                      const std::string &file, DType type, std::optional<DType> named,
                      const kernels::OptionValues &options);

/// The lines of --help for a family: its parameters, its summary.
std::string familyHelp(const kernels::Callable &callable);

/// An input from a file, converted to `type`; none: as it is, f64 as f32.  64-bit integers become 32-bit ones where
/// those are asked for and every value fits.  `name` is the parameter's, for the failure.
Result<Array> readInput(const std::string &name, const std::string &file, std::optional<DType> type);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_FAMILYWORDS_H
