#include "runtime/tools/TuneReport.h"

#include "support/Text.h"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace kiln::tools {
namespace {

using namespace tune;

/// Configurations that a report lists.
constexpr std::size_t shown = 5;

std::vector<Candidate> bestEstimates(const Pruned &pruned) {
  std::vector<Candidate> out = pruned.kept;
  const auto cost = [](const Candidate &c) { return c.estimate.value_or(std::numeric_limits<double>::infinity()); };
  std::stable_sort(out.begin(), out.end(), [&](const Candidate &a, const Candidate &b) { return cost(a) < cost(b); });
  out.resize(std::min(out.size(), shown));
  return out;
}

std::vector<Entry> bestMeasured(const SweepResult &result) {
  std::vector<Entry> out;
  for (const Entry &e : result.entries)
    if (e.good())
      out.push_back(e);
  std::stable_sort(out.begin(), out.end(), [](const Entry &a, const Entry &b) { return tune::isBetter(a, b); });
  out.resize(std::min(out.size(), shown));
  return out;
}

std::string_view endName(SweepEnd end) {
  constexpr std::string_view names[] = {"complete", "budget", "interrupted"};
  return names[static_cast<unsigned>(end)];
}

std::string msText(const std::optional<double> &ms) {
  return ms ? format("%.4f", *ms) : "-";
}

} // namespace

Json spaceJson(const Space &space, const Pruned &pruned) {
  Json out = {{"size", space.size()}, {"parameters", Json::object()}, {"rejected", Json::array()}};
  for (const Parameter &p : space.parameters())
    out["parameters"][p.name] = p.values;
  for (unsigned r = 0; r < rules; ++r)
    if (pruned.rejected[r])
      out["rejected"].push_back(
          {{"rule", ruleName(static_cast<Rule>(r))}, {"count", pruned.rejected[r]}, {"example", pruned.example[r]}});
  out["kept"] = pruned.kept.size();
  out["slowestRejectionMs"] = pruned.slowestMilliseconds;
  for (const Candidate &c : pruned.kept)
    if (c.isDefault)
      out["default"] = space.text(space.at(c.number));
  out["best"] = Json::array();
  for (const Candidate &c : bestEstimates(pruned)) {
    Json row = {{"configuration", space.text(space.at(c.number))}};
    if (c.estimate)
      row["estimateMs"] = *c.estimate;
    out["best"].push_back(std::move(row));
  }
  return out;
}

void printSpace(const Space &space, const Pruned &pruned, bool withBest) {
  std::vector<std::vector<std::string>> table = {{"configurations", "", "the first of them"}};
  table.push_back({std::to_string(space.size()), "in the space", ""});
  for (unsigned r = 0; r < rules; ++r)
    if (pruned.rejected[r])
      table.push_back({std::to_string(pruned.rejected[r]), "rejected: " + std::string(ruleName(static_cast<Rule>(r))),
                       pruned.example[r]});
  table.push_back({std::to_string(pruned.kept.size()), "kept", ""});
  printTable(table);
  if (pruned.slowestMilliseconds > 0)
    std::printf("each rejected in %.3f ms or less\n", pruned.slowestMilliseconds);
  for (const Candidate &c : pruned.kept)
    if (c.isDefault)
      std::printf("the default: %s\n", space.text(space.at(c.number)).c_str());
  if (!withBest || pruned.kept.empty() || !bestEstimates(pruned)[0].estimate)
    return;
  table = {{"estimate ms", "the model's best; for an order, not a time"}};
  for (const Candidate &c : bestEstimates(pruned))
    table.push_back({msText(c.estimate), space.text(space.at(c.number))});
  printTable(table);
}

Json sweepJson(const SweepResult &result, const Entry *usual) {
  const SweepState &s = result.state;
  Json out = {{"measured", s.done},          {"known", s.known},           {"end", endName(result.end)},
              {"seconds", s.seconds},        {"failures", Json::object()}, {"best", Json::array()},
              {"convergence", Json::array()}};
  for (unsigned i = 0; i < outcomes; ++i)
    if (s.failures[i])
      out["failures"][std::string(outcomeName(static_cast<Outcome>(i)))] = s.failures[i];
  for (const Entry &e : bestMeasured(result))
    out["best"].push_back(toJson(e));
  for (const auto &[count, ms] : s.convergence)
    out["convergence"].push_back({{"measured", count}, {"ms", ms}});
  for (const NoteCount &n : countNotes(result.entries))
    out["notes"].push_back({{"note", n.note}, {"count", n.count}, {"example", n.first->key()}});
  if (usual)
    out["default"] = toJson(*usual);
  return out;
}

