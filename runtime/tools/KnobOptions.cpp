#include "runtime/tools/KnobOptions.h"

#include "kiln/Knobs.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>

namespace kiln::tools {

void addKnobOptions(CLI::App &app) {
  for (CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
    for (const KnobInfo &knob : allKnobs()) {
      const std::string flag(knob.flag), variable(knob.variable);
      if (command->get_option_no_throw(flag))
        continue;
      command
          ->add_option_function<std::string>(
              flag,
              [flag, variable](const std::string &value) {
                if (Status s = Knobs().set(flag, value); !s.ok())
                  throw CLI::ValidationError(s.toString());
                ::setenv(variable.c_str(), value.c_str(), /*overwrite=*/1);
              },
              std::string(knob.text))
          ->group("")
          ->allow_extra_args(false);
    }
}

void hintAtUnknownVariables() {
  constexpr std::string_view prefix = "KILN_";
  std::vector<std::string> names;
  for (const KnobInfo &knob : allKnobs())
    names.emplace_back(knob.variable.substr(prefix.size()));
  for (const std::string &variable : unknownKnobVariables()) {
    const std::string name = variable.substr(prefix.size());
    std::vector<std::string> near = nearest(name, names);
    for (const std::string &whole : names) // KILN_DUMP, KILN_BLOCKING
      if (near.empty() && name.size() >= 4 && whole.find(name) != whole.npos)
        near.push_back(whole);
    for (std::string &other : near)
      other.insert(0, prefix);
    // One that resembles nothing is somebody else's.
    if (!near.empty())
      std::fprintf(stderr, "kiln: the variable %s is no setting and is ignored (did you mean %s?)\n", variable.c_str(),
                   join(near, " or ").c_str());
  }
}

} // namespace kiln::tools
