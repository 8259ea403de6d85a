#include "kiln/Tuned.h"

#include "runtime/jit/Service.h"
#include "support/Text.h"

#include <nlohmann/json.hpp>

namespace kiln {

namespace {

using Json = nlohmann::ordered_json;

/// Every option of the question has a number; nothing: the payload is another question's, or no JSON.
std::optional<TunedValues> valuesOf(const std::string &payload, const TunedQuestion &question) {
  const Json stored = Json::parse(payload, nullptr, /*allow_exceptions=*/false);
  if (!stored.is_object() || stored.size() != question.options.size())
    return std::nullopt;
  TunedValues out;
  for (const std::string &name : question.options) {
    const auto found = stored.find(name);
    if (found == stored.end() || !found->is_number_integer())
      return std::nullopt;
    out.push_back(found->get<std::int64_t>());
  }
  return out;
}

std::string textOf(const TunedQuestion &question, const TunedValues &values) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < values.size(); ++i)
    parts.push_back(question.options[i] + "=" + std::to_string(values[i]));
  return join(parts);
}

std::string nameOf(const TunedQuestion &question) {
  return question.operation + (question.part.empty() ? "" : " (" + question.part + ")");
}

} // namespace

Result<cache::KeyText> JitService::tunedKey(const TunedQuestion &question) {
  const DeviceInfo &about = device.info();
  KILN_ASSIGN(const std::shared_ptr<CompilerLibrary> library, compilerLibrary());
  KILN_ASSIGN(const std::string compilerHash, library->identity(hashes));
  KILN_ASSIGN(const PluginState pluginsNow, pluginState());
  cache::KeyText key;
  key.set("operation", question.operation)
      .set("part", question.part)
      .set("types", question.types)
      .set("configuration", question.configuration)
      .set("sizes", question.sizes)
      .set("options", join(question.options))
      .set("code target", codeTarget)
      // Which GPU of a host it is does not matter, which kind does.
      .set("device", about.kind == DeviceKind::Emulator ? about.name : about.description)
      .set("assembler", assembler.identity(hashes))
      .set("compiler", compilerHash)
      .set("plugins", pluginsNow.hashes)
      .set("passes", options.knobs.passes);
  return key;
}

std::optional<TunedValues> JitService::tuned(const TunedQuestion &question) {
  if (options.onTunedQuestion)
    options.onTunedQuestion(question);
  return answerTo(question);
}

std::optional<TunedValues> JitService::answerTo(const TunedQuestion &question) {
  if (!options.knobs.tuned || forkGuard.forked() || (!disk && layers.empty()))
    return std::nullopt;
  const Result<cache::KeyText> key = tunedKey(question);
  if (!key) // whoever compiles says why
    return std::nullopt;
  const auto take = [&](const cache::Entry &entry, const std::string &from) -> std::optional<TunedValues> {
    std::optional<TunedValues> values =
        entry.kind == cache::EntryKind::Tuned ? valuesOf(entry.payload, question) : std::nullopt;
    if (log.wants(LogTopic::Cache, LogLevel::Info))
      log.write(LogTopic::Cache, LogLevel::Info,
                nameOf(question) + (values ? ": tuned values of " + from + ": " + textOf(question, *values)
                                           : ": what " + from + " has are no tuned values"));
    return values;
  };
  if (disk)
    if (const Result<std::optional<cache::Entry>> entry = disk->lookup(*key); entry && *entry)
      if (std::optional<TunedValues> values = take(**entry, "the cache"))
        return values;
  for (const std::unique_ptr<cache::Layer> &layer : layers)
    if (const Result<std::optional<cache::Entry>> entry = layer->lookup(*key); entry && *entry)
      if (std::optional<TunedValues> values = take(**entry, layer->name())) {
        if (disk && layer->isRemote())
          (void)disk->store(*key, **entry);
        return values;
      }
  return std::nullopt;
}

Status JitService::keepTuned(const TunedQuestion &question, const TunedValues &values, const TunedOrigin &origin) {
  if (values.size() != question.options.size())
    return Status::invalid(nameOf(question) + ": " + std::to_string(values.size()) + " values for " +
                               std::to_string(question.options.size()) + " options",
                           "give one for each of " + join(question.options));
  if (!disk)
    return {StatusCode::NotFound, "there is no cache on disk that keeps tuned values",
            "set KILN_CACHE_DIR to a folder that only you can change"};
  KILN_ASSIGN(const cache::KeyText key, tunedKey(question));
  Json payload = Json::object();
  for (std::size_t i = 0; i < values.size(); ++i)
    payload[question.options[i]] = values[i];
  Json about{{"call", origin.call},
             {"milliseconds", origin.milliseconds},
             {"configurations", origin.configurations},
             {"time", origin.time}};
  if (origin.untuned)
    about["untuned_milliseconds"] = *origin.untuned;
  const cache::Entry entry{cache::EntryKind::Tuned, payload.dump(),
                           about.dump(-1, ' ', false, Json::error_handler_t::replace)};
  KILN_TRY(disk->store(key, entry));
  for (const std::unique_ptr<cache::Layer> &layer : layers)
    layer->offer(key, entry);
  return {};
}

bool Jit::asksForTuned() const {
  return service->options.knobs.tuned || service->options.onTunedQuestion;
}
std::optional<TunedValues> Jit::tuned(const TunedQuestion &question) {
  return service->tuned(question);
}
Status Jit::keepTuned(const TunedQuestion &question, const TunedValues &values, const TunedOrigin &origin) {
  return service->keepTuned(question, values, origin);
}

} // namespace kiln
