#include "runtime/model/Hardware.h"

#include "support/Text.h"

#include <string>
#include <vector>

namespace kiln::model {

static constexpr Hardware table[] = {
#define KILN_HARDWARE(...) {__VA_ARGS__},
#include "runtime/model/Hardware.def"
};

Result<Hardware> hardwareOf(const Target &target) {
  for (const Hardware &h : table)
    if (h.sm == target.sm)
      return h;
  std::vector<std::string> known;
  for (const Target &t : allTargets())
    for (const Hardware &h : table)
      if (h.sm == t.sm)
        known.emplace_back(t.name);
  return Status::invalid("target " + std::string(target.name) + ": the performance model has no numbers of such a GPU",
                         "it has some for " + join(known));
}

} // namespace kiln::model
