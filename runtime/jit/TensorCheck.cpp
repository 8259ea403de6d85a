#include "kiln/Tensor.h"

#include "runtime/jit/TensorOverlap.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln {

namespace {

std::string shapeText(const Tensor &t) {
  std::string out = "[";
  for (unsigned i = 0; i < t.rank; ++i)
    out += (i ? ", " : "") + std::to_string(t.shape[i]);
  return out + "]";
}
std::string hex(DeviceAddress address) {
  return format("0x%llx", static_cast<unsigned long long>(address));
}
std::string quote(std::string_view name) {
  return "'" + std::string(name) + "'";
}

/// Bytes from `address` to the first and past the last element; false if they do not fit 63 bits.
bool spanOf(const Tensor &t, std::int64_t &first, std::int64_t &past) {
  std::int64_t low = 0, high = 0;
  const std::int64_t width = dtypeBytes(t.dtype);
  for (unsigned i = 0; i < t.rank; ++i) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(t.shape[i] - 1, t.strides[i], &reach))
      return false;
    std::int64_t &end = reach < 0 ? low : high;
    if (__builtin_add_overflow(end, reach, &end))
      return false;
  }
  return !__builtin_mul_overflow(low, width, &first) && !__builtin_mul_overflow(high, width, &past) &&
         !__builtin_add_overflow(past, width, &past);
}

bool hasElements(const Tensor &t) {
  return std::all_of(t.shape.begin(), t.shape.begin() + t.rank, [](std::int64_t n) { return n > 0; });
}

} // namespace

TensorCheck &TensorCheck::refuse(const std::string &what, std::string remedy) {
  if (verdict.ok())
    verdict = Status::invalid("argument " + quote(name) + " " + what, std::move(remedy));
  return *this;
}

TensorCheck::TensorCheck(std::string_view name, const Tensor &tensor) : name(name), tensor(tensor) {
  if (tensor.rank > Tensor::maxRank) {
    refuse("has rank " + std::to_string(tensor.rank) + ", the limit is " + std::to_string(Tensor::maxRank),
           "join dimensions");
    return;
  }
  std::int64_t first = 0, past = 0, elements = 1, least = 1;
  bool isTooLarge = false;
  for (unsigned i = 0; i < tensor.rank; ++i) {
    least = std::min(least, tensor.shape[i]);
    isTooLarge |= __builtin_mul_overflow(elements, tensor.shape[i], &elements);
  }
  if (least < 0)
    for (unsigned i = 0; i < tensor.rank; ++i)
      if (tensor.shape[i] < 0)
        refuse("has extent " + std::to_string(tensor.shape[i]) + " in dimension " + std::to_string(i),
               "extents are 0 or more");
  if (least <= 0)
    return;
  if (isTooLarge)
    refuse("has shape " + shapeText(tensor) + ": more than 2^63 elements", "use smaller extents");
  else if (!spanOf(tensor, first, past))
    refuse("spans more than 2^63 bytes: " + tensor.toString(), "use smaller extents or strides");
  else if (tensor.address == 0)
    refuse("is a null pointer, its shape is " + shapeText(tensor), "give it memory on the device");
  else if (tensor.address & static_cast<DeviceAddress>(dtypeBytes(tensor.dtype) - 1)) // a power of two
    refuse("lies at " + hex(tensor.address) + ", which is no multiple of the " +
               std::to_string(dtypeBytes(tensor.dtype)) + " bytes of " + std::string(dtypeName(tensor.dtype)),
           "align the pointer to its element type");
}

TensorCheck &TensorCheck::on(const Device &device) {
  if (done() || tensor.device == &device)
    return *this;
  // Two objects for one GPU share its memory; each emulator has its own.
  if (tensor.device && device.info().kind == DeviceKind::Cuda && tensor.device->info().kind == DeviceKind::Cuda &&
      tensor.device->info().name == device.info().name)
    return *this;
  return refuse("is on " + (tensor.device ? tensor.device->info().name : std::string("no device")) +
                    ", the operation runs on " + device.info().name,
                "copy it to " + device.info().name);
}

TensorCheck &TensorCheck::dtype(std::initializer_list<DType> allowed) {
  if (done() || std::find(allowed.begin(), allowed.end(), tensor.dtype) != allowed.end())
    return *this;
  std::vector<std::string> names;
  for (DType t : allowed)
    names.emplace_back(dtypeName(t));
  return refuse("has dtype " + std::string(dtypeName(tensor.dtype)) + ", allowed: " + join(names),
                "convert it to " + names.front());
}

TensorCheck &TensorCheck::dtypeOf(std::string_view otherName, const Tensor &other) {
  if (done() || tensor.dtype == other.dtype)
    return *this;
  return refuse("has dtype " + std::string(dtypeName(tensor.dtype)) + ", " + quote(otherName) + " has " +
                    std::string(dtypeName(other.dtype)),
                "use one dtype for both");
}

TensorCheck &TensorCheck::rank(unsigned wanted) {
  return rankBetween(wanted, wanted);
}

TensorCheck &TensorCheck::rankBetween(unsigned least, unsigned most) {
  if (done() || (tensor.rank >= least && tensor.rank <= most))
    return *this;
  return refuse("has rank " + std::to_string(tensor.rank) + " (shape " + shapeText(tensor) + "), the operation takes " +
                    std::to_string(least) + (least == most ? "" : " to " + std::to_string(most)),
                "reshape it");
}

