#include "runtime/tools/RunRecording.h"

#include "runtime/tools/CountersReport.h"
#include "runtime/tools/TimelineDrawing.h"
#include "support/ParseNumber.h"
#include "support/Text.h"

#include <cstdio>

namespace kiln::tools {

static bool isPage(const std::string &file) {
  return file.ends_with(".html") || file.ends_with(".htm");
}

/// "4", "4,2" or "4,2,1": missing ones are 0.
static Result<Dim3> parseIndex(const std::string &text) {
  std::uint32_t values[3] = {0, 0, 0};
  const std::vector<std::string_view> pieces = split(text, ',');
  bool good = pieces.size() <= 3;
  for (std::size_t i = 0; good && i < pieces.size(); ++i) {
    const std::optional<std::uint32_t> value = parseNumber<std::uint32_t>(pieces[i]);
    good = value.has_value();
    values[i] = value.value_or(0);
  }
  if (!good)
    return Status::invalid("--timeline-block '" + text + "' is not one to three numbers with commas between",
                           "write it as --timeline-block 0,0,0");
  return Dim3{values[0], values[1], values[2]};
}

Status RunRecording::prepare() {
  recording.counters = o.counters;
  if (o.timeline.empty()) {
    if (!o.timelineBlock.empty() || o.timelineLaunch)
      return Status::invalid("--timeline-block and --timeline-launch say what --timeline draws, which is not given");
    return {};
  }
  if (!isPage(o.timeline) && !o.timeline.ends_with(".svg"))
    return Status::invalid("--timeline " + o.timeline + ": the name ends neither in .svg nor in .html",
                           "the ending says what is written");
  recording.timeline = true;
  if (!o.timelineBlock.empty()) {
    KILN_ASSIGN(recording.timelineBlock, parseIndex(o.timelineBlock));
  }
  KILN_ASSIGN(OutputFile file, OutputFile::create(o.timeline));
  picture.emplace(std::move(file));
  return {};
}

Status RunRecording::start(Device &device) {
  return device.record(recording);
}

Status RunRecording::finish(Device &device, Json &report) {
  counters = device.takeCounters();
  if (o.counters)
    report["counters"] = toJson(counters);
  if (!picture)
    return {};
  const std::vector<Timeline> timelines = device.takeTimelines();
  if (timelines.empty()) { // a finding in another block
    report["timeline"] = nullptr;
    if (!o.json)
      std::printf("timeline: the launch ended before the block began; nothing was drawn\n");
    return {};
  }
  if (o.timelineLaunch >= timelines.size())
    return Status::invalid("--timeline-launch " + std::to_string(o.timelineLaunch) + ": there were " +
                               std::to_string(timelines.size()) + " launches",
                           "launches count from 0");
  const Timeline &drawn = timelines[o.timelineLaunch];
  KILN_TRY(picture->write(isPage(o.timeline) ? timelinePage(drawn) : drawTimeline(drawn)));
  KILN_TRY(picture->commit());
  report["timeline"] = {{"file", o.timeline},
                        {"kernel", drawn.kernel},
                        {"block", drawn.index},
                        {"ticks", drawn.ticks},
                        {"ticksPerCell", drawn.ticksPerCell},
                        {"launches", timelines.size()}};
  if (!o.json)
    std::printf("timeline: kernel '%s', block %u,%u,%u%s -> %s\n", drawn.kernel.c_str(), drawn.index[0], drawn.index[1],
                drawn.index[2],
                timelines.size() > 1 ? format(", launch %u of %zu", o.timelineLaunch, timelines.size()).c_str() : "",
                o.timeline.c_str());
  return {};
}

void RunRecording::print() const {
  printCounters(counters);
}

} // namespace kiln::tools
