//===- PlanMutations.h - Every small way to break a plan -------------------===//
#ifndef KILN_TESTS_LAYOUT_PLANMUTATIONS_H
#define KILN_TESTS_LAYOUT_PLANMUTATIONS_H

#include "compiler/layout/ConversionPlan.h"

#include <functional>
#include <string>
#include <vector>

namespace kiln::test {

/// One change of one field.
struct Mutation {
  std::string field; ///< "place: drop a term", "store.lane", ..: the row of the table
  bool declared;     ///< the field is a number that others rely on, not a step: no change of it is harmless
  std::function<void(layout::ConversionPlan &)> apply;
};

/// All single changes of a plan's steps and numbers: bits of masks, dropped and exchanged entries, numbers off by one.
std::vector<Mutation> allMutations(const layout::ConversionPlan &plan);

} // namespace kiln::test

#endif // KILN_TESTS_LAYOUT_PLANMUTATIONS_H
