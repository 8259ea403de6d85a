//===- KnobOptions.h - The settings as options of every command -------------===//
#ifndef KILN_RUNTIME_TOOLS_KNOBOPTIONS_H
#define KILN_RUNTIME_TOOLS_KNOBOPTIONS_H

namespace CLI {
class App;
}

namespace kiln::tools {

/// Gives each command the flags of the knob table (docs/knobs.md) that it has no option of its own for.  They are not
/// listed in its help.  A flag sets its variable for this process and the helpers that it starts.
void addKnobOptions(CLI::App &app);

/// A line on standard error for each variable that looks like a setting spelt wrong.
void hintAtUnknownVariables();

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_KNOBOPTIONS_H
