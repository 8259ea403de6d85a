#include "runtime/tune/Export.h"

#include "runtime/tune/HtmlReport.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::tune {
namespace {

constexpr const char *t4Version = "1.0.0";

/// The schema's words for what is wrong with a configuration.
std::string_view invalidityOf(Outcome outcome) {
  switch (outcome) {
  case Outcome::Good:
    return "correct";
  case Outcome::Wrong:
    return "correctness";
  case Outcome::Compile:
    return "compile";
  case Outcome::Refused:
    return "constraints";
  case Outcome::Failed:
  case Outcome::Crashed:
    return "runtime";
  case Outcome::TimedOut:
    return "timeout";
  }
  return "runtime";
}

std::string t4Of(const JournalContents &journal) {
  Json results = Json::array();
  for (const Entry &e : journal.entries) {
    Json row = {{"timestamp", e.time},
                {"configuration", toJson(e)["configuration"]},
                {"objectives", {"time"}},
                {"times", {{"runtimes", Json::array()}}},
                {"invalidity", invalidityOf(e.outcome)},
                {"correctness", e.good() ? 1 : 0},
                {"measurements", Json::array()}};
    const auto measured = [&](const char *name, double value) {
      row["measurements"].push_back({{"name", name}, {"value", value}, {"unit", "ms"}});
    };
    if (e.good()) {
      row["times"]["runtimes"].push_back(e.milliseconds);
      measured("time", e.milliseconds);
    }
    if (e.estimate)
      measured("estimate", *e.estimate);
    results.push_back(std::move(row));
  }
  const Json all = {{"schema_version", t4Version}, {"results", std::move(results)}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// RFC 4180.
std::string cell(const std::string &text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos)
    return text;
  std::string out = "\"";
  for (const char c : text)
    out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string csvOf(const JournalContents &journal) {
  std::vector<std::string> names;
  for (const Entry &e : journal.entries)
    for (const auto &[name, value] : e.configuration)
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  std::vector<std::string> head = names;
  for (const char *name : {"outcome", "ms", "min_ms", "max_ms", "estimate_ms", "seconds", "time", "message"})
    head.emplace_back(name);
  std::string out = join(head, ",") + "\r\n";
  const auto number = [](double value) { return Json(value).dump(); };
  for (const Entry &e : journal.entries) {
    std::vector<std::string> row;
    for (const std::string &name : names) {
      const auto found = std::find_if(e.configuration.begin(), e.configuration.end(),
                                      [&](const auto &of) { return of.first == name; });
      row.push_back(found == e.configuration.end() ? "" : cell(found->second));
    }
    row.emplace_back(outcomeName(e.outcome));
    for (const double value : {e.milliseconds, e.least, e.greatest})
      row.push_back(e.good() ? number(value) : "");
    row.push_back(e.estimate ? number(*e.estimate) : "");
    row.push_back(number(e.seconds));
    row.push_back(cell(e.time));
    row.push_back(cell(e.message));
    out += join(row, ",") + "\r\n";
  }
  return out;
}

} // namespace

Result<std::string> exportJournal(const JournalContents &journal, const std::string &format,
                                  const JournalContents *other) {
  if (format == "html")
    return htmlReport(journal, other);
  if (other)
    return Status::invalid("--compare goes with --export html, not with " + format, "leave it out");
  if (format == "t4")
    return t4Of(journal);
  if (format == "csv")
    return csvOf(journal);
  return Status::invalid("--export " + format + ": there is no such format", "the formats are t4, csv, html");
}

} // namespace kiln::tune
