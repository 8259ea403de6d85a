//===- Multiprocessors.h - Of a usual GPU of a target ------------------------===//
#ifndef KILN_RUNTIME_DEVICE_MULTIPROCESSORS_H
#define KILN_RUNTIME_DEVICE_MULTIPROCESSORS_H

#include "compiler/target/Target.h"

namespace kiln {

/// Of a usual GPU of the target, where there is none to ask.
inline unsigned multiprocessorsOf(const Target &target) {
  switch (target.sm) {
  case 75:
    return 40; // T4
  case 80:
    return 108; // A100
  case 86:
    return 84; // A40, RTX 3090
  case 87:
    return 16; // Orin
  case 89:
    return 142; // L40
  case 90:
    return 132; // H100, H200
  case 100:
  case 103:
    return 148; // B200, B300
  case 110:
    return 20; // Thor
  case 120:
    return 170; // RTX 5090
  default:
    return 64;
  }
}

} // namespace kiln

#endif // KILN_RUNTIME_DEVICE_MULTIPROCESSORS_H
