#include "kiln/Language.h"

namespace kiln {

Result<KernelSource> sourceOf(const language::Kernel &kernel) {
  KILN_TRY(Status(kernel.status()));
  KernelSource source;
  source.name = kernel.name();
  source.programText = kernel.text();
  source.configuration = kernel.configText();
  source.warps = static_cast<unsigned>(kernel.warps());
  for (const language::KernelArgument &a : kernel.arguments()) {
    ArgumentSpec spec{a.name, a.typeText(), Specialise::None};
    KILN_ASSIGN(const ParsedArgumentType type, parseArgumentType(spec.type));
    switch (a.traits.specialization) {
    case language::Specialization::Automatic:
      spec.specialise = defaultSpecialisation(spec.name, type);
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
    source.arguments.push_back(std::move(spec));
  }
  return source;
}

} // namespace kiln
