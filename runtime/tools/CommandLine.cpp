// The `kiln` command: its subcommands, and what holds for all of them.
#include "runtime/io/Temporaries.h"
#include "runtime/tools/Commands.h"
#include "runtime/tools/KnobOptions.h"
#include "runtime/tools/StandardOutput.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <new>

namespace {

constexpr int inputError = 2, deviceError = 4;

std::vector<std::string> commandNames(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
    names.push_back(command->get_name());
  return names;
}

/// A first word that is no subcommand: the nearest ones.
int unknownCommand(const std::vector<std::string> &known, const std::string &word) {
  const std::vector<std::string> near = kiln::nearest(word, known);
  std::fprintf(stderr, "kiln: unknown command '%s'; %s\n", word.c_str(),
               near.empty() ? ("the commands are " + kiln::join(known)).c_str()
                            : ("did you mean " + kiln::join(near, " or ") + "?").c_str());
  return inputError;
}

int run(int argc, char **argv) {
  CLI::App app{"kiln: GPU kernels compiled, run and checked, with or without a GPU"};
  app.name("kiln");
  app.set_version_flag("--version", "kiln " KILN_VERSION);
  app.require_subcommand(1);
  app.footer("Each command has its own help and examples: kiln run --help\n"
             "Settings (docs/knobs.md) are options of every command: --cache-dir, --ptxas, --log, ...\n"
             "Exit status: 0 good, 1 findings, 2 input, 3 compile, 4 device.");
  int status = 0;
  kiln::tools::addDemoCommand(app, status);
  kiln::tools::addRunCommand(app, status);
  kiln::tools::addCompileCommand(app, status);
  kiln::tools::addBenchCommand(app, status);
  kiln::tools::addExplainCommand(app, status);
  kiln::tools::addCheckCommand(app, status);
  kiln::tools::addCacheCommand(app, status);
  kiln::tools::addDiffCommand(app, status);
  kiln::tools::addTuneCommand(app, status);
  kiln::tools::addPackCommand(app, status);
  kiln::tools::addWarmCommand(app, status);
  kiln::tools::addDevicesCommand(app, status);
  kiln::tools::addKnobOptions(app);
  if (argc == 1) {
    std::fputs(app.help().c_str(), stderr);
    return inputError;
  }
  kiln::tools::hintAtUnknownVariables();
  const std::vector<std::string> known = commandNames(app);
  if (argv[1][0] != '-' && std::find(known.begin(), known.end(), argv[1]) == known.end())
    return unknownCommand(known, argv[1]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    const auto chosen = app.get_subcommands();
    std::fputs((chosen.empty() ? app.help() : chosen[0]->help("kiln")).c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion &e) {
    std::printf("%s\n", e.what());
    return 0;
  } catch (const CLI::ParseError &e) {
    const auto chosen = app.get_subcommands();
    const std::string command = chosen.empty() ? "kiln" : "kiln " + chosen[0]->get_name();
    std::fprintf(stderr, "%s: %s (see %s --help)\n", command.c_str(), e.what(), command.c_str());
    return inputError;
  }
  return status;
}

int runGuarded(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc &) {
    std::fputs("kiln: out of memory\n", stderr);
    return deviceError;
  } catch (const std::exception &e) {
    std::fprintf(stderr, "kiln: internal error: %s\n", e.what());
    return deviceError;
  }
}

} // namespace

int kiln::tools::runCommandLine(int argc, char **argv) {
  fillClosedStandardStreams();
  removeTemporariesOnSignals();
  const int status = runGuarded(argc, argv);
  return closeStandardOutput() || status ? status : inputError;
}
