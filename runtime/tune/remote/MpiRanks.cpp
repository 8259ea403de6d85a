#include "runtime/tune/remote/MpiRanks.h"

#include "runtime/cache/TrustedLibrary.h"
#include "support/Text.h"

#include <algorithm>
#include <cstdio>
#include <system_error>
#include <thread>

namespace kiln::tune {

using Clock = std::chrono::steady_clock;

Result<std::unique_ptr<MpiRanks>> MpiRanks::join(double silence) {
  constexpr cache::LibraryName name = {.file = "libkiln-mpi.so",
                                       .function = "kilnMpiTable",
                                       .remedy = "it comes with a Kiln that was built with libopenmpi-dev, and needs "
                                                 "Debian's openmpi-bin; --queue needs no MPI",
                                       .isGlobal = true}; // Open MPI loads parts that look for its symbols
  KILN_ASSIGN(const void *table, cache::openTrustedLibrary(name, {}, mpiTableVersion));
  std::unique_ptr<MpiRanks> out(new MpiRanks(*static_cast<const KilnMpiTable *>(table), silence));
  if (!out->library.start(&out->place))
    return Status(StatusCode::Unsupported, "MPI cannot be started", "start the command by mpirun -n N kiln tune ..");
  out->states.resize(static_cast<std::size_t>(out->place.ranks), State::Free);
  if (out->place.ranks < 2)
    return Status::invalid("--mpi: this is the only rank of its job, and rank 0 measures nothing",
                           "start the command by mpirun -n N kiln tune .., with N at least 2");
  return out;
}

MpiRanks::~MpiRanks() {
  if (place.ranks == 0)
    return; // it was not started
  // The end of a job waits for all of its ranks.
  if ((!isFirst() || dismiss()) && library.end(silence))
    return;
  std::fflush(nullptr);
  library.abandon(isFirst() ? exitStatus : Status(StatusCode::DeviceError, "").exitCode());
}

/// Lets all ranks go.  False: not all of them are there.
bool MpiRanks::dismiss() {
  std::vector<int> left;
  for (std::size_t rank = 1; rank < states.size(); ++rank)
    if (states[rank] != State::Lost && send(static_cast<int>(rank), End, ""))
      left.push_back(static_cast<int>(rank));
  const bool areAll = left.size() + 1 == states.size();
  const auto until = Clock::now() + std::chrono::duration<double>(silence);
  while (!left.empty() && Clock::now() < until) {
    std::erase_if(left, [&](int rank) {
      const bool hasEnded = receive(rank, End).has_value();
      while (receive(rank, Reply) || receive(rank, Alive)) { // a rank cannot end before its messages are taken
      }
      return hasEnded;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return areAll && left.empty();
}

bool MpiRanks::send(int rank, Tag tag, const std::string &text) {
  const std::lock_guard lock(mpi);
  return library.send(rank, tag, text.data(), text.size());
}

std::optional<std::string> MpiRanks::receive(int rank, Tag tag) {
  const std::lock_guard lock(mpi);
  const long bytes = library.probe(rank, tag);
  if (bytes < 0)
    return {};
  std::string out(static_cast<std::size_t>(bytes), '\0');
  if (!library.receive(rank, tag, out.data(), out.size()))
    return {};
  return out;
}

void MpiRanks::setState(std::size_t rank, State state) {
  const std::lock_guard lock(mutex);
  if (states[rank] != State::Refuses) // which may be said before the delivery ends
    states[rank] = state;
  changed.notify_all();
}

Result<std::size_t> MpiRanks::takeRank(const std::string &to, const Patience &patience) {
  std::unique_lock lock(mutex);
  for (;;) {
    bool isAnyLeft = false;
    for (std::size_t rank = 1; rank < states.size(); ++rank) {
      if (!to.empty() && nameOf(rank) != to)
        continue;
      isAnyLeft |= states[rank] == State::Free || states[rank] == State::Busy;
      if (states[rank] != State::Free)
        continue;
      states[rank] = State::Busy;
      return rank;
    }
    if (!isAnyLeft)
      return to.empty() ? Result<std::size_t>(Status(StatusCode::DeviceError, "no rank is left that measures",
                                                     "the same command goes on from the journal, if it has one"))
                        : Result<std::size_t>(std::size_t(0));
    if (patience.isInterrupted() || (patience.begin && Clock::now() >= *patience.begin))
      return Status(StatusCode::NotReady, "no rank was free in time");
    changed.wait_for(lock, std::chrono::milliseconds(50));
  }
}

Result<Delivery> MpiRanks::deliver(const std::string &request, const std::string &to, const Patience &patience) {
  KILN_ASSIGN(const std::size_t rank, takeRank(to, patience));
  if (rank == 0)
    return Delivery();
  const int number = static_cast<int>(rank);
  Clock::time_point heard = Clock::now();
  bool isSent = send(number, Request, request);
  for (auto pause = std::chrono::milliseconds(1); isSent; pause = std::min(pause * 2, std::chrono::milliseconds(20))) {
    if (patience.isInterrupted()) // it stays busy: its answer is nobody's
      return Status(StatusCode::NotReady, "interrupted while a rank was waited for");
    if (std::optional<std::string> answer = receive(number, Reply)) {
      while (receive(number, Alive)) {
      }
      setState(rank, State::Free);
      return Delivery{Delivery::End::Answered, nameOf(rank), std::move(*answer)};
    }
    if (receive(number, Alive))
      heard = Clock::now();
    if (Clock::now() - heard > std::chrono::duration<double>(silence))
      break;
    std::this_thread::sleep_for(pause);
  }
  setState(rank, State::Lost);
  return Delivery{Delivery::End::Lost, nameOf(rank), ""};
}

void MpiRanks::beginCall() {
  const std::lock_guard lock(mutex);
  std::replace(states.begin(), states.end(), State::Refuses, State::Free);
}

Status MpiRanks::leaveOut(const std::string &worker, const std::string &why) {
  const std::lock_guard lock(mutex);
  bool isAnyLeft = false;
  for (std::size_t rank = 1; rank < states.size(); ++rank) {
    if (nameOf(rank) == worker)
      states[rank] = State::Refuses;
    isAnyLeft |= states[rank] == State::Free || states[rank] == State::Busy;
  }
  changed.notify_all();
  if (isAnyLeft)
    return {};
  return Status::invalid("no rank takes part; the last one, " + worker + ", says: " + why,
                         "give all hosts the same version of Kiln and the same kind of device");
}

Status MpiRanks::serve(const Answer &answer) {
  for (;;) {
    if (receive(0, End)) {
      send(0, End, "");
      return {};
    }
    const std::optional<std::string> request = receive(0, Request);
    if (!request) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    std::string text;
    {
      std::mutex mutexOfEnd;
      std::condition_variable ended;
      bool isOver = false;
      std::optional<std::jthread> alive;
      try {
        alive.emplace([&] {
          std::unique_lock lock(mutexOfEnd);
          while (!ended.wait_for(lock, std::chrono::duration<double>(silence / 4), [&] { return isOver; }))
            send(0, Alive, "");
        });
      } catch (const std::system_error &e) {
        return {StatusCode::OutOfMemory, std::string("no thread can be started: ") + e.what(), "end other programs"};
      }
      text = answer(*request);
      const std::lock_guard lock(mutexOfEnd);
      isOver = true;
      ended.notify_all();
    }
    if (!send(0, Reply, text))
      return {StatusCode::IoError, "rank 0 cannot be reached"};
  }
}

} // namespace kiln::tune
