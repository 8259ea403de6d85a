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

inline std::vector<std::vector<unsigned>> pairwise(const std::vector<unsigned> &levels) {
  using Pair = std::tuple<std::size_t, unsigned, std::size_t, unsigned>; // factor, level, later factor, level
  std::set<Pair> open;
  for (std::size_t f = 0; f < levels.size(); ++f)
    for (std::size_t g = f + 1; g < levels.size(); ++g)
      for (unsigned i = 0; i < levels[f]; ++i)
        for (unsigned j = 0; j < levels[g]; ++j)
          open.emplace(f, i, g, j);
  std::vector<std::vector<unsigned>> rows;
  while (!open.empty()) {
    const auto [first, level, second, other] = *open.begin();
    std::vector<unsigned> row(levels.size());
    std::vector<bool> chosen(levels.size());
    row[first] = level, row[second] = other;
    chosen[first] = chosen[second] = true;
    // Each other factor takes the level that meets the most open pairs with those chosen; ties go round.
    for (std::size_t f = 0; f < levels.size(); ++f) {
      if (chosen[f])
        continue;
      int most = -1;
      for (unsigned turn = 0; turn < levels[f]; ++turn) {
        const auto i = static_cast<unsigned>((turn + rows.size()) % levels[f]);
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
    rows.push_back(row);
  }
  return rows;
}

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_PAIRWISE_H
