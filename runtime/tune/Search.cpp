#include "runtime/tune/Search.h"

#include "support/Text.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <unordered_map>

namespace kiln::tune {
namespace {

/// 0, 1, .., n - 1 in an order that the seed says; std::shuffle's is the library's own.
std::vector<std::size_t> shuffled(std::size_t n, std::uint64_t seed) {
  std::vector<std::size_t> out(n);
  std::iota(out.begin(), out.end(), std::size_t(0));
  std::mt19937_64 random(seed);
  for (std::size_t i = n; i > 1; --i)
    std::swap(out[i - 1], out[random() % i]);
  return out;
}

class InOrder : public Searcher {
public:
  explicit InOrder(std::vector<std::size_t> order) : order(std::move(order)) {}
  std::optional<std::size_t> next() override { return at < order.size() ? std::optional(order[at++]) : std::nullopt; }

private:
  std::vector<std::size_t> order;
  std::size_t at = 0;
};

/// The default, then the first ones by the model.  Then, of the best measured candidate that has neighbours left, the
/// one that the model likes best; every fourth time the model's next instead, so that one good region does not hide
/// another.
class ModelGuided : public Searcher {
public:
  ModelGuided(const Space &space, const std::vector<Candidate> &kept, std::uint64_t seed)
      : order(shuffled(kept.size(), seed)), rank(kept.size()), given(kept.size()), near(kept.size()) {
    // The seed decides between equal ones.
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return orderOf(kept[a]) < orderOf(kept[b]); });
    for (std::size_t i = 0; i < order.size(); ++i)
      rank[order[i]] = i;
    std::unordered_map<std::size_t, std::size_t> places;
    for (std::size_t i = 0; i < kept.size(); ++i)
      places[kept[i].number] = i;
    for (std::size_t i = 0; i < kept.size(); ++i)
      for (const std::size_t number : space.neighbours(kept[i].number))
        if (const auto found = places.find(number); found != places.end())
          near[i].push_back(found->second);
  }

  std::optional<std::size_t> next() override {
    while (front < order.size() && given[order[front]])
      ++front;
    if (front == order.size())
      return {};
    ++asked;
    if (asked > starts && asked % 4 != 0)
      for (const auto &[milliseconds, candidate] : measured)
        if (const std::optional<std::size_t> best = untriedNeighbour(candidate))
          return give(*best);
    return give(order[front]);
  }

  void tell(std::size_t candidate, std::optional<double> milliseconds) override {
    if (!milliseconds)
      return;
    const std::pair entry(*milliseconds, candidate);
    measured.insert(std::upper_bound(measured.begin(), measured.end(), entry), entry);
  }

private:
  static constexpr std::size_t starts = 8;

  std::size_t give(std::size_t candidate) {
    given[candidate] = true;
    return candidate;
  }
  std::optional<std::size_t> untriedNeighbour(std::size_t of) const {
    std::optional<std::size_t> best;
    for (const std::size_t n : near[of])
      if (!given[n] && (!best || rank[n] < rank[*best]))
        best = n;
    return best;
  }

  std::vector<std::size_t> order, rank; ///< by the model, best first; of each candidate its place there
  std::vector<bool> given;
  std::vector<std::vector<std::size_t>> near;
  std::vector<std::pair<double, std::size_t>> measured; ///< fastest first
  std::size_t front = 0, asked = 0;
};

std::unique_ptr<Searcher> makeExhaustive(const Space &, const std::vector<Candidate> &kept, std::uint64_t) {
  std::vector<std::size_t> order(kept.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  return std::make_unique<InOrder>(std::move(order));
}
std::unique_ptr<Searcher> makeRandom(const Space &, const std::vector<Candidate> &kept, std::uint64_t seed) {
  return std::make_unique<InOrder>(shuffled(kept.size(), seed));
}
std::unique_ptr<Searcher> makeModelGuided(const Space &space, const std::vector<Candidate> &kept, std::uint64_t seed) {
  return std::make_unique<ModelGuided>(space, kept, seed);
}

} // namespace

std::string searchNames() {
  std::vector<std::string> names;
#define KILN_TUNE_SEARCH(name, maker, text) names.emplace_back(name);
  KILN_TUNE_SEARCHES
#undef KILN_TUNE_SEARCH
  return join(names);
}

Result<std::unique_ptr<Searcher>> makeSearcher(const std::string &name, const Space &space,
                                               const std::vector<Candidate> &kept, std::uint64_t seed) {
#define KILN_TUNE_SEARCH(its, maker, text)                                                                             \
  if (name == its)                                                                                                     \
    return maker(space, kept, seed);
  KILN_TUNE_SEARCHES
#undef KILN_TUNE_SEARCH
  return Status::invalid("--search " + name + ": there is no such search", "the searches are " + searchNames());
}

} // namespace kiln::tune
