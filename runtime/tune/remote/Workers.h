//===- Workers.h - Configurations measured by workers elsewhere --------------===//
//
// A Measure whose configurations go to the workers of a carrier.  A configuration whose worker was lost is given to
// another one; after `mostLosses` it counts as one that crashes its process, or ends the sweep where the carrier only
// supposes that they were lost.  What a worker refuses (it has another compiler, say) goes to others.
//
// A request is data: what is called, as JSON of whoever measures, and the values of the configuration.  It never holds
// a command.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_REMOTE_WORKERS_H
#define KILN_RUNTIME_TUNE_REMOTE_WORKERS_H

#include "runtime/tune/remote/Carrier.h"
#include "runtime/tune/Sweep.h"

#include <map>
#include <mutex>

namespace kiln::tune {

/// A request, as a worker reads it.
struct Work {
  Json call;
  std::vector<std::pair<std::string, std::string>> configuration; ///< NAME, VALUE
};
std::string requestText(const Work &work);
/// The failure says what is wrong with the text.
Result<Work> readRequest(const std::string &text);

std::string answerText(const Entry &entry);
/// Says that the worker takes no request like this one.
std::string refusalText(const std::string &why);
/// Why a worker refuses, if that is its answer.
std::optional<std::string> refusalOf(const std::string &answer);

class Workers {
public:
  static constexpr unsigned mostLosses = 3; ///< of one configuration

  /// `call`: what the workers are to know besides the configuration.  `say`: a line for each worker that is lost,
  /// refuses or takes over from another one; from any thread, one at a time.
  Workers(Carrier &carrier, Json call, const Space &space, Patience patience,
          std::function<void(const std::string &)> say)
      : carrier(carrier), call(std::move(call)), space(space), patience(patience), say(std::move(say)) {}

  /// By whichever worker is free.
  Result<Entry> measure(const Configuration &configuration);
  /// By the same worker as before, as long as it is there: what is compared is measured on one device.  Says when it
  /// is another one.
  Result<Entry> measureOnOne(const Configuration &configuration);

private:
  Result<Entry> measure(const Configuration &configuration, std::string &to);
  void tell(const std::string &line);

  Carrier &carrier;
  const Json call;
  const Space &space;
  const Patience patience;
  const std::function<void(const std::string &)> say;
  std::string one; ///< of measureOnOne
  std::mutex mutex;
  std::map<std::string, std::string> refusals; ///< by worker, to say each once
};

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_REMOTE_WORKERS_H
