//===- MpiLibrary.h - What Kiln takes from MPI ------------------------------===//
//
// libkiln-mpi.so holds it, so that programs which are no ranks of a job need no MPI where they run.  It is opened when
// MPI is asked for.  One thread at a time may call.  No call waits for other ranks but `start` and `end`.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_REMOTE_MPILIBRARY_H
#define KILN_RUNTIME_TUNE_REMOTE_MPILIBRARY_H

#include <cstddef>
#include <cstdint>

extern "C" {

struct KilnMpiPlace {
  int rank, ranks;
  int localRank; ///< among those of this host
};

struct KilnMpiTable {
  std::uint32_t version;
  /// Once a process.
  bool (*start)(KilnMpiPlace *place);
  /// Brings it on its way; false: that cannot be done.
  bool (*send)(int rank, int tag, const char *text, std::size_t bytes);
  /// The bytes of a message that has come whole; -1: none has.  Brings one that is coming on its way.
  long (*probe)(int rank, int tag);
  /// Takes the message that `probe` has told of.
  bool (*receive)(int rank, int tag, char *text, std::size_t bytes);
  /// With all ranks.  False: for so many seconds some took nothing of what they were sent, so the job is broken.
  bool (*end)(double seconds);
  void (*abandon)(int status); ///< ends the job without those that are lost; does not return
};

} // extern "C"

namespace kiln::tune {
inline constexpr std::uint32_t mpiTableVersion = 2;
} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_REMOTE_MPILIBRARY_H
