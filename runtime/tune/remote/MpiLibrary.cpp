// libkiln-mpi.so.
#include "runtime/tune/remote/MpiLibrary.h"

#include <chrono>
#include <climits>
#include <list>
#include <map>
#include <mpi.h>
#include <string>
#include <thread>
#include <utility>

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

/// What has been matched and may not have come whole: long messages need their sender, which may hang meanwhile.
struct Coming {
  std::string text;
  MPI_Request request = MPI_REQUEST_NULL;
  bool isWhole = false, isBroken = false;

  void look() {
    int arrived = 0;
    if (!isWhole && !isBroken)
      isBroken = MPI_Test(&request, &arrived, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    isWhole |= !isBroken && arrived;
  }
};
using Place = std::pair<int, int>; ///< rank and tag
std::map<Place, Coming> &coming() {
  static std::map<Place, Coming> map;
  return map;
}

long probe(int rank, int tag) {
  forgetArrived();
  auto found = coming().find({rank, tag});
  if (found == coming().end()) {
    int flag = 0, count = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    if (MPI_Improbe(rank, tag, MPI_COMM_WORLD, &flag, &message, &status) != MPI_SUCCESS || !flag)
      return -1;
    found = coming().try_emplace({rank, tag}).first;
    Coming &it = found->second;
    it.isBroken = MPI_Get_count(&status, MPI_CHAR, &count) != MPI_SUCCESS || count < 0;
    if (!it.isBroken) {
      it.text.resize(static_cast<std::size_t>(count));
      it.isBroken = MPI_Imrecv(it.text.data(), count, MPI_CHAR, &message, &it.request) != MPI_SUCCESS;
    }
  }
  found->second.look();
  return found->second.isWhole ? static_cast<long>(found->second.text.size()) : -1;
}

bool receive(int rank, int tag, char *text, std::size_t bytes) {
  const auto found = coming().find({rank, tag});
  if (found == coming().end() || !found->second.isWhole || found->second.text.size() != bytes)
    return false;
  found->second.text.copy(text, bytes);
  coming().erase(found);
  return true;
}

bool end(double seconds) {
  const double until = MPI_Wtime() + seconds;
  for (;;) {
    forgetArrived();
    bool isAnyComing = false;
    for (auto &[place, message] : coming()) {
      message.look();
      isAnyComing |= !message.isWhole && !message.isBroken;
    }
    if (underWay().empty() && !isAnyComing)
      break;
    if (MPI_Wtime() > until)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  MPI_Finalize();
  return true;
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
