#include "kernels/support/TunedTable.h"

namespace kiln::kernels {

std::string bucketsText(std::span<const TunedSize> sizes) {
  std::string out;
  for (const TunedSize &size : sizes)
    out += (out.empty() ? "" : ", ") + std::string(size.name) + " " + std::to_string(bucketOf(size.value));
  return out;
}

std::vector<std::string> tilingOptions(std::string_view part, bool depth) {
  std::vector<std::string> out;
  const Tiling none;
  Tiling::options(
      none,
      [&](const CallOption &option, int) {
        out.push_back(part.empty() ? option.name : std::string(part) + "_" + option.name);
      },
      depth);
  return out;
}

std::optional<Tiling> tilingOf(const TunedValues &values, bool depth) {
  Tiling out;
  std::size_t next = 0;
  bool isRight = true;
  Tiling::options(
      out,
      [&](const CallOption &option, int &field) {
        const std::int64_t value = next < values.size() ? values[next] : -1;
        ++next;
        isRight &= value == 0 || (value > 0 && option.values.take(value));
        field = isRight ? static_cast<int>(value) : 0;
      },
      depth);
  return isRight && next == values.size() ? std::optional(out) : std::nullopt;
}

} // namespace kiln::kernels
