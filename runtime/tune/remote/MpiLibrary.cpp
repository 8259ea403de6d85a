// libkiln-mpi.so.
#include "runtime/tune/remote/MpiLibrary.h"

#include <climits>
#include <list>
#include <mpi.h>
#include <string>

namespace {

bool start(KilnMpiPlace *place) {
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS ||
      provided < MPI_THREAD_SERIALIZED)
    return false;
  // A rank that is lost is an answer, where MPI lets the others go on.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm host = MPI_COMM_NULL;
  if (MPI_Comm_rank(MPI_COMM_WORLD, &place->rank) != MPI_SUCCESS ||
      MPI_Comm_size(MPI_COMM_WORLD, &place->ranks) != MPI_SUCCESS ||
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host) != MPI_SUCCESS ||
      MPI_Comm_rank(host, &place->localRank) != MPI_SUCCESS)
    return false;
  MPI_Comm_free(&host);
  return true;
}

/// What has been sent and not arrived: a rank that hangs takes nothing, and nobody is to wait for it.
struct Sent {
  std::string text;
  MPI_Request request = MPI_REQUEST_NULL;
};
std::list<Sent> &underWay() {
  static std::list<Sent> list;
  return list;
}
void forgetArrived() {
  underWay().remove_if([](Sent &sent) {
    int arrived = 0;
    return MPI_Test(&sent.request, &arrived, MPI_STATUS_IGNORE) != MPI_SUCCESS || arrived;
  });
}

bool send(int rank, int tag, const char *text, std::size_t bytes) {
  if (bytes > INT_MAX)
    return false;
  Sent &sent = underWay().emplace_back();
  sent.text.assign(text, bytes);
  const bool isGood = MPI_Isend(sent.text.data(), static_cast<int>(bytes), MPI_CHAR, rank, tag, MPI_COMM_WORLD,
                                &sent.request) == MPI_SUCCESS;
  forgetArrived();
  return isGood;
}

long probe(int rank, int tag) {
  forgetArrived();
  int flag = 0, count = 0;
  MPI_Status status;
  if (MPI_Iprobe(rank, tag, MPI_COMM_WORLD, &flag, &status) != MPI_SUCCESS || !flag ||
      MPI_Get_count(&status, MPI_CHAR, &count) != MPI_SUCCESS)
    return -1;
  return count;
}

bool receive(int rank, int tag, char *text, std::size_t bytes) {
  return MPI_Recv(text, static_cast<int>(bytes), MPI_CHAR, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

void end() {
  while (!underWay().empty())
    forgetArrived();
  MPI_Finalize();
}

} // namespace

extern "C" __attribute__((visibility("default"))) const KilnMpiTable *kilnMpiTable() {
  static const KilnMpiTable table = {kiln::tune::mpiTableVersion,
                                     start,
                                     send,
                                     probe,
                                     receive,
                                     end,
                                     [](int status) { MPI_Abort(MPI_COMM_WORLD, status); }};
  return &table;
}
