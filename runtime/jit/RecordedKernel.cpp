#include "kiln/Language.h"

#include <algorithm>

namespace kiln {

Result<KernelSource> sourceOf(const language::Kernel &kernel) {
  KILN_TRY(Status(kernel.status()));
  KernelSource source;
  source.name = kernel.name();
  source.programText = kernel.text();
  source.configuration = kernel.configText();
  source.warps = static_cast<unsigned>(kernel.warps());
  for (const language::KernelArgument &a : kernel.arguments()) {
    ArgumentSpec spec{a.name, a.typeText()};
    KILN_ASSIGN(const ParsedArgumentType type, parseArgumentType(spec.type));
    switch (a.traits.specialization) {
    case language::Specialization::ByType:
      spec.specialise = defaultSpecialisation(type);
      break;
    case language::Specialization::None:
      break;
    case language::Specialization::Divisibility:
      spec.specialise = Specialise::Divisibility;
      break;
    case language::Specialization::Stride:
      spec.specialise = Specialise::Stride;
      break;
    case language::Specialization::Value:
      spec.specialise = Specialise::Value;
      break;
    }
    if (a.counts)
      spec.elementBytes = std::max(8u, bitsOf(*a.counts)) / 8;
    if (a.part)
      spec.part =
          TensorPart{a.part->tensor, static_cast<TensorPart::Role>(a.part->role),
                     static_cast<std::uint8_t>(a.part->dim), static_cast<std::uint8_t>(a.part->rank), a.part->optional};
    source.arguments.push_back(std::move(spec));
  }
  return source;
}

} // namespace kiln
