#include "runtime/tune/remote/QueueLine.h"

#include "support/Text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <thread>

namespace kiln::tune {

using Json = nlohmann::ordered_json;

Result<QueueAddress> QueueAddress::parse(const std::string &text) {
  const std::size_t at = text.rfind('@'); // passwords may have a #
  const std::size_t mark = text.find('#', at == std::string::npos ? 0 : at);
  QueueAddress out;
  KILN_ASSIGN(out.server, cache::RedisAddress::parse(std::string_view(text).substr(0, mark)));
  if (mark == std::string::npos)
    return out;
  constexpr std::size_t most = 64;
  out.name = text.substr(mark + 1);
  const bool isGood = std::all_of(out.name.begin(), out.name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
  if (out.name.empty() || out.name.size() > most || !isGood)
    return Status::invalid("the queue's name, after #, is not 1 to " + std::to_string(most) +
                               " letters, digits, '-', '_' and '.'",
                           "write redis://host:port#NAME");
  return out;
}

std::string QueueLine::expiry(double seconds) {
  return std::to_string(static_cast<long long>(std::ceil(seconds * 1000)));
}

/// Of what a server will never do.
static constexpr const char *refusedRemedy =
    "use Redis 6.0.6 or later, let its user run all commands on kiln:tune:*, and keep other programs from these keys";

Result<QueueLine::Text> QueueLine::askOnce(std::initializer_list<std::string_view> words, Clock::time_point until) {
  constexpr std::size_t mostBytes = 4 << 20;
  return connection.command(words, std::min(until, Clock::now() + std::chrono::seconds(5)), mostBytes);
}

Status QueueLine::greet() {
  const std::string cannot = "the queue's server cannot be used: ";
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(o.silence));
  Result<Text> answer = askOnce({"PING"}, until);
  if (answer && *answer == "PONG") {
    answer = askOnce({"LPOS", waiting(), "0"}, until);
    if (answer)
      return {};
    if (answer.status().message().find("unknown command") != std::string::npos)
      return {StatusCode::Unsupported, cannot + answer.status().message(), "use Redis 6.0.6 or later, which has LPOS"};
    if (answer.status().code() == StatusCode::Unsupported)
      return {StatusCode::Unsupported, cannot + answer.status().message(), refusedRemedy};
  }
  return {StatusCode::IoError,
          cannot +
              (answer ? o.address.server.text() + ": its answer is none that Redis gives" : answer.status().message()),
          "start redis-server there, or name another one: redis://host:port#NAME"};
}

Result<QueueLine::Text> QueueLine::ask(std::initializer_list<std::string_view> words) {
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(o.silence));
  for (;;) {
    Result<Text> answer = askOnce(words, until);
    if (answer)
      return answer;
    if (answer.status().code() == StatusCode::Unsupported)
      return Status(StatusCode::Unsupported, "the queue's server refuses a command: " + answer.status().message(),
                    refusedRemedy);
    if (Clock::now() >= until || (o.interrupted && o.interrupted->load()))
      return Status(StatusCode::IoError,
                    "the queue's server gave no good answer for " + format("%g", o.silence) +
                        " seconds: " + answer.status().message(),
                    "look after it; a sweep with --journal goes on with the same command");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

Status QueueLine::put(const std::string &list, const std::string &number) {
  KILN_TRY(ask({"RPUSH", list, number}).status());
  return ask({"PEXPIRE", list, expiry(10 * o.silence)}).status();
}

std::string sealed(const cache::Signer &signer, const char *kind, const std::string &number, const std::string &worker,
                   const std::string &text) {
  const Json json = {
      {"kind", std::string("kiln-tune ") + kind}, {"number", number}, {"worker", worker}, {"text", text}};
  return signer.sign(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Result<Opened> unsealed(const QueueOptions &options, const cache::Signer &signer, const char *kind,
                        const std::string &number, const std::string &value) {
  const auto refused = [&](const std::string &why) {
    return Status::invalid(options.address.text() + " holds " + (kind == std::string("answer") ? "an " : "a ") + kind +
                               " that " + why,
                           "give the sweep and all of its workers the same KILN_CACHE_SECRET, and nobody else");
  };
  const std::optional<std::string_view> text = signer.opened(value);
  if (!text)
    return refused("is not signed with this secret");
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const auto field = [&](const char *name) {
    const auto found = json.is_object() ? json.find(name) : json.end();
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (field("kind") != std::string("kiln-tune ") + kind || field("number") != number)
    return refused("belongs to something else");
  return Opened{field("worker"), field("text")};
}

} // namespace kiln::tune