void printSweep(const SweepResult &result, const Entry *usual) {
  const SweepState &s = result.state;
  std::vector<std::vector<std::string>> table = {{"ms", "estimate ms", "configuration"}};
  for (const Entry &e : bestMeasured(result))
    table.push_back({format("%.4f", e.milliseconds), msText(e.estimate), e.key()});
  printTable(table);
  if (usual && !usual->good())
    std::printf("the default, %s, is not good: %s\n", usual->key().c_str(),
                std::string(outcomeName(usual->outcome)).c_str());
  else if (usual)
    std::printf("the default, %s, takes %.4f ms: %.1f %% more than the best\n", usual->key().c_str(),
                usual->milliseconds, 100 * (usual->milliseconds / s.best->milliseconds - 1));
  std::string counts = std::to_string(s.done) + " measured, " + std::to_string(s.known) + " known before";
  for (unsigned i = 0; i < outcomes; ++i)
    if (s.failures[i])
      counts += ", " + std::to_string(s.failures[i]) + " " + std::string(outcomeName(static_cast<Outcome>(i)));
  std::printf("%s; %s\n", counts.c_str(), std::string(endName(result.end)).c_str());
  for (const NoteCount &n : countNotes(result.entries))
    std::printf("doubtful though measured twice: %zu %s (%s)\n", n.count, n.note.c_str(), n.first->key().c_str());
}

Json confirmedJson(const std::vector<Confirmed> &confirmed) {
  Json out = Json::array();
  for (const Confirmed &c : confirmed) {
    if (c.failure) {
      out.push_back({{"configuration", toJson(c.entry)["configuration"]},
                     {"outcome", outcomeName(c.failure->outcome)},
                     {"message", c.failure->message}});
      continue;
    }
    Json row = {{"configuration", toJson(c.entry)["configuration"]},
                {"ms", c.median},
                {"rounds", c.rounds},
                {"sweepMs", c.entry.milliseconds}};
    if (&c != &confirmed.front())
      row["tied"] = c.isTied;
    out.push_back(std::move(row));
  }
  return out;
}

void printConfirmed(const std::vector<Confirmed> &confirmed) {
  std::vector<std::vector<std::string>> table = {{"again, ms", "least", "most", "", "measured in turn"}};
  for (const Confirmed &c : confirmed) {
    if (c.failure) {
      table.push_back(
          {"-", "-", "-", std::string(outcomeName(c.failure->outcome)), c.entry.key() + ": " + c.failure->message});
      continue;
    }
    const auto [least, most] = std::minmax_element(c.rounds.begin(), c.rounds.end());
    table.push_back({format("%.4f", c.median), format("%.4f", *least), format("%.4f", *most),
                     &c == &confirmed.front() ? "the winner"
                     : c.isTied               ? "as fast"
                                              : format("+%.1f %%", 100 * (c.median / confirmed[0].median - 1)),
                     c.entry.key()});
  }
  printTable(table);
}

Json keptJson(const std::vector<TuneCall::Kept> &kept) {
  Json out = Json::array();
  for (const TuneCall::Kept &k : kept) {
    Json row = {{"operation", k.question.operation}};
    if (!k.question.part.empty())
      row["part"] = k.question.part;
    row.update({{"types", k.question.types}, {"configuration", k.question.configuration}, {"sizes", k.question.sizes}});
    for (std::size_t i = 0; i < k.values.size(); ++i)
      row["values"][k.question.options[i]] = k.values[i];
    out.push_back(std::move(row));
  }
  return out;
}

void printKept(const std::vector<TuneCall::Kept> &kept) {
  for (const TuneCall::Kept &k : kept) {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < k.values.size(); ++i)
      values.push_back(k.question.options[i] + "=" + std::to_string(k.values[i]));
    std::printf("kept for later calls of %s with sizes to %s: %s\n", k.question.operation.c_str(),
                k.question.sizes.c_str(), join(values).c_str());
  }
}

Status noGood(const SweepResult &result) {
  std::vector<std::string> parts;
  for (unsigned i = 0; i < outcomes; ++i)
    if (result.state.failures[i])
      for (const Entry &e : result.entries)
        if (e.outcome == static_cast<Outcome>(i)) {
          parts.push_back(std::to_string(result.state.failures[i]) + " " + std::string(outcomeName(e.outcome)) + " (" +
                          e.key() + ": " + e.message + ")");
          break;
        }
  return Status(StatusCode::Findings,
                "no configuration is good: " + (parts.empty() ? "none was measured" : join(parts)),
                "widen the space: --set NAME=V1,V2");
}

} // namespace kiln::tools
