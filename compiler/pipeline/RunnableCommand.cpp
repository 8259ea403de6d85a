#include "compiler/pipeline/RunnableCommand.h"

#include "compiler/pipeline/GivenStage.h"
#include "support/Text.h"

namespace kiln {
namespace {

/// As the shell reads it back.
std::string quoted(std::string_view word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos)
    return std::string(word);
  std::string out = "'";
  for (const char c : word)
    out += c == '\'' ? std::string("'\\''") : c == '\n' ? std::string(" ") : std::string(1, c);
  return out + "'";
}

/// The passes added to stages that are still to come, as KILN_PASSES has them.
std::string addedPasses(const CompileJob &job, std::optional<Stage> done) {
  std::string out;
  const auto add = [&](const char *stage, const std::string &passes, bool toCome) {
    if (toCome && !passes.empty())
      out += (out.empty() ? "" : "; ") + std::string(stage) + "=" + passes;
  };
  add("tile", job.passes.tile, !done);
  add("tile_gpu", job.passes.tileGpu, !done || *done == Stage::Tile);
  add("barriers", job.passes.barriers, !done || *done == Stage::Tile);
  add("lowering", job.passes.lowering, !done || *done != Stage::Llvm);
  return out;
}

/// A stage with the passes that are added to it.
std::string pipelineOf(const char *name, std::initializer_list<std::pair<const char *, const std::string *>> options) {
  std::string out;
  for (const auto &[option, passes] : options)
    if (!passes->empty())
      out += (out.empty() ? "" : " ") + std::string(option) + "={" + *passes + "}";
  return std::string(name) + (out.empty() ? "" : "{" + out + "}");
}

} // namespace

std::string compileCommand(const CompileJob &job, std::string_view file, std::optional<Stage> done) {
  std::string out = "kiln compile " + quoted(file) + " --target " + quoted(job.codeTarget);
  if (!done && !job.kernel.empty())
    out += " --entry " + quoted(job.kernel);
  for (const auto &[option, facts] : {std::pair(" --divisible ", &job.divisible), std::pair(" --equals ", &job.equals)})
    for (const auto &[argument, number] : *facts)
      if (!done) // the text says it afterwards
        out += option + std::to_string(argument) + "=" + std::to_string(number);
  if (!done && job.noTensorMaps)
    out += " --no-tensor-maps";
  if (job.lineInfo)
    out += " --line-info";
  if (const std::string added = addedPasses(job, done); !added.empty()) {
    if (!job.plugins.empty())
      out += " --plugins " + quoted(join(job.plugins, ":"));
    out += " --passes " + quoted(added);
  }
  return out;
}

std::string optCommand(const CompileJob &job, std::string_view file, Stage inside,
                       const std::vector<std::string> &rest) {
  std::vector<std::string> pipeline = rest;
  if (inside == Stage::Tile)
    pipeline.push_back(
        pipelineOf("kiln-stage-tile-gpu", {{"passes", &job.passes.tileGpu}, {"barrier-passes", &job.passes.barriers}}));
  if (inside != Stage::Llvm)
    pipeline.push_back(pipelineOf("kiln-stage-lowering", {{"passes", &job.passes.lowering}}));
  std::string out = "kiln-opt " + quoted(file);
  for (const std::string &plugin : job.plugins)
    out += " " + quoted("--load-pass-plugin=" + plugin);
  out += " " + quoted("--pass-pipeline=builtin.module(" + join(pipeline, ",") + ")") + " --emit-ptx";
  return out + (job.lineInfo ? " --line-info" : "");
}

} // namespace kiln
