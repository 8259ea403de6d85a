//===- RunnableCommand.h - A compile as a line for the shell ------------------===//
//
// What dumps and crash files say in their first line: the command that does the rest of a request from that file.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_RUNNABLECOMMAND_H
#define KILN_PIPELINE_RUNNABLECOMMAND_H

#include "compiler/pipeline/Compile.h"

#include <optional>

namespace kiln {

enum class Stage : unsigned char; // GivenStage.h

/// `kiln compile FILE ..`: from the output of a stage, or without one from the program itself.
std::string compileCommand(const CompileJob &job, std::string_view file, std::optional<Stage> done);

/// `kiln-opt FILE --pass-pipeline=.. --emit-ptx`: the passes `rest` of a stage, then the stages after it.
std::string optCommand(const CompileJob &job, std::string_view file, Stage inside,
                       const std::vector<std::string> &rest);

} // namespace kiln

#endif // KILN_PIPELINE_RUNNABLECOMMAND_H
