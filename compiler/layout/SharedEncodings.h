//===- SharedEncodings.h - Layouts of tensors in shared memory ------------===//
//
// A shared layout maps offsets (in elements) of one block's buffer to tensor coordinates, one to one.  `order[0]` is
// the contiguous dimension ("column"), the others are row bits in order; empty order: the last dimension is contiguous.
//
//   Swizzled  granules of `vec` elements are xor-ed with (row / perPhase) mod maxPhase: columns stay conflict-free.
//   Tma       what TMA writes and wgmma descriptors read: S = 32, 64 or 128 bytes of swizzle, columns of [rows][S
//   bytes]
//             one after the other; S = 0: rows are whole.
//   Padded    `pad` elements after every `interval`: not linear, so never inside a plan; for buffers that a kernel
//             indexes at run time.
//   SharedLinear  any bijective bases; the planner's scratch buffers have this form.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_SHAREDENCODINGS_H
#define KILN_LAYOUT_SHAREDENCODINGS_H

#include "compiler/layout/Encodings.h"

namespace kiln::layout {

struct Swizzled {
  static constexpr std::string_view keyword = "swizzled";
  std::int64_t vec = 1, perPhase = 1, maxPhase = 1;
  Sizes order = {};
  bool operator==(const Swizzled &) const = default;
  template <typename Visitor> static void fields(Visitor &&v) {
    v("vec", &Swizzled::vec, Presence::Required);
    v("perPhase", &Swizzled::perPhase, Presence::Required);
    v("maxPhase", &Swizzled::maxPhase, Presence::Required);
    v("order", &Swizzled::order, Presence::Optional);
  }
};

struct Tma {
  static constexpr std::string_view keyword = "tma";
  std::int64_t swizzle = 0; ///< bytes
  Sizes order = {};
  bool operator==(const Tma &) const = default;
  template <typename Visitor> static void fields(Visitor &&v) {
    v("swizzle", &Tma::swizzle, Presence::Required);
    v("order", &Tma::order, Presence::Optional);
  }
};

struct Padded {
  static constexpr std::string_view keyword = "padded";
  std::int64_t interval = 1, pad = 1; ///< elements, powers of two
  Sizes order = {};
  bool operator==(const Padded &) const = default;
  template <typename Visitor> static void fields(Visitor &&v) {
    v("interval", &Padded::interval, Presence::Required);
    v("pad", &Padded::pad, Presence::Required);
    v("order", &Padded::order, Presence::Optional);
  }
};

struct SharedLinear {
  static constexpr std::string_view keyword = "shared_linear";
  std::vector<Sizes> offsets; ///< coordinates, offset bit 0 first
  bool operator==(const SharedLinear &) const = default;
  template <typename Visitor> static void fields(Visitor &&v) {
    v("offset", &SharedLinear::offsets, Presence::Required);
  }
};

struct SharedEncoding {
  using Kinds = std::variant<Swizzled, Tma, Padded, SharedLinear>;
  Kinds kind;

  template <typename T>
    requires std::is_constructible_v<Kinds, const T &>
  SharedEncoding(const T &k) : kind(k) {}
  std::string_view keyword() const;
  bool operator==(const SharedEncoding &) const = default;
};

/// Offset bases on a tensor of that shape and element width.  For Padded this is the map before padding: paddedOffset()
/// turns its offsets into physical ones.
Result<LinearLayout> lowerShared(const SharedEncoding &encoding, std::span<const std::int64_t> shape, unsigned bits);
inline Result<LinearLayout> lowerShared(const SharedEncoding &encoding, std::initializer_list<std::int64_t> shape,
                                        unsigned bits) {
  return lowerShared(encoding, std::span(shape.begin(), shape.size()), bits);
}

/// o + (o / interval) * pad; the identity for every other kind.  Only for encodings that lowerShared accepted.
std::uint64_t paddedOffset(const SharedEncoding &encoding, std::uint64_t offset);

/// Alignment in bytes that the hardware demands of the buffer: 8 * S for Tma (128 if S = 0), else 16.
unsigned baseAlignment(const SharedEncoding &encoding);

} // namespace kiln::layout

#endif // KILN_LAYOUT_SHAREDENCODINGS_H
