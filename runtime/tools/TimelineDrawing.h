//===- TimelineDrawing.h - A block's time as a picture --------------------===//
#ifndef KILN_RUNTIME_TOOLS_TIMELINEDRAWING_H
#define KILN_RUNTIME_TOOLS_TIMELINEDRAWING_H

#include "kiln/Timeline.h"

#include <string>

namespace kiln::tools {

/// One SVG: a row a warp, instructions by class, waits hatched, asynchronous operations below; titles when the mouse
/// rests on something.
std::string drawTimeline(const Timeline &timeline);
/// The same as a page of its own.
std::string timelinePage(const Timeline &timeline);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_TIMELINEDRAWING_H
