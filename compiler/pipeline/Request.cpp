// The JSON of a request: facts about arguments, knobs.
#include "compiler/pipeline/Compile.h"

#include "support/Text.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

namespace kiln {
namespace {

std::string text(const KilnText &t) {
  return t.data ? std::string(t.data, t.size) : std::string();
}

Result<llvm::json::Value> parseJson(const KilnText &t, const char *what, const char *otherwise) {
  const std::string json = t.size ? text(t) : std::string(otherwise);
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(json);
  if (!value)
    return Status::invalid(std::string(what) + " is not JSON: " + llvm::toString(value.takeError()));
  return std::move(*value);
}

Status readFacts(const KilnText &t, CompileJob &job) {
  KILN_ASSIGN(llvm::json::Value value, parseJson(t, "the specialization", "[]"));
  const llvm::json::Array *facts = value.getAsArray();
  if (!facts)
    return Status::invalid("the specialization is no JSON array");
  for (const llvm::json::Value &item : *facts) {
    const llvm::json::Object *fact = item.getAsObject();
    if (fact && fact->get("tensor_maps")) {
      if (fact->size() != 1 || fact->getBoolean("tensor_maps").value_or(true))
        return Status::invalid("a fact of the specialization about tensor maps is not {\"tensor_maps\": false}");
      job.noTensorMaps = true;
      continue;
    }
    const std::optional<int64_t> argument = fact ? fact->getInteger("argument") : std::nullopt;
    const std::optional<int64_t> divisor = fact ? fact->getInteger("divisibility") : std::nullopt;
    const std::optional<int64_t> equals = fact ? fact->getInteger("equals") : std::nullopt;
    if (!argument || *argument < 0 || *argument > 65535 || divisor.has_value() == equals.has_value() ||
        fact->size() != 2)
      return Status::invalid(
          "a fact of the specialization is of none of the forms {\"argument\": N, \"divisibility\": D}, "
          "{\"argument\": N, \"equals\": V} and {\"tensor_maps\": false}");
    (divisor ? job.divisible : job.equals).emplace_back(unsigned(*argument), divisor ? *divisor : *equals);
  }
  return {};
}

Status wrongKnob(llvm::StringRef name, const char *expected) {
  return Status::invalid("the knob '" + name.str() + "' must be " + expected);
}

/// "7" or "1:3" as the text of a pass.
Result<std::string> stressPass(llvm::StringRef text) {
  // Numbers that stay positive in the pass's options.
  unsigned seed = 0, warp = 0, handOff = 0;
  const auto [first, second] = text.split(':');
  if (!text.contains(':') && !text.getAsInteger(10, seed))
    return llvm::formatv("kiln-insert-delays{{seed={0}}", seed).str();
  if (!first.getAsInteger(10, warp) && !second.getAsInteger(10, handOff))
    return llvm::formatv("kiln-insert-delays{{warp={0} hand-off={1}}", warp, handOff).str();
  return Status::invalid("KILN_STRESS=" + text.str() + " is neither a seed nor WARP:HANDOFF",
                         "write a number from 0 to 4294967295, as in KILN_STRESS=7, or two, as in KILN_STRESS=1:3");
}

Status readKnob(llvm::StringRef name, const llvm::json::Value &value, CompileJob &job) {
  const std::optional<llvm::StringRef> word = value.getAsString();
  if (name == "emit") {
    const std::pair<const char *, Emit> kinds[] = {
        {"tile", Emit::Tile}, {"tile_gpu", Emit::TileGpu}, {"llvm", Emit::Llvm}, {"ptx", Emit::Ptx}};
    for (const auto &[spelling, kind] : kinds)
      if (word && *word == spelling) {
        job.emit = kind;
        return {};
      }
    return wrongKnob(name, "tile, tile_gpu, llvm or ptx");
  }
  const std::pair<const char *, bool *> flags[] = {{"line_info", &job.lineInfo},
                                                   {"explain", &job.explain},
                                                   {"dump_passes", &job.dumpPasses},
                                                   {"time_passes", &job.timePasses},
                                                   {"in_helper", &job.inHelper}};
  for (const auto &[spelling, flag] : flags)
    if (name == spelling) {
      const std::optional<bool> given = value.getAsBoolean();
      *flag = given.value_or(false);
      return given ? Status() : wrongKnob(name, "true or false");
    }
  if (name == "overrides") {
    const llvm::json::Object *files = value.getAsObject();
    for (const auto &[file, content] : files ? *files : llvm::json::Object()) {
      const std::optional<llvm::StringRef> text = content.getAsString();
      if (!text)
        return wrongKnob(name, "an object of texts");
      job.overrides.emplace_back(file.str(), text->str());
    }
    return files ? Status() : wrongKnob(name, "an object of texts");
  }
  if (name == "dump_dir") {
    job.dumpDirectory = word.value_or("").str();
    return word ? Status() : wrongKnob(name, "a path");
  }
  if (name == "deadline") {
    const std::optional<double> seconds = value.getAsNumber();
    if (!seconds || !(*seconds > 0 && *seconds <= 1e6))
      return wrongKnob(name, "a number of seconds up to 1e6");
    job.deadlineSeconds = *seconds;
    return {};
  }
  if (name == "isolation") {
    if (!word)
      return wrongKnob(name, "none, thread or child");
    KILN_ASSIGN(job.isolation, parseIsolation(std::string_view(word->data(), word->size())));
    return {};
  }
  if (name == "plugins") {
    const llvm::json::Array *list = value.getAsArray();
    for (size_t i = 0; list && i < list->size(); ++i) {
      const std::optional<llvm::StringRef> path = (*list)[i].getAsString();
      if (!path)
        return wrongKnob(name, "a list of paths");
      job.plugins.push_back(path->str());
    }
    return list ? Status() : wrongKnob(name, "a list of paths");
  }
  if (name == "passes") {
    if (!word)
      return wrongKnob(name, "a text");
    KILN_ASSIGN(job.passes, parseInsertions(std::string_view(word->data(), word->size())));
    return {};
  }
  if (name == "stress") {
    if (!word)
      return wrongKnob(name, "a text");
    KILN_ASSIGN(job.stress, stressPass(*word));
    return {};
  }
  return Status::invalid(
      "unknown knob '" + name.str() + "'",
      "known: emit, line_info, explain, plugins, passes, stress, dump_dir, dump_passes, time_passes, "
      "overrides, deadline, isolation");
}

} // namespace

Result<CompileJob> readRequest(const KilnCompileRequest &request) {
  CompileJob job;
  job.program = text(request.program);
  job.fileName = text(request.fileName);
  job.kernel = text(request.kernel);
  job.codeTarget = text(request.codeTarget);
  KILN_TRY(readFacts(request.specialization, job));
  KILN_ASSIGN(llvm::json::Value options, parseJson(request.options, "the options", "{}"));
  const llvm::json::Object *knobs = options.getAsObject();
  if (!knobs)
    return Status::invalid("the options are no JSON object");
  for (const auto &[name, value] : *knobs)
    KILN_TRY(readKnob(name, value, job));
  if (!job.plugins.empty() && job.passes.empty())
    return Status::invalid("the pass plugin '" + job.plugins.front() + "' is loaded, and no pass of it would run",
                           "say which and where: KILN_PASSES=tile=<pass>, or the option \"passes\" of the request");
  if (!job.stress.empty())
    job.passes.barriers = job.stress + (job.passes.barriers.empty() ? "" : "," + job.passes.barriers);
  return job;
}

} // namespace kiln
