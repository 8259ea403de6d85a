#include "kernels/dplr/KeptChunks.h"

namespace kiln::kernels {

KeptChunks::KeptChunks(const DplrInputs &in, const DplrConfig &c)
    : heads(in.heads()), slots(slotsOf(in, c.chunk)), dtype(in.q.dtype), c(c) {}

std::array<SlotShape, 5> KeptChunks::shapes() {
  const bool forward = !c.gradients || c.saved, backward = c.gradients || c.saved;
  return {{{&f, reads(c.rule), dtype, rowsOfF(c), c.dim},
           {&qh, forward, dtype, c.chunk, c.dim},
           {&decay, c.gate != GateKind::None, DType::F32, 1, c.dim},
           {&h, backward, dtype, c.dimV, c.dim},
           {&matrices, backward, dtype, keptMatrices(c.rule) * c.chunk, c.chunk}}};
}

std::int64_t savedBytes(const DplrInputs &in) {
  if (in.sequences() == 0 || in.heads() == 0)
    return 0;
  DplrConfig c = tilesOf(in);
  c.saved = true;
  return static_cast<std::int64_t>(KeptChunks(in, c).bytes());
}

Status checkSaved(const Device &device, const DplrWords &words, const DplrInputs &in, const Tensor &saved,
                  bool isOutput) {
  auto check = checkTensor("saved", saved)
                   .on(device)
                   .dtype({DType::U8})
                   .rank(1)
                   .extent(0, savedBytes(in), "bytes that such a call saves")
                   .stride(0, 1)
                   .aligned(Plan::alignment);
  if (isOutput)
    check.writable();
  KILN_TRY(check.status());
  return isOutput ? checkApart(words, in, "saved", saved) : Status();
}

} // namespace kiln::kernels
