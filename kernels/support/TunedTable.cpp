#include "kernels/support/TunedTable.h"

namespace kiln::kernels {

std::string bucketsText(std::span<const TunedSize> sizes) {
  std::string out;
  for (const TunedSize &size : sizes)
    out += (out.empty() ? "" : ", ") + std::string(size.name) + " " + std::to_string(bucketOf(size.value));
  return out;
}

} // namespace kiln::kernels
