//===- Pipeline.h - Tiles that flow through slots of shared memory --------------===//
//
//   auto keys = pipeline<bf16, "k">({64, 128}, {.stages = 3});   // a ring of three slots for tiles of the tensor k
//   keys = fill(keys, view, {0, 0});                             // copies begin, nobody waits
//   auto [last, ..] = loop(over(0, n), keys, .., [&](auto i, auto keys, ..) {
//     auto [taken, tile] = take(keys);                           // waits for the oldest tile
//     ..
//     return std::tuple{fill(release(taken), view, {i * 64 + 128, 0}), ..};
//   });
//   drain(last);
//
// Loops pipeline their loads by themselves (`over(..).stages(n)`).  This is for an author who knows better which tile
// is copied when.  A value of the type is the ring's state: each function takes one and gives the next, and a state is
// used once.  Slots, phases and counts nobody writes; kiln-lower-pipelines finds them and refuses a slot that is filled
// while none is free, or a state used twice, at its line.
//
// The tensor's name is part of the type, so C++ refuses the ring of k where one of v is expected.  Kiln refuses to
// compile copies of another tensor's tiles into it.  Targets without asynchronous copies (before sm_80) refuse the
// kernel.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_PIPELINE_H
#define KILN_LANGUAGE_PIPELINE_H

#include "View.h"

#include <utility>

namespace kiln::language {

/// What is chosen for a ring.
struct PipelineOptions {
  int stages = 2;               ///< slots, 1 to 64; their bytes are the kernel's shared memory
  Unit contiguous = Unit::Last; ///< the dimension along which a slot's neighbours lie, that of the views
};

/// The state of a ring of slots, each with a tile of the tensor `name`.
template <Element T, Name name> class Pipeline {
  static_assert(name.isIdentifier(), "a pipeline has the name of the tensor whose tiles flow through it");

public:
  using Tag = detail::Flow;
  Pipeline() = default;
  explicit Pipeline(detail::Handle h) : value(h) {}
  detail::Handle handle() const { return value; }

private:
  detail::Handle value;
};

/// A ring whose slots are all free.  Tiles have two dimensions.
template <Element T, Name name>
Pipeline<T, name> pipeline(const Shape &tile, const PipelineOptions &options = {}, Location loc = Location::current()) {
  return Pipeline<T, name>(
      detail::makePipeline(name.view(), elementOf<T>, tile, options.stages, static_cast<int>(options.contiguous), loc));
}

/// Begins to copy the tile at `coords` into the next free slot.  Elements outside of the view are zeros there.
template <Element T, Name name>
Pipeline<T, name> fill(const Pipeline<T, name> &p, const View<T> &view, Indices coords,
                       Location loc = Location::current()) {
  return Pipeline<T, name>(detail::fillSlot(p.handle(), view.handle(), detail::IndexList(coords), loc));
}

/// Waits for the tile that was copied first of those that nobody waited for, and reads it.
template <Element T, Name name>
std::pair<Pipeline<T, name>, Tile<T>> take(const Pipeline<T, name> &p, Location loc = Location::current()) {
  const auto [next, tile] = detail::takeSlot(p.handle(), loc);
  return {Pipeline<T, name>(next), Tile<T>(tile)};
}

/// Frees the oldest slot that was taken; what was read from it stays.
template <Element T, Name name>
Pipeline<T, name> release(const Pipeline<T, name> &p, Location loc = Location::current()) {
  return Pipeline<T, name>(detail::releaseSlot(p.handle(), loc));
}

/// Ends the ring, as every ring has to: nothing is copied into it any more.
template <Element T, Name name> void drain(const Pipeline<T, name> &p, Location loc = Location::current()) {
  detail::drainPipeline(p.handle(), loc);
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_PIPELINE_H
