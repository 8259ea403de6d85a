//===- HtmlReport.h - A sweep to look at --------------------------------------===//
//
// One page without scripts and without anything that is loaded: how the search went, the best configurations with the
// spread of their samples, how near they come to the device's roofs (Williams et al., "Roofline", 2009), which
// parameters matter, how good the model's estimates were, and why others failed; and two sweeps next to each other.
//
// The importance of a parameter is the share of the variance of the logarithms of times that the means by its values
// have (of a whole space the first-order Sobol index; Saltelli et al., "Global Sensitivity Analysis", 2008): those of
// parameters that act together do not add up to 1, and of a part of a space it is that part's.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_HTMLREPORT_H
#define KILN_RUNTIME_TUNE_HTMLREPORT_H

#include "runtime/tune/Journal.h"

namespace kiln::tune {

struct Importance {
  std::string parameter;
  double share = 0; ///< 0 to 1
};
/// Of the good configurations, the greatest first; parameters with one value are left out.
std::vector<Importance> importances(const std::vector<Entry> &entries);

/// `other`: null, or a sweep to compare with.
std::string htmlReport(const JournalContents &sweep, const JournalContents *other);

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_HTMLREPORT_H
