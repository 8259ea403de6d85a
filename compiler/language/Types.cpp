#include "compiler/language/Types.h"

#include "compiler/language/Operations.h"

namespace kiln::language {

std::int64_t Shape::elements() const {
  std::int64_t n = 1;
  for (unsigned d = 0; d < count; ++d)
    if (__builtin_mul_overflow(n, dims[d], &n))
      return -1;
  return n;
}

Shape Shape::without(unsigned dim) const {
  Shape out;
  for (unsigned d = 0; d < count; ++d)
    if (d != dim)
      out.append(dims[d]);
  return out;
}

Shape Shape::with(unsigned dim, std::int64_t extent) const {
  Shape out;
  for (unsigned d = 0; d <= count; ++d) {
    if (d == dim)
      out.append(extent);
    if (d < count)
      out.append(dims[d]);
  }
  out.tooMany = out.tooMany || count == maxRank;
  return out;
}

std::string Shape::toString() const {
  std::string out = "[";
  for (unsigned d = 0; d < count; ++d) {
    if (d)
      out += ", ";
    out += std::to_string(dims[d]);
  }
  return out + "]";
}

std::string Shape::problem() const {
  if (count == 0)
    return "a tile has at least one dimension";
  if (tooMany)
    return "a tile has at most " + std::to_string(maxRank) + " dimensions";
  std::int64_t odd = 1, power = 1;
  for (unsigned d = 0; d < count; ++d) {
    if (dims[d] < 1)
      return "the extent " + std::to_string(dims[d]) + " is not positive";
    const std::int64_t low = dims[d] & -dims[d];
    if (dims[d] / low > 15 || (odd *= dims[d] / low) > 15)
      return "extents are powers of two times odd numbers whose product is at most 15";
    if (low > (1 << 20) || (power *= low) > (1 << 20))
      return "a tile has at most 2^20 elements (times its odd factor)";
  }
  return {};
}

static constexpr std::string_view operationNames[] = {
#define KILN_OPERATION(enumerator, name) name,
#include "compiler/language/Operations.def"
#undef KILN_OPERATION
};

std::string_view operationName(Op op) {
  return operationNames[static_cast<unsigned>(op)];
}

std::span<const std::string_view> recordedOperations() {
  return operationNames;
}

} // namespace kiln::language
