#include "runtime/tools/FirstCalls.h"

#include "support/Text.h"

namespace kiln::tools {
namespace {

constexpr std::string_view compilePart = "compile: ";

std::string_view sourceName(FirstCallReport::Source source) {
  switch (source) {
  case FirstCallReport::Source::Memory:
    return "memory";
  case FirstCallReport::Source::Disk:
    return "disk";
  case FirstCallReport::Source::Shared:
    return "shared";
  case FirstCallReport::Source::Compiled:
    return "compiled";
  }
  return "?";
}

} // namespace

void FirstCalls::collect(JitOptions &options) {
  options.explainMisses = true;
  options.onFirstCall = [this](const LoadedKernel &loaded) {
    const std::lock_guard lock(mutex);
    calls.push_back({loaded.name(), loaded.variant(), loaded.report()});
  };
}

Json FirstCalls::toJson() const {
  Json out = Json::array();
  for (const Call &call : calls) {
    Json stages = Json::array();
    for (const FirstCallReport::Stage &s : call.report.stages)
      stages.push_back({{"name", s.name}, {"milliseconds", s.milliseconds}});
    out.push_back({{"kernel", call.kernel},
                   {"variant", call.variant},
                   {"source", sourceName(call.report.source)},
                   {"reason", call.report.reason},
                   {"explanation", call.report.explanation},
                   {"milliseconds", call.report.milliseconds},
                   {"stages", std::move(stages)}});
  }
  return out;
}

Json FirstCalls::textJson() const {
  return text ? Json{{"milliseconds", text->milliseconds}, {"remembered", text->remembered}} : Json();
}

double FirstCalls::milliseconds() const {
  double sum = 0;
  for (const Call &call : calls)
    sum += call.report.milliseconds;
  return sum;
}

std::string stagesText(const FirstCallReport &report) {
  std::string out;
  bool inside = false;
  for (const FirstCallReport::Stage &s : report.stages) {
    const bool part = s.name.starts_with(compilePart);
    out += part && !inside ? " (" : !part && inside ? "), " : out.empty() ? "" : ", ";
    inside = part;
    out += (part ? s.name.substr(compilePart.size()) : s.name) + format(" %.2f", s.milliseconds);
  }
  return out + (inside ? ") ms" : " ms");
}

std::string FirstCalls::toString(bool whole) const {
  std::string out;
  if (text)
    out = format("text: arguments %s; %.2f ms\n", text->remembered ? "remembered" : "read by the compiler",
                 text->milliseconds);
  for (const Call &call : calls) {
    const FirstCallReport &r = call.report;
    out += "kernel " + call.kernel + " [" + call.variant + "]: ";
    out += r.source == FirstCallReport::Source::Compiled ? "compiled: " + r.reason
                                                         : "from the cache (" + std::string(sourceName(r.source)) + ")";
    out += format("; %.2f ms\n  ", r.milliseconds) + stagesText(r) + "\n";
    if (!whole || r.explanation.empty())
      continue;
    out += "  how the key differs from the nearest entry's:\n";
    for (std::string_view line : split(r.explanation, '\n'))
      out += "    " + std::string(line) + "\n";
  }
  return out;
}

} // namespace kiln::tools
