//===- FuzzTally.h - What a fuzzer has executed, by cell -------------------===//
//
// A cell is strategy x class of targets x element width.  The fuzzer aims at the emptiest cell, and the test demands a
// minimum of executed plans in every cell that can exist.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_LAYOUT_FUZZTALLY_H
#define KILN_TESTS_LAYOUT_FUZZTALLY_H

#include "compiler/layout/ConversionPlan.h"
#include "compiler/target/Target.h"
#include "support/Text.h"

#include <cstdint>
#include <string>

namespace kiln::test {

/// Targets that the planner cannot tell apart.
enum class TargetClass : unsigned char { LdmatrixOnly, MmaToMma, Clusters };
constexpr unsigned numTargetClasses = 3, numStrategies = 6, numWidths = 5;
constexpr unsigned tallyWidths[numWidths] = {1, 8, 16, 32, 64};

inline TargetClass classOf(const Target &t) {
  return t.has(Capability::Clusters)   ? TargetClass::Clusters
         : t.has(Capability::MmaToMma) ? TargetClass::MmaToMma
                                       : TargetClass::LdmatrixOnly;
}

/// 4-bit elements are stored as 1-bit ones are, in a byte each.
inline unsigned widthIndex(unsigned bits) {
  return bits < 8 ? 0 : bits == 8 ? 1 : bits == 16 ? 2 : bits == 32 ? 3 : 4;
}

class FuzzTally {
public:
  struct Cell {
    unsigned strategy = 0, target = 0, width = 0;
  };

  void add(const layout::ConversionPlan &plan, const Target &target) {
    ++count[static_cast<unsigned>(plan.strategy)][static_cast<unsigned>(classOf(target))][widthIndex(plan.elementBits)];
  }
  static bool canExist(const Cell &c) {
    return c.strategy != static_cast<unsigned>(layout::Strategy::MmaToMma) ||
           c.target == static_cast<unsigned>(TargetClass::MmaToMma);
  }
  std::uint64_t at(const Cell &c) const { return count[c.strategy][c.target][c.width]; }
  template <typename F> static void forEach(F &&visit) {
    for (unsigned s = 0; s < numStrategies; ++s)
      for (unsigned t = 0; t < numTargetClasses; ++t)
        for (unsigned w = 0; w < numWidths; ++w)
          if (canExist({s, t, w}))
            visit(Cell{s, t, w});
  }
  Cell emptiest() const {
    Cell least;
    forEach([&](Cell c) {
      if (at(c) < at(least))
        least = c;
    });
    return least;
  }
  std::string table() const {
    std::string out = "  executed plans         bits        1/4        8       16       32       64\n";
    constexpr const char *targets[] = {"ldmatrix only", "mma_to_mma", "clusters"};
    for (unsigned s = 0; s < numStrategies; ++s) {
      for (unsigned t = 0; t < numTargetClasses; ++t) {
        out += format("  %-17s%-14s", std::string(strategyName(layout::Strategy(s))).c_str(), targets[t]);
        for (unsigned w = 0; w < numWidths; ++w)
          out += canExist({s, t, w}) ? format(" %8llu", (unsigned long long)count[s][t][w]) : "        -";
        out += "\n";
      }
    }
    return out;
  }

private:
  std::uint64_t count[numStrategies][numTargetClasses][numWidths] = {};
};

} // namespace kiln::test

#endif // KILN_TESTS_LAYOUT_FUZZTALLY_H
