//===- Pairwise.h - A few rows that hold every pair of choices -----------------===//
//
// Of factors with n0, n1, .. levels: rows of one level each, such that every two levels of two factors stand together
// in some row.  Greedy and the same in every run.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_PAIRWISE_H
#define KILN_TESTS_KERNELS_PAIRWISE_H

#include <cstddef>
#include <set>
#include <tuple>
#include <vector>

namespace kiln::test {

/// The pairs of levels that no row holds yet.
class OpenPairs {
public:
  using Row = std::vector<unsigned>;
  using Pair = std::tuple<std::size_t, unsigned, std::size_t, unsigned>; // factor, level, later factor, level

  explicit OpenPairs(const std::vector<unsigned> &levels) : levels(levels) {
    for (std::size_t f = 0; f < levels.size(); ++f)
      for (std::size_t g = f + 1; g < levels.size(); ++g)
        for (unsigned i = 0; i < levels[f]; ++i)
          for (unsigned j = 0; j < levels[g]; ++j)
            open.emplace(f, i, g, j);
  }
  bool empty() const { return open.empty(); }
  const Pair &first() const { return *open.begin(); }

  /// Each factor that is not chosen takes the level that meets the most open pairs with those that are; `tie(factor)`
  /// says where to begin to look.  The row's pairs are closed then.
  template <typename Tie> void complete(Row &row, std::vector<bool> chosen, Tie tie) {
    for (std::size_t f = 0; f < levels.size(); ++f) {
      if (chosen[f])
        continue;
      int most = -1;
      for (unsigned turn = 0; turn < levels[f]; ++turn) {
        const auto i = static_cast<unsigned>((turn + tie(f)) % levels[f]);
        int met = 0;
        for (std::size_t g = 0; g < levels.size(); ++g)
          if (chosen[g])
            met += static_cast<int>(open.count(f < g ? Pair(f, i, g, row[g]) : Pair(g, row[g], f, i)));
        if (met > most)
          most = met, row[f] = i;
      }
      chosen[f] = true;
    }
    for (std::size_t f = 0; f < levels.size(); ++f)
      for (std::size_t g = f + 1; g < levels.size(); ++g)
        open.erase({f, row[f], g, row[g]});
  }

private:
  std::vector<unsigned> levels;
  std::set<Pair> open;
};

inline std::vector<std::vector<unsigned>> pairwise(const std::vector<unsigned> &levels) {
  OpenPairs open(levels);
  std::vector<std::vector<unsigned>> rows;
  while (!open.empty()) {
    const auto [first, level, second, other] = open.first();
    std::vector<unsigned> row(levels.size());
    std::vector<bool> chosen(levels.size());
    row[first] = level, row[second] = other;
    chosen[first] = chosen[second] = true;
    open.complete(row, chosen, [&](std::size_t) { return rows.size(); });
    rows.push_back(row);
  }
  return rows;
}

/// Every combination of the first `core` factors, each with levels of the others, so that every pair is held.  Empty
/// if the combinations are too few for that.
inline std::vector<std::vector<unsigned>> pairwiseOver(const std::vector<unsigned> &levels, std::size_t core) {
  OpenPairs open(levels);
  std::vector<bool> chosen(levels.size());
  std::size_t combinations = 1;
  for (std::size_t f = 0; f < core; ++f)
    chosen[f] = true, combinations *= levels[f];
  std::vector<std::vector<unsigned>> rows;
  for (std::size_t n = 0; n < combinations; ++n) {
    std::vector<unsigned> row(levels.size());
    for (std::size_t f = 0, rest = n; f < core; rest /= levels[f++])
      row[f] = static_cast<unsigned>(rest % levels[f]);
    open.complete(row, chosen, [&](std::size_t f) { return n >> (f - core); });
    rows.push_back(row);
  }
  return open.empty() ? rows : std::vector<std::vector<unsigned>>();
}

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_PAIRWISE_H
