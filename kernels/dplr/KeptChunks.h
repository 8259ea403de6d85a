//===- KeptChunks.h - What calls keep of their chunks ---------------------------===//
//
// Between its launches a call keeps the maps of its chunks; a backward call also the chunks' matrices and the states
// before them.  The backward call makes all that again, unless it was saved (specification "DPLR delta rule and RWKV7",
// S4): a forward call that is given memory leaves everything there, and the backward call with the same inputs and
// options takes it and has a launch less.
//
// What is saved takes 900 bytes a token and head at K = V = 64, as many as the inputs (bf16, gates in f32).  Where each
// tensor lies depends on extents, types, the rule and the chunk size, not on the device.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_KEPTCHUNKS_H
#define KILN_KERNELS_DPLR_KEPTCHUNKS_H

#include "kernels/dplr/SlotTensors.h"

#include <array>

namespace kiln::kernels {

class KeptChunks {
public:
  KeptChunks(const DplrInputs &in, const DplrConfig &c);
  std::size_t bytes() { return bytesOfSlots(shapes(), heads, slots); }
  void place(DeviceAddress at) { placeSlots(shapes(), heads, slots, at); }

  /// [H, slots * rows, columns], as dplr_maps and dplr_chains write them (Dplr.h); those that the rule and the call
  /// have.
  Tensor f, qh, decay, h, matrices;

private:
  std::array<SlotShape, 5> shapes();
  const std::int64_t heads, slots;
  const DType dtype;
  const DplrConfig c;
};

/// Bytes that a forward call saves.
std::int64_t savedBytes(const DplrInputs &in);

/// The memory of a call that saves (`isOutput`), or takes what was saved: u8, [savedBytes].
Status checkSaved(const Device &device, const DplrWords &words, const DplrInputs &in, const Tensor &saved,
                  bool isOutput);

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_KEPTCHUNKS_H
