#include "runtime/tools/KnobOptions.h"

#include "kiln/Knobs.h"

#include <CLI/CLI.hpp>

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

} // namespace kiln::tools
