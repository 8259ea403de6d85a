//===- MpiLibrary.h - What Kiln takes from MPI ------------------------------===//
//
// libkiln-mpi.so holds it, so that programs which are no ranks of a job need no MPI where they run.  It is opened when
// MPI is asked for.  One thread at a time may call.  No call waits for other ranks but `end`.
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
  /// The bytes of a message that has come; -1: none has.
  long (*probe)(int rank, int tag);
  bool (*receive)(int rank, int tag, char *text, std::size_t bytes);
  void (*end)();               ///< with all ranks
  void (*abandon)(int status); ///< ends the job without those that are lost; does not return
};

} // extern "C"

namespace kiln::tune {
inline constexpr std::uint32_t mpiTableVersion = 1;
} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_REMOTE_MPILIBRARY_H
