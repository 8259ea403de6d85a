//===- MatrixTest.cpp - Kernels x devices x types x sizes x places -------------===//
//
// Full tier: every kernel, device, type and shape with dense tensors, and every other placing on one device, in turn.
// Default tier: of each kernel and device a fixed sample; the samples of the devices are disjoint.  A GPU runs all.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/Bench.h"
#include "tests/support/TestTier.h"

#include <algorithm>
#include <random>

namespace kiln::test {
namespace {

using namespace kernels;

struct Places {
  Place in, out;
};
constexpr Places allPlaces[] = {
    {Place::Dense, Place::Dense},    {Place::Offset, Place::Offset},   {Place::Padded, Place::Dense},
    {Place::Dense, Place::Padded},   {Place::Steps, Place::Swapped},   {Place::Swapped, Place::Dense},
    {Place::Dense, Place::Swapped},  {Place::Swapped, Place::Swapped}, {Place::Repeated, Place::Dense},
    {Place::Reversed, Place::Steps}, {Place::Offset, Place::Dense},    {Place::Dense, Place::Offset},
};

struct Entry {
  DType dtype;
  Shape shape;
  Places places;
  bool affine;
};

constexpr std::uint64_t large = 1 << 18; // elements

std::uint64_t elementsOf(const Shape &shape) {
  std::uint64_t n = 1;
  for (std::uint64_t extent : shape)
    n *= extent;
  return n;
}

std::vector<Shape> shapesOf(std::string_view family) {
  const std::uint64_t most = (1 << 20) + 3;
  if (family == "transpose")
    return {{1, 1},    {1, 31},   {31, 31},   {64, 128}, {31, 1000},
            {4097, 5}, {7, 4097}, {1000, 96}, {1, most}, {1023, 1027}};
  std::vector<Shape> out = {{1}, {31}, {1000}, {4097}, {most}};
  if (family == "copy" || family == "add")
    out.insert(out.end(), {{5, 31}, {3, 1, 1000}, {2, 3, 5, 33}, {40, 16, 16}, {}});
  else if (family == "reduce_sum")
    out.insert(out.end(), {{5, 31}, {2, 3, 5, 33}, {65536}, {1000003}});
  else
    out.insert(
        out.end(),
        {{37, 1}, {19, 31}, {70, 32}, {5, 1000}, {3, 4096}, {2, 4097}, {1, 16384}, {65536}, {2, 65536}, {1000003}});
  return out;
}

bool fits(std::string_view family, const Shape &shape, const Places &p) {
  const bool strided = p.in != Place::Dense && p.in != Place::Offset;
  if (family == "reduce_sum" && (p.out != Place::Dense || (strided && shape.size() != 1)))
    return false;
  // These differ from dense ones only with two dimensions.
  if (shape.size() < 2 && (p.in == Place::Swapped || p.out == Place::Swapped))
    return false;
  return !(shape.empty() && (strided || p.out != Place::Dense));
}

/// The entries of one kernel on device number `index` of `count`.
std::vector<Entry> entriesOf(std::string_view family, std::size_t index, std::size_t count) {
  std::vector<Entry> out, rest;
  std::size_t turn = 0;
  for (const Shape &shape : shapesOf(family))
    for (DType dtype : {DType::F32, DType::F16, DType::BF16})
      for (const Places &p : allPlaces) {
        const bool dense = &p == &allPlaces[0];
        if (!fits(family, shape, p))
          continue;
        // Large ones: dense, and one other placing in turn.
        ++turn;
        if (elementsOf(shape) > large && !dense && turn % std::size(allPlaces) != 1)
          continue;
        const Entry entry{dtype, shape, p, turn % 2 == 0};
        if (count == 1 || (isFullTier() && (dense || turn % count == index)))
          out.push_back(entry);
        else if (!isFullTier() && elementsOf(shape) <= large)
          rest.push_back(entry);
      }
  if (isFullTier() || count == 1)
    return out;
  std::shuffle(rest.begin(), rest.end(), std::mt19937(20261));
  constexpr std::size_t sample = 3;
  const std::size_t first = std::min(rest.size(), index * sample);
  return {rest.begin() + static_cast<long>(first),
          rest.begin() + static_cast<long>(std::min(rest.size(), first + sample))};
}

Case caseOf(const std::string &family, const Entry &e, std::uint64_t seed) {
  TensorTypes types;
  types["x"] = {e.dtype, e.shape};
  if (family == "add")
    types["y"] = {e.dtype, e.shape};
  if (family == "layer_norm" && e.affine)
    types["weight"] = types["bias"] = {e.dtype, {e.shape.back()}};
  Case c{family, randomInputs(familyOf(family), types, seed), {}, {}, {}};
  c.places["x"] = e.places.in;
  c.places["out"] = e.places.out;
  if (family == "add") // mixed with dense ones
    c.places["y"] = seed % 2 ? Place::Dense : e.places.in;
  if (types.count("weight"))
    c.places["weight"] = c.places["bias"] = seed % 2 ? Place::Offset : Place::Dense;
  return c;
}

class KernelMatrix : public testing::TestWithParam<FamilyOnDevice> {};

TEST_P(KernelMatrix, MatchesReference) {
  const auto &[family, index] = GetParam();
  const std::vector<std::string> devices = deviceNames();
  Opened *on = openedDevice(devices[index]);
  if (!on)
    return;
  std::uint64_t seed = 1;
  const std::vector<Entry> entries = entriesOf(family, index, devices.size());
  ASSERT_FALSE(entries.empty());
  for (const Entry &e : entries)
    runCase(*on, caseOf(family, e, seed++));
}

INSTANTIATE_TEST_SUITE_P(Kernels, KernelMatrix, testing::ValuesIn(familiesOnDevices()), familyAndDevice);

} // namespace
} // namespace kiln::test
