//===- Log.h - What the runtime tells about its work ----------------------===//
//
// Topics with a level each, set by one text: "launch=debug,cache=info", or a level alone for all topics.  Asking
// whether a line is wanted costs one comparison.  Immutable after `parse`; `write` may be called from any thread.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_LOG_H
#define KILN_RUNTIME_JIT_LOG_H

#include "support/Status.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace kiln {

enum class LogTopic : std::uint8_t { Launch, Cache, Compile };
enum class LogLevel : std::uint8_t { Off, Error, Info, Debug };

class Log {
public:
  using Sink = std::function<void(std::string_view line)>;

  /// `sink` empty: standard error.
  static Result<Log> parse(std::string_view text, Sink sink);

  bool wants(LogTopic topic, LogLevel level) const { return level <= levels[static_cast<unsigned>(topic)]; }
  /// "kiln: launch: text", if wanted.
  void write(LogTopic topic, LogLevel level, std::string_view text) const;

private:
  static constexpr unsigned topics = 3;
  std::array<LogLevel, topics> levels{};
  Sink sink;
};

/// True at the first call of this process with this text: for what is said once.
bool isFirst(const std::string &text);

} // namespace kiln

#endif // KILN_RUNTIME_JIT_LOG_H
