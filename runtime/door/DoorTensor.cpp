#include "runtime/door/DoorTensor.h"

#include "kiln/Tensor.h"
#include "support/Text.h"

#include <algorithm>
#include <cstring>

namespace kiln::door {
namespace {

constexpr std::uint8_t isInt = 0, isUnsigned = 1, isFloat = 2, isBFloat = 4, isBool = 6, isE4M3 = 10, isE5M2 = 12;
struct TypeRow {
  std::uint8_t code, bits;
  DType type;
};
/// DLPack's codes.
constexpr TypeRow types[] = {{isFloat, 16, DType::F16},    {isBFloat, 16, DType::BF16},  {isFloat, 32, DType::F32},
                             {isFloat, 64, DType::F64},    {isE4M3, 8, DType::F8E4M3},   {isE5M2, 8, DType::F8E5M2},
                             {isInt, 8, DType::I8},        {isInt, 16, DType::I16},      {isInt, 32, DType::I32},
                             {isInt, 64, DType::I64},      {isUnsigned, 8, DType::U8},   {isUnsigned, 16, DType::U16},
                             {isUnsigned, 32, DType::U32}, {isUnsigned, 64, DType::U64}, {isBool, 8, DType::I1}};

/// Elements from one of dimension `d` to the next.
std::int64_t strideOf(const FfiTensor &t, int d) {
  if (t.strides)
    return t.strides[d];
  std::int64_t stride = 1;
  for (int e = d + 1; e < t.rank; ++e)
    stride *= t.shape[e];
  return stride;
}

/// Calls f(place in bytes from the start) for each element, in C order.
template <typename F> void forEachElement(const FfiTensor &t, F f) {
  std::int64_t at[Tensor::maxRank] = {}, strides[Tensor::maxRank];
  for (int d = 0; d < t.rank; ++d) {
    if (t.shape[d] == 0)
      return;
    strides[d] = strideOf(t, d) * (t.bits / 8);
  }
  for (std::int64_t place = 0;;) {
    f(place);
    int d = t.rank - 1;
    for (; d >= 0; --d) {
      place += strides[d];
      if (++at[d] < t.shape[d])
        break;
      place -= strides[d] * t.shape[d];
      at[d] = 0;
    }
    if (d < 0)
      return;
  }
}

char *start(const FfiTensor &t) {
  return static_cast<char *>(t.data) + t.byteOffset;
}

/// Bytes from the first element to the end of the last one.
std::int64_t spanOf(const FfiTensor &t) {
  std::int64_t last = 0;
  for (int d = 0; d < t.rank; ++d) {
    if (t.shape[d] == 0)
      return 0;
    last += (t.shape[d] - 1) * strideOf(t, d);
  }
  return (last + 1) * (t.bits / 8);
}

} // namespace

Status readWindow(const FfiTensor &t, Tensor &out) {
  const auto row = std::ranges::find_if(
      types, [&](const TypeRow &r) { return r.code == t.code && r.bits == t.bits && t.lanes == 1; });
  if (row == std::end(types))
    return Status::invalid(
        format("has a dtype that is not known (DLPack's code %u with %u bits)", unsigned(t.code), unsigned(t.bits)),
        "convert it to one that the operation takes");
  if (t.rank < 0 || t.rank > static_cast<int>(Tensor::maxRank))
    return Status::invalid(format("has %d dimensions: the limit is %u", t.rank, Tensor::maxRank),
                           t.rank < 0 ? "write how many it has" : "join dimensions");
  if (t.rank > 0 && !t.shape)
    return Status::invalid("has dimensions and no shape", "give the extents");
  out = {};
  out.dtype = row->type;
  out.rank = static_cast<unsigned>(t.rank);
  std::int64_t elements = 1, last = 0; ///< the farthest element from the first
  bool fits = true, isEmpty = false;
  for (unsigned d = 0; d < out.rank; ++d) {
    if (t.shape[d] < 0)
      return Status::invalid(format("has a negative extent in dimension %u", d), "give one of 0 or more");
    isEmpty |= t.shape[d] == 0;
    fits &= !__builtin_mul_overflow(elements, std::max<std::int64_t>(t.shape[d], 1), &elements);
    out.shape[d] = t.shape[d];
  }
  for (unsigned d = 0; fits && d < out.rank; ++d) {
    const std::int64_t stride = out.strides[d] = strideOf(t, static_cast<int>(d));
    if (stride < 0)
      return Status::invalid(format("has a negative stride in dimension %u", d), "give a copy");
    std::int64_t far = 0;
    fits &= !__builtin_mul_overflow(std::max<std::int64_t>(t.shape[d] - 1, 0), stride, &far) &&
            !__builtin_add_overflow(last, far, &last);
  }
  constexpr std::int64_t most = std::int64_t(1) << 47; // bytes that a process can address
  if (!fits || (!isEmpty && std::max(elements, last) > most / (t.bits / 8)))
    return Status::invalid("has extents and strides that no memory has", "look at its shape and strides");
  if (!isEmpty && !t.data)
    return Status::invalid("has elements and no memory", "give no fake tensor and no wrapper subclass");
  out.address = reinterpret_cast<DeviceAddress>(start(t));
  return {};
}

kernels::TensorType typeOf(const Tensor &window) {
  kernels::TensorType out{window.dtype, {}};
  for (unsigned d = 0; d < window.rank; ++d)
    out.shape.push_back(static_cast<std::uint64_t>(window.shape[d]));
  return out;
}

DlType dlTypeOf(DType type) {
  const auto row = std::ranges::find_if(types, [&](const TypeRow &r) { return r.type == type; });
  return row == std::end(types) ? DlType{isUnsigned, static_cast<std::uint8_t>(8 * dtypeBytes(type))}
                                : DlType{row->code, row->bits};
}

Array copyIn(const FfiTensor &t, const kernels::TensorType &type) {
  Array out{type.dtype, type.shape, {}};
  const unsigned bytes = t.bits / 8U;
  out.data.resize(type.elements() * bytes);
  std::byte *to = out.data.data();
  forEachElement(t, [&](std::int64_t place) {
    std::memcpy(to, start(t) + place, bytes);
    to += bytes;
  });
  return out;
}

void copyOut(const Array &array, const FfiTensor &t) {
  const unsigned bytes = t.bits / 8U;
  const std::byte *from = array.data.data();
  forEachElement(t, [&](std::int64_t place) {
    std::memcpy(start(t) + place, from, bytes);
    from += bytes;
  });
}

Status checkApart(const std::string &where, const FfiTensor &t, const std::string &other, const FfiTensor &with) {
  const char *const begin = start(t), *const otherBegin = start(with);
  const std::int64_t span = spanOf(t), otherSpan = spanOf(with);
  if (span == 0 || otherSpan == 0 || begin + span <= otherBegin || otherBegin + otherSpan <= begin)
    return {};
  const char *const low = std::min(begin, otherBegin);
  std::vector<bool> taken(static_cast<std::size_t>(std::max(begin + span, otherBegin + otherSpan) - low));
  forEachElement(t, [&](std::int64_t place) {
    for (unsigned i = 0; i < t.bits / 8U; ++i)
      taken[static_cast<std::size_t>(begin + place - low) + i] = true;
  });
  bool meets = false;
  forEachElement(with, [&](std::int64_t place) {
    for (unsigned i = 0; i < with.bits / 8U; ++i)
      meets |= taken[static_cast<std::size_t>(otherBegin + place - low) + i];
  });
  if (!meets)
    return {};
  return Status::invalid(where + " overlaps '" + other + "' in memory", "give outputs memory of their own");
}

} // namespace kiln::door