TensorCheck &TensorCheck::extent(unsigned dimension, std::int64_t wanted, std::string_view why) {
  if (done() || (dimension < tensor.rank && tensor.shape[dimension] == wanted))
    return *this;
  if (dimension >= tensor.rank)
    return refuse("has rank " + std::to_string(tensor.rank) + " and no dimension " + std::to_string(dimension),
                  "reshape it");
  return refuse("has extent " + std::to_string(tensor.shape[dimension]) + " in dimension " + std::to_string(dimension) +
                    ", it must be " + std::to_string(wanted) + (why.empty() ? "" : " (" + std::string(why) + ")"),
                "give a tensor of that extent");
}

TensorCheck &TensorCheck::extentAtMost(unsigned dimension, std::int64_t limit, std::string_view why) {
  if (done() || (dimension < tensor.rank && tensor.shape[dimension] <= limit))
    return *this;
  if (dimension >= tensor.rank)
    return extent(dimension, limit, why);
  return refuse("has extent " + std::to_string(tensor.shape[dimension]) + " in dimension " + std::to_string(dimension) +
                    ", the limit is " + std::to_string(limit) + (why.empty() ? "" : " (" + std::string(why) + ")"),
                "split the call along that dimension");
}

TensorCheck &TensorCheck::shape(std::initializer_list<std::int64_t> wanted) {
  rank(static_cast<unsigned>(wanted.size()));
  unsigned i = 0;
  for (std::int64_t n : wanted)
    extent(i++, n);
  return *this;
}

TensorCheck &TensorCheck::shapeOf(std::string_view otherName, const Tensor &other) {
  if (done() || (tensor.rank == other.rank &&
                 std::equal(tensor.shape.begin(), tensor.shape.begin() + tensor.rank, other.shape.begin())))
    return *this;
  return refuse("has shape " + shapeText(tensor) + ", " + quote(otherName) + " has " + shapeText(other),
                "use one shape for both");
}

TensorCheck &TensorCheck::stride(unsigned dimension, std::int64_t wanted) {
  if (done() || (dimension < tensor.rank && (tensor.strides[dimension] == wanted || tensor.shape[dimension] <= 1)))
    return *this;
  if (dimension >= tensor.rank)
    return extent(dimension, 1);
  return refuse("has stride " + std::to_string(tensor.strides[dimension]) + " in dimension " +
                    std::to_string(dimension) + ", it must be " + std::to_string(wanted),
                "copy it into a tensor with that stride");
}

TensorCheck &TensorCheck::aligned(unsigned bytes) {
  if (done() || bytes == 0 || tensor.address % bytes == 0)
    return *this;
  return refuse("lies at " + hex(tensor.address) + ", which is no multiple of " + std::to_string(bytes) + " bytes",
                "align the pointer to " + std::to_string(bytes) + " bytes");
}

TensorCheck &TensorCheck::dense() {
  if (done() || tensor.isDense())
    return *this;
  return refuse("is not dense: " + tensor.toString(), "copy it into a dense tensor");
}

TensorCheck &TensorCheck::writable() {
  if (done() || !hasElements(tensor))
    return *this;
  const unsigned i = dimensionInsideOthers(tensor);
  if (i == tensor.rank)
    return *this;
  const std::string what = "is written, but its stride in dimension " + std::to_string(i) + " is ";
  if (tensor.strides[i] == 0)
    return refuse(what + "0: its " + std::to_string(tensor.shape[i]) + " elements there are one",
                  "give an output without a stride of 0");
  return refuse(what + std::to_string(tensor.strides[i]) + ", less than dimensions of smaller strides reach over: (" +
                    tensor.toString() + ") may have elements at one address",
                "give an output whose elements lie apart");
}

TensorCheck &TensorCheck::overlap(std::string_view otherName, const Tensor &other, bool sameWindow) {
  if (done() || other.rank > Tensor::maxRank || !hasElements(tensor) || !hasElements(other))
    return *this;
  const bool same = tensor.address == other.address && tensor.dtype == other.dtype && tensor.rank == other.rank &&
                    std::equal(tensor.shape.begin(), tensor.shape.begin() + tensor.rank, other.shape.begin()) &&
                    std::equal(tensor.strides.begin(), tensor.strides.begin() + tensor.rank, other.strides.begin());
  std::int64_t first = 0, past = 0, firstOfOther = 0, pastOfOther = 0;
  if ((same && sameWindow) || !spanOf(tensor, first, past) || !spanOf(other, firstOfOther, pastOfOther))
    return *this;
  // Most are apart as a whole, which is said at once.
  const std::uint64_t begin = tensor.address + static_cast<std::uint64_t>(first),
                      end = tensor.address + static_cast<std::uint64_t>(past),
                      beginOfOther = other.address + static_cast<std::uint64_t>(firstOfOther),
                      endOfOther = other.address + static_cast<std::uint64_t>(pastOfOther);
  if (end <= beginOfOther || endOfOther <= begin || !mayShareBytes(tensor, other))
    return *this;
  return refuse("(" + tensor.toString() + ") overlaps " + quote(otherName) + " (" + other.toString() + ")",
                sameWindow ? "use memory of its own, or the same window for both" : "use memory of its own");
}

} // namespace kiln
