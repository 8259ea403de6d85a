#include "runtime/tune/remote/Workers.h"

namespace kiln::tune {
namespace {

std::string lineOf(const Json &json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json parsed(const std::string &text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

} // namespace

std::string requestText(const Work &work) {
  Json configuration = Json::object();
  for (const auto &[name, value] : work.configuration)
    configuration[name] = value;
  return lineOf({{"call", work.call}, {"configuration", std::move(configuration)}});
}

Result<Work> readRequest(const std::string &text) {
  Json json = parsed(text);
  const auto call = json.is_object() ? json.find("call") : json.end();
  const auto configuration = json.is_object() ? json.find("configuration") : json.end();
  if (call == json.end() || !call->is_object() || configuration == json.end() || !configuration->is_object())
    return Status::invalid("a request without a call and a configuration",
                           "start the sweep and its workers with the same version of Kiln");
  Work out;
  for (const auto &[name, value] : configuration->items()) {
    if (!value.is_string())
      return Status::invalid("a request whose " + name + " is no text",
                             "start the sweep and its workers with the same version of Kiln");
    out.configuration.emplace_back(name, value.get<std::string>());
  }
  out.call = std::move(*call);
  return out;
}

std::string answerText(const Entry &entry) {
  return lineOf({{"entry", toJson(entry)}});
}
std::string refusalText(const std::string &why) {
  return lineOf({{"refused", why}});
}

std::optional<std::string> refusalOf(const std::string &answer) {
  const Json json = parsed(answer);
  const auto found = json.is_object() ? json.find("refused") : json.end();
  if (found == json.end() || !found->is_string())
    return {};
  return found->get<std::string>();
}

void Workers::tell(const std::string &line) {
  const std::lock_guard lock(mutex);
  if (say)
    say(line);
}

Result<Entry> Workers::measure(const Configuration &configuration) {
  std::string anyone;
  return measure(configuration, anyone);
}
Result<Entry> Workers::measureOnOne(const Configuration &configuration) {
  return measure(configuration, one);
}

Result<Entry> Workers::measure(const Configuration &configuration, std::string &to) {
  const bool isPinned = &to == &one;
  const std::string request = requestText({call, named(space, configuration)}), key = space.text(configuration);
  const std::string before = to;
  std::string lost;
  for (unsigned losses = 0; losses < mostLosses;) {
    KILN_ASSIGN(const Delivery delivery, carrier.deliver(request, to, patience));
    if (delivery.end != Delivery::End::Answered)
      to.clear();
    if (delivery.end == Delivery::End::Lost) {
      ++losses;
      lost += (lost.empty() ? "" : ", ") + delivery.worker;
      tell("worker " + delivery.worker + " was lost while it measured " + key);
    }
    if (delivery.end != Delivery::End::Answered)
      continue;
    if (const std::optional<std::string> why = refusalOf(delivery.answer)) {
      to.clear();
      bool isNew = false;
      {
        const std::lock_guard lock(mutex);
        isNew = refusals.emplace(delivery.worker, *why).second;
      }
      if (isNew)
        tell("worker " + delivery.worker + " takes no part: " + *why);
      KILN_TRY(carrier.leaveOut(delivery.worker, *why));
      continue;
    }
    const Json json = parsed(delivery.answer);
    Result<Entry> entry = entryFrom(json.is_object() ? json.value("entry", Json()) : Json());
    if (!entry || entry->key() != key)
      return Status(StatusCode::IoError,
                    "worker " + delivery.worker + " gave an answer that is none to " + key + ": " +
                        (entry ? "it is one to " + entry->key() : entry.status().message()),
                    "start the sweep and its workers with the same version of Kiln");
    if (isPinned && !before.empty() && delivery.worker != before)
      tell("worker " + delivery.worker + " measures the best from now on in place of " + before +
           ": their times may be of two devices");
    if (isPinned)
      to = delivery.worker;
    return entry;
  }
  const std::string why = std::to_string(mostLosses) + " workers were lost while they measured ";
  if (!carrier.knowsWhoIsLost()) // a journal keeps what was measured, and this may be the server's failure
    return Status(StatusCode::IoError, why + key + ", or the queue's server lost their leases: " + lost,
                  "look after the server and the workers; a sweep with --journal goes on with the same command");
  Entry crashed;
  crashed.configuration = named(space, configuration);
  crashed.outcome = Outcome::Crashed;
  crashed.message = why + "it: " + lost;
  return crashed;
}

} // namespace kiln::tune
