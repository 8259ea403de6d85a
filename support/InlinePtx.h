//===- InlinePtx.h - What inline PTX may be ---------------------------------===//
//
// A text of PTX statements with placeholders: $0, $1, .. stand for the results, then the operands; $$ is a dollar sign.
// The front end asks while recording, the dialect's verifier for what comes as text.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_SUPPORT_INLINEPTX_H
#define KILN_SUPPORT_INLINEPTX_H

#include "Status.h"

#include <string_view>

namespace kiln {

/// Whether each placeholder names a result or an operand, and each of these has a placeholder; the statements end, and
/// none of them is the compiler's own business (barriers, the end of the kernel).
Status checkInlinePtx(std::string_view text, unsigned results, unsigned operands);

} // namespace kiln

#endif // KILN_SUPPORT_INLINEPTX_H
