#include "runtime/tune/Replay.h"

#include "support/ParseNumber.h"

#include <algorithm>

namespace kiln::tune {

/// Numbers by size, so that neighbours are alike; words as they come.
static void sortValues(std::vector<std::string> &values) {
  const auto number = [](const std::string &text) { return parseNumber<double>(text); };
  if (std::all_of(values.begin(), values.end(), [&](const std::string &v) { return number(v).has_value(); }))
    std::sort(values.begin(), values.end(),
              [&](const std::string &a, const std::string &b) { return *number(a) < *number(b); });
}

Result<Replay> Replay::create(const JournalContents &journal) {
  std::vector<Parameter> parameters;
  for (const Entry &e : journal.entries) {
    if (parameters.empty())
      for (const auto &[name, value] : e.configuration)
        parameters.push_back({name, {}});
    for (std::size_t i = 0; i < std::max(parameters.size(), e.configuration.size()); ++i) {
      if (i >= parameters.size() || i >= e.configuration.size() || parameters[i].name != e.configuration[i].first)
        return Status::invalid("the journal's configuration '" + e.key() + "' has other parameters than its first",
                               "name a journal of one space");
      std::vector<std::string> &values = parameters[i].values;
      if (std::find(values.begin(), values.end(), e.configuration[i].second) == values.end())
        values.push_back(e.configuration[i].second);
    }
  }
  for (Parameter &p : parameters)
    sortValues(p.values);
  KILN_ASSIGN(Space space, Space::create(std::move(parameters)));
  Replay out(std::move(space));
  for (const Entry &e : journal.entries) {
    Configuration configuration;
    for (const auto &[name, value] : e.configuration)
      configuration.push_back(value);
    out.entries[*out.stored.numberOf(configuration)] = e;
  }
  bool any = false;
  for (const auto &[number, e] : out.entries) {
    out.kept.push_back({number, e.estimate, e.isDefault});
    if (e.good() && (!any || isBetter(e, out.best())))
      out.fastest = number, any = true;
  }
  if (!any)
    return Status::invalid("the journal has no good configuration: there is nothing to find", "name another one");
  return out;
}

Result<Entry> Replay::measure(const Configuration &configuration) const {
  const auto found = entries.find(stored.numberOf(configuration).value_or(Space::most));
  if (found == entries.end())
    return Status(StatusCode::NotFound, "the journal does not have " + stored.text(configuration));
  return found->second;
}

} // namespace kiln::tune
