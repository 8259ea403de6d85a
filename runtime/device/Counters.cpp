#include "kiln/Counters.h"

namespace kiln {

Counts &Counts::operator+=(const Counts &other) {
  instructions += other.instructions;
  threads += other.threads;
  for (unsigned k = 0; k < accessKinds; ++k) {
    global[k].requests += other.global[k].requests;
    global[k].sectors += other.global[k].sectors;
    global[k].bytes += other.global[k].bytes;
    shared[k].requests += other.shared[k].requests;
    shared[k].wavefronts += other.shared[k].wavefronts;
    shared[k].conflicts += other.shared[k].conflicts;
    shared[k].bytes += other.shared[k].bytes;
  }
  localRequests += other.localRequests;
  localBytes += other.localBytes;
  barriers += other.barriers;
  matrixFlops += other.matrixFlops;
  asyncBytes += other.asyncBytes;
  return *this;
}

GlobalCounts Counts::globalTotal() const {
  GlobalCounts out;
  for (const GlobalCounts &g : global) {
    out.requests += g.requests;
    out.sectors += g.sectors;
    out.bytes += g.bytes;
  }
  return out;
}

SharedCounts Counts::sharedTotal() const {
  SharedCounts out;
  for (const SharedCounts &s : shared) {
    out.requests += s.requests;
    out.wavefronts += s.wavefronts;
    out.conflicts += s.conflicts;
    out.bytes += s.bytes;
  }
  return out;
}

} // namespace kiln
