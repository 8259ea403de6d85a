#include "runtime/jit/Log.h"

#include "support/Text.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>

namespace kiln {

static constexpr std::string_view topicNames[] = {"launch", "cache", "compile"};
static constexpr std::string_view levelNames[] = {"off", "error", "info", "debug"};

Result<Log> Log::parse(std::string_view text, Sink sink) {
  Log log;
  log.sink = std::move(sink);
  log.levels.fill(LogLevel::Error);
  if (text.empty())
    return log;
  for (std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view level = equals == std::string_view::npos ? part : part.substr(equals + 1);
    const auto found = std::find(std::begin(levelNames), std::end(levelNames), level);
    if (found == std::end(levelNames))
      return Status::invalid("KILN_LOG: '" + std::string(level) + "' is no level of logging",
                             "levels: off, error, info, debug; write launch=debug,cache=info");
    const auto value = static_cast<LogLevel>(found - std::begin(levelNames));
    if (equals == std::string_view::npos) {
      log.levels.fill(value);
      continue;
    }
    const auto topic = std::find(std::begin(topicNames), std::end(topicNames), part.substr(0, equals));
    if (topic == std::end(topicNames))
      return Status::invalid("KILN_LOG: '" + std::string(part.substr(0, equals)) + "' is no topic of logging",
                             "topics: launch, cache, compile");
    log.levels[static_cast<unsigned>(topic - std::begin(topicNames))] = value;
  }
  return log;
}

bool isFirst(const std::string &text) {
  static std::mutex mutex;
  static std::set<std::string> said; // of the process: its Jits have one standard error
  const std::lock_guard lock(mutex);
  return said.insert(text).second;
}

void Log::write(LogTopic topic, LogLevel level, std::string_view text) const {
  if (!wants(topic, level))
    return;
  const std::string line = "kiln: " + std::string(topicNames[static_cast<unsigned>(topic)]) + ": " + std::string(text);
  if (sink)
    sink(line);
  else
    std::fprintf(stderr, "%s\n", line.c_str());
}

} // namespace kiln
