#include "runtime/device/emulator/async/BoxWalk.h"

namespace kiln::emulator {

BoxWalk::BoxWalk(const TensorMapRecipe &map, const std::int32_t *coordinates, std::uint32_t unitBytes)
    : elementBytes(tensorMapTypeBytes(map.type)), rowElements(map.box[0]), rowBytes(rowElements * elementBytes),
      pitch(std::max(rowBytes, tensorMapSwizzleBytes(map.swizzle))), rows(1), swizzle(map.swizzle),
      chunk(swizzleChunk(map.swizzle)), rank(map.rank), address(map.address) {
  for (unsigned i = 0; i < rank; ++i) {
    first[i] = coordinates[i];
    dims[i] = map.dims[i];
    steps[i] = i ? map.elementStrides[i] : 1;
    strides[i] = i ? map.strides[i - 1] : elementBytes;
    counts[i] = (map.box[i] + steps[i] - 1) / steps[i];
    if (i)
      rows *= counts[i];
  }
  const std::uint64_t units = (dims[0] * elementBytes + unitBytes - 1) / unitBytes;
  dims[0] = std::max(dims[0], units * unitBytes / elementBytes);
  denseBytes = rows * rowBytes;
  spanBytes = (rows - 1) * pitch + rowBytes;
}

BoxRow BoxWalk::row(std::uint64_t index) const {
  BoxRow r;
  r.shared = static_cast<std::uint32_t>(index * pitch);
  r.global = address + static_cast<std::uint64_t>(first[0]) * elementBytes;
  for (unsigned i = 1; i < rank; ++i) {
    const std::int64_t c = first[i] + std::int64_t(index % counts[i]) * steps[i];
    index /= counts[i];
    if (c < 0 || static_cast<std::uint64_t>(c) >= dims[i])
      return r;
    r.global += static_cast<std::uint64_t>(c) * strides[i];
  }
  const std::int64_t size = static_cast<std::int64_t>(dims[0]), width = rowElements;
  r.begin = static_cast<std::uint32_t>(std::clamp<std::int64_t>(-first[0], 0, width));
  r.end = static_cast<std::uint32_t>(std::clamp<std::int64_t>(size - first[0], r.begin, width));
  return r;
}

} // namespace kiln::emulator
