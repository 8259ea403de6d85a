//===- MpiRanks.h - Workers that are ranks of an MPI job ----------------------===//
//
// Rank 0 has the sweep; the others answer its requests, one at a time each, until it says that there are no more.  A
// rank that works tells rank 0 so every few seconds; one that is silent counts as lost.  (Most MPI jobs end as a whole
// when a rank is lost; the journal has what was done until then.)
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_REMOTE_MPIRANKS_H
#define KILN_RUNTIME_TUNE_REMOTE_MPIRANKS_H

#include "runtime/tune/remote/Carrier.h"
#include "runtime/tune/remote/MpiLibrary.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace kiln::tune {

class MpiRanks : public Carrier {
public:
  /// Joins the job; once a process.  `silence`: seconds after which a rank is lost.  Fails where there is no MPI, or
  /// where this is the only rank.
  static Result<std::unique_ptr<MpiRanks>> join(double silence);
  /// Rank 0 lets the others go, and ends the job without those that are lost.
  ~MpiRanks() override;

  bool isFirst() const { return place.rank == 0; }
  int localRank() const { return place.localRank; }
  std::string name() const { return "rank " + std::to_string(place.rank); }

  // Of rank 0:
  std::optional<unsigned> workers() const override { return static_cast<unsigned>(place.ranks - 1); }
  Result<Delivery> deliver(const std::string &request, const std::string &to, const Patience &patience) override;
  void beginCall() override;
  Status leaveOut(const std::string &worker, const std::string &why) override;
  /// Exit status of a job that a rank was lost of.
  void endWith(int status) { exitStatus = status; }

  /// Of the others: answers until rank 0 has no more requests.
  Status serve(const Answer &answer);

private:
  enum Tag : std::uint8_t { Request = 1, Reply, Alive, End };
  enum class State : std::uint8_t { Free, Busy, Refuses, Lost };

  MpiRanks(const KilnMpiTable &library, double silence) : library(library), silence(silence) {}
  bool dismiss();
  static std::string nameOf(std::size_t rank) { return "rank " + std::to_string(rank); }
  Result<std::size_t> takeRank(const std::string &to, const Patience &patience);
  void setState(std::size_t rank, State state);
  std::optional<std::string> receive(int rank, Tag tag);
  bool send(int rank, Tag tag, const std::string &text);

  const KilnMpiTable &library;
  const double silence;
  KilnMpiPlace place{};
  int exitStatus = 0;
  std::mutex mpi; ///< one call at a time
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<State> states; ///< by rank; that of rank 0 does not count
};

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_REMOTE_MPIRANKS_H
