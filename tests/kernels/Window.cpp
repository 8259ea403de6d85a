#include "tests/kernels/Window.h"

#include <algorithm>
#include <cstring>

namespace kiln::test {

namespace {
constexpr std::int64_t frontMargin = 256, backMargin = 37; // elements
}

const char *placeName(Place place) {
  constexpr const char *names[] = {"dense", "offset", "padded", "steps", "swapped", "reversed", "repeated"};
  return names[static_cast<unsigned>(place)];
}

Window::Window(Place place, DType dtype, const Shape &shape) : dtype(dtype), width(dtypeBytes(dtype)), shape(shape) {
  const std::size_t rank = shape.size();
  const auto extent = [&](std::size_t d) { return static_cast<std::int64_t>(shape[d]); };
  std::vector<std::size_t> order(rank); // slowest first
  for (std::size_t d = 0; d < rank; ++d)
    order[d] = d;
  if (place == Place::Swapped && rank >= 2)
    std::swap(order[rank - 1], order[rank - 2]);
  strides.assign(rank, 1);
  std::int64_t next = place == Place::Steps ? 3 : 1;
  for (std::size_t i = rank; i-- > 0;) {
    const std::size_t d = order[i];
    if (place == Place::Repeated && d == 0) {
      strides[d] = 0;
      continue;
    }
    strides[d] = next;
    next *= std::max<std::int64_t>(extent(d), 1);
    if (place == Place::Padded && i == rank - 1)
      next += 5;
  }
  first = frontMargin + (place == Place::Offset ? 1 : place == Place::Padded && rank < 2 ? 3 : 0);
  if (place == Place::Reversed && rank && extent(rank - 1) > 0) {
    first += (extent(rank - 1) - 1) * strides[rank - 1];
    strides[rank - 1] = -strides[rank - 1];
  }
  total = frontMargin + 3 + std::max<std::int64_t>(next, 1) + backMargin;
  dense = place == Place::Dense || place == Place::Offset;
}

Result<Tensor> Window::tensor(const Device &device, const Buffer &buffer) const {
  const std::vector<std::int64_t> extents(shape.begin(), shape.end());
  return Tensor::strided(device, buffer, dtype, extents, strides, firstByte());
}

/// body(index in C order, byte in the buffer) for every element.
template <typename F> void Window::eachElement(F body) const {
  std::uint64_t elements = 1;
  for (std::uint64_t n : shape)
    elements *= n;
  std::vector<std::uint64_t> index(shape.size(), 0);
  std::int64_t at = first;
  for (std::uint64_t i = 0; i < elements; ++i) {
    body(i * width, static_cast<std::size_t>(at) * width);
    for (std::size_t d = shape.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < shape[d])
        break;
      at -= strides[d] * static_cast<std::int64_t>(shape[d]);
      index[d] = 0;
    }
  }
}

void Window::scatter(const Array &array, std::span<std::byte> image) const {
  eachElement([&](std::size_t from, std::size_t to) { std::memcpy(&image[to], &array.data[from], width); });
}

Array Window::gather(std::span<const std::byte> image) const {
  Array out{dtype, shape, {}};
  std::size_t bytes = width;
  for (std::uint64_t n : shape)
    bytes *= n;
  out.data.resize(bytes);
  eachElement([&](std::size_t to, std::size_t from) { std::memcpy(&out.data[to], &image[from], width); });
  return out;
}

std::int64_t Window::strayByte(std::span<const std::byte> image, std::byte value) const {
  std::vector<bool> covered(image.size());
  eachElement([&](std::size_t, std::size_t at) { std::fill_n(covered.begin() + static_cast<long>(at), width, true); });
  for (std::size_t i = 0; i < image.size(); ++i)
    if (!covered[i] && image[i] != value)
      return static_cast<std::int64_t>(i);
  return -1;
}

} // namespace kiln::test
