#include "runtime/tune/Confirm.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace kiln::tune {
namespace {

double medianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/// Between the quartiles: one round that something disturbed says nothing.
double rangeOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() - 1 - values.size() / 4] - values[values.size() / 4];
}

} // namespace

Result<std::vector<Confirmed>> confirm(const std::vector<Entry> &entries, const Measure &measure,
                                       const ConfirmOptions &options) {
  std::vector<Confirmed> out;
  for (const Entry &e : entries)
    if (e.good())
      out.push_back({e, {}, 0, false});
  std::stable_sort(out.begin(), out.end(),
                   [](const Confirmed &a, const Confirmed &b) { return isBetter(a.entry, b.entry); });
  std::vector<Confirmed> rest(
      std::make_move_iterator(out.begin() + static_cast<std::ptrdiff_t>(std::min(out.size(), options.best))),
      std::make_move_iterator(out.end()));
  out.resize(out.size() - rest.size());
  if (options.best > 0)
    for (Confirmed &c : rest)
      if (c.entry.isDefault)
        out.push_back(std::move(c));
  const auto isInterrupted = [&] { return options.interrupted && options.interrupted->load(); };
  std::size_t whole = 0; // rounds
  std::vector<Confirmed> failures;
  for (unsigned round = 0; round < options.rounds && out.size() > 1; ++round) {
    std::vector<std::size_t> failed;
    for (std::size_t i = 0; i < out.size() && !isInterrupted(); ++i) {
      const std::size_t at = round % 2 ? out.size() - 1 - i : i;
      Configuration configuration;
      for (const auto &[name, value] : out[at].entry.configuration)
        configuration.push_back(value);
      Result<Entry> again = measure(configuration, 0);
      if (!again && isInterrupted())
        break;
      if (!again)
        return again.takeStatus();
      if (again->good())
        out[at].rounds.push_back(again->milliseconds);
      else
        failed.push_back(at), out[at].failure = std::move(*again);
    }
    if (isInterrupted()) // what the signal did to the last measurement is not known
      break;
    ++whole;
    std::sort(failed.rbegin(), failed.rend());
    for (const std::size_t at : failed) {
      failures.push_back(std::move(out[at]));
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  if (whole == 0 || out.size() + failures.size() < 2)
    return std::vector<Confirmed>();
  for (Confirmed &c : out)
    c.rounds.resize(whole);

  // What a round is slower than another is the same for all in it.
  std::vector<double> means(whole);
  double mean = 0;
  for (std::size_t round = 0; round < whole; ++round) {
    for (const Confirmed &c : out)
      means[round] += c.rounds[round] / static_cast<double>(out.size());
    mean += means[round] / static_cast<double>(whole);
  }
  const auto levelled = [&](const Confirmed &c) {
    std::vector<double> values;
    for (std::size_t round = 0; round < whole; ++round)
      values.push_back(c.rounds[round] / means[round] * mean);
    return values;
  };
  for (Confirmed &c : out)
    c.median = medianOf(levelled(c));
  std::stable_sort(out.begin(), out.end(), [](const Confirmed &a, const Confirmed &b) { return a.median < b.median; });
  for (std::size_t i = 1; i < out.size(); ++i)
    out[i].isTied = out[i].median - out[0].median <= std::max(rangeOf(levelled(out[i])), rangeOf(levelled(out[0])));
  out.insert(out.end(), std::make_move_iterator(failures.begin()), std::make_move_iterator(failures.end()));
  return out;
}

const Confirmed &clearlyBest(const std::vector<Confirmed> &confirmed) {
  const Confirmed &first = confirmed.front();
  const auto usual =
      std::ranges::find_if(confirmed, [](const Confirmed &c) { return c.entry.isDefault && !c.failure; });
  if (usual == confirmed.end())
    return first;
  return std::ranges::max(first.rounds) < std::ranges::min(usual->rounds) ? first : *usual;
}

} // namespace kiln::tune
