//===- AttentionBackwardTiling.h - Tiles of attention's gradients for a call ------===//
//
// None of the choices spills registers on sm_80 and sm_90a, or a few words where a call has every option at once
// (README.md has the numbers).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONBACKWARDTILING_H
#define KILN_KERNELS_ATTENTION_ATTENTIONBACKWARDTILING_H

#include "compiler/target/Target.h"
#include "kernels/attention/AttentionBackward.h"

namespace kiln::kernels {

/// Whether dq is best added up by the launch of the keys, `aligned` as of that.  `call`: what a call asks for,
/// `ordered` if it is to be deterministic.
bool takesOnePass(AttentionBackwardConfig call, bool aligned, const Target &code, const Target &device);

/// Sets blockM, blockN, warps and stages of a launch whose dim, dimV and options are set; dim and dimV to wider tiles
/// where its products need them.  `aligned`: what its loop reads lies in whole 16 bytes, so that copies can run during
/// the computation.  `code`: what the code may use; `device`: what runs it, whose shared memory counts as well.
void chooseBackwardTiles(AttentionBackwardLaunch launch, AttentionBackwardConfig &config, bool aligned,
                         const Target &code, const Target &device);

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONBACKWARDTILING_H
