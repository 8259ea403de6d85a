//===- ProgramNeeds.h - What a program takes of a multiprocessor -------------===//
//
// What follows from a program's tiles alone, before anything is compiled: a tuner rejects by it what cannot fit, and
// the performance model ranks the rest.
//
// Invariant: warps, registers and shared memory are lower bounds of what the compiled program has.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TARGET_PROGRAMNEEDS_H
#define KILN_TARGET_PROGRAMNEEDS_H

#include <cstdint>

namespace kiln {

struct ProgramNeeds {
  unsigned warps = 0;
  unsigned registers = 0; ///< of a thread
  unsigned carried = 0;   ///< registers of a thread that products of the round before take, too; an estimate
  std::uint64_t sharedBytes = 0;
  double programs = 0;     ///< of the launch
  double flops = 0;        ///< of a program, products only
  double bytes = 0;        ///< that a program reads and writes
  double operands = 0;     ///< bytes that products of warpgroups read from shared memory; 0: not known
  double steps = 0;        ///< of its loop
  double special = 0;      ///< powers and the like that a program computes between its products
  double latency = 200;    ///< cycles of a step in which only other programs go on: waits and barriers, about
  double rate = 1;         ///< of the products, next to those of 16 bits
  bool overlapped = false; ///< the next tiles are copied while it multiplies
  bool warpgroups = false; ///< products are wgmma's
};

} // namespace kiln

#endif // KILN_TARGET_PROGRAMNEEDS_H
