//===- Commands.h - The subcommands of `kiln` -----------------------------===//
//
// Each subcommand is one file.  It adds itself to the parser; its callback runs it and leaves the exit status in
// `exitStatus`: 0 good, 1 findings, 2 input, 3 compile, 4 device.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_COMMANDS_H
#define KILN_RUNTIME_TOOLS_COMMANDS_H

namespace CLI {
class App;
}

namespace kiln::tools {

void addDemoCommand(CLI::App &app, int &exitStatus);
void addRunCommand(CLI::App &app, int &exitStatus);
void addCompileCommand(CLI::App &app, int &exitStatus);
void addBenchCommand(CLI::App &app, int &exitStatus);
void addExplainCommand(CLI::App &app, int &exitStatus);
void addCheckCommand(CLI::App &app, int &exitStatus);
void addCacheCommand(CLI::App &app, int &exitStatus);
void addDiffCommand(CLI::App &app, int &exitStatus);
void addTuneCommand(CLI::App &app, int &exitStatus);
void addPackCommand(CLI::App &app, int &exitStatus);
void addWarmCommand(CLI::App &app, int &exitStatus);
void addDevicesCommand(CLI::App &app, int &exitStatus);

/// All of them: what the program does.  It changes the process: signals, standard streams.
int runCommandLine(int argc, char **argv);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_COMMANDS_H
