#include "kernels/support/Redzones.h"

#include "support/Text.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace kiln::kernels {
namespace {

/// No two neighbours are equal, and no value that a kernel stores again and again is the pattern: it differs from place
/// to place.
const std::vector<std::byte> &pattern() {
  static const std::vector<std::byte> all = [] {
    std::vector<std::byte> out(redzoneBytes);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<std::byte>((i * 0x9E3779B1u) >> 24);
    return out;
  }();
  return all;
}

struct Difference {
  std::size_t count = 0, first = 0, last = 0;
};

Difference differenceOf(std::span<const std::byte> is, std::span<const std::byte> wanted) {
  Difference out;
  if (std::memcmp(is.data(), wanted.data(), is.size()) == 0) // by far the most
    return out;
  for (std::size_t i = 0; i < is.size(); ++i)
    if (is[i] != wanted[i]) {
      if (!out.count++)
        out.first = i;
      out.last = i;
    }
  return out;
}

std::string bytesText(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

} // namespace

Status fillRedzones(Buffer &buffer) {
  KILN_TRY(buffer.copyFromHost(0, pattern()));
  return buffer.copyFromHost(buffer.size() - redzoneBytes, pattern());
}

Result<std::optional<std::string>> redzoneDamage(const Buffer &buffer, const std::string &name) {
  std::vector<std::byte> zone(redzoneBytes);
  KILN_TRY(buffer.copyToHost(0, zone));
  const Difference before = differenceOf(zone, pattern());
  KILN_TRY(buffer.copyToHost(buffer.size() - redzoneBytes, zone));
  const Difference after = differenceOf(zone, pattern());
  if (!before.count && !after.count)
    return std::optional<std::string>();
  const std::size_t toBegin = redzoneBytes - before.last, toEnd = after.first + 1;
  std::string out = "it wrote outside of '" + name + "': ";
  if (before.count)
    out += bytesText(before.count) + " before it, the nearest " + bytesText(toBegin) + " before its first";
  if (after.count)
    out += (before.count ? ", and " : "") + bytesText(after.count) + " after it, the nearest " + bytesText(toEnd) +
           " after its last";
  return std::optional(out);
}

Result<std::optional<std::string>> inputDamage(const Buffer &buffer, std::size_t offset, const std::string &name,
                                               std::span<const std::byte> wanted, std::size_t turn) {
  if (wanted.empty())
    return std::optional<std::string>();
  const std::size_t pieces = (wanted.size() - 1) / inputPieceBytes + 1, at = turn % pieces * inputPieceBytes;
  const std::span<const std::byte> piece = wanted.subspan(at, std::min(inputPieceBytes, wanted.size() - at));
  std::vector<std::byte> is(piece.size());
  KILN_TRY(buffer.copyToHost(offset + at, is));
  const Difference d = differenceOf(is, piece);
  if (!d.count)
    return std::optional<std::string>();
  return std::optional("it changed its input '" + name + "': " + bytesText(d.count) + ", the first at byte " +
                       std::to_string(at + d.first) + " of it");
}

} // namespace kiln::kernels
