#include "runtime/tools/TuneRemote.h"

#include "kiln/Knobs.h"
#include "runtime/cache/remote/RedisLayer.h"
#include "support/Text.h"

#include <limits>
#include <random>
#include <unistd.h>

namespace kiln::tools {
namespace {

using tune::Json;

Status badCall(const std::string &what) {
  return Status::invalid("the sweep's call " + what, "start the sweep and its workers with the same version of Kiln");
}

/// Words as they stand after --with; what begins like an option is none.
Result<std::vector<std::string>> wordsIn(const Json &call, const char *name) {
  constexpr std::size_t most = 4096;
  std::vector<std::string> out;
  const auto found = call.find(name);
  if (found == call.end() || !found->is_array())
    return badCall(std::string("has no list '") + name + "'");
  for (const Json &word : *found) {
    const std::string text = word.is_string() ? word.get<std::string>() : "";
    const bool isWord = !text.empty() && text.size() <= most &&
                        (text[0] == '_' || (text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
    if (!isWord || text.find('\0') != std::string::npos)
      return badCall(std::string("has a word in '") + name + "' that is no NAME=VALUE: " + text.substr(0, 80));
    out.push_back(text);
  }
  return out;
}

std::string hostName() {
  char host[256] = "?";
  if (::gethostname(host, sizeof host - 1) != 0)
    host[0] = '?', host[1] = '\0';
  return host;
}

/// Where numbers of processes mean the same.  Containers may have the names of their hosts in common.
std::string placeOfProcesses() {
  char space[64] = "";
  const ssize_t length = ::readlink("/proc/self/ns/pid", space, sizeof space);
  return hostName() + " " + std::string(space, length > 0 ? static_cast<std::size_t>(length) : 0);
}

/// The number of the sweep's process, if it runs on this host; 0: it does not.
pid_t sweepProcessOf(const Json &call) {
  const auto place = call.find("place"), process = call.find("process");
  if (place == call.end() || *place != placeOfProcesses() || process == call.end() || !process->is_number_integer())
    return 0;
  const auto number = process->get<std::int64_t>();
  return number > 0 && number <= std::numeric_limits<pid_t>::max() ? static_cast<pid_t>(number) : 0;
}

/// "host:1234:9f3c"; hosts that are containers have names and numbers of processes in common.
std::string nameOfWorker() {
  return hostName() + ":" + std::to_string(::getpid()) + ":" + format("%04x", std::random_device()() & 0xffffU);
}

} // namespace

Json remoteCall(const TuneRequest &request, const tune::JournalHeader &header,
                const std::vector<std::string> &checkWith, double seconds) {
  return {{"header", tune::toJson(header)},
          {"with", request.with},
          {"set", request.set},
          {"checkWith", checkWith},
          {"codeTarget", request.run.codeTarget},
          {"timeout", seconds},
          {"place", placeOfProcesses()},
          {"process", ::getpid()}};
}

Status RemoteMeasurer::open(const Json &from) {
  if (worker && from == opened)
    return {};
  worker.reset(), call.reset();
  const auto header = from.find("header"), code = from.find("codeTarget"), timeout = from.find("timeout");
  if (header == from.end() || !header->is_object() || code == from.end() || !code->is_string() ||
      timeout == from.end() || !timeout->is_number() || !(timeout->get<double>() > 0))
    return badCall("is not whole");
  const tune::JournalHeader wanted = tune::headerFrom(*header);
  TuneRequest request;
  request.kernel = wanted.kernel, request.dtype = wanted.dtype;
  request.noFlushL2 = wanted.timing == tune::timingWarm;
  KILN_ASSIGN(request.with, wordsIn(from, "with"));
  KILN_ASSIGN(request.set, wordsIn(from, "set"));
  KILN_ASSIGN(std::vector<std::string> checkWith, wordsIn(from, "checkWith"));
  request.run = run;
  request.sweepProcess = sweepProcessOf(from);
  request.run.codeTarget = code->get<std::string>();
  if (!request.run.codeTarget.empty())
    KILN_TRY(findTarget(request.run.codeTarget).status());
  if (run.device.empty() && run.target.empty() && wanted.device.starts_with("emulator:"))
    request.run.device = wanted.device;
  KILN_ASSIGN(call, TuneCall::create(request));
  KILN_ASSIGN(const tune::JournalHeader is, call->header());
  if (const std::optional<std::string> what = tune::difference(is, wanted))
    return Status::invalid("the sweep is not one of this worker: " + *what,
                           "give both the same version of Kiln and the same kind of device");
  if (call->isPredicted())
    KILN_TRY(Status(call->modelStatus()));
  auto made = std::make_unique<TuneWorker>();
  KILN_TRY(made->setUp(*call, request, {}, std::move(checkWith), timeout->get<double>()));
  worker = std::move(made);
  opened = from;
  return {};
}

std::string RemoteMeasurer::answer(const std::string &request) {
  const Result<tune::Work> work = tune::readRequest(request);
  if (!work)
    return tune::refusalText(work.status().toString());
  if (const Status s = open(work->call); !s.ok())
    return tune::refusalText(s.toString());
  const tune::Space &space = call->space();
  tune::Configuration configuration;
  for (const tune::Parameter &p : space.parameters())
    for (const auto &[name, value] : work->configuration)
      if (name == p.name)
        configuration.push_back(value);
  if (configuration.size() != space.parameters().size() || configuration.size() != work->configuration.size())
    return tune::refusalText(badCall("has other parameters than here").toString());
  Result<tune::Entry> entry = worker->prepare(space, configuration);
  const double before = entry ? entry->seconds : 0;
  if (entry && entry->good())
    if (entry = worker->measure(space, configuration, 0); entry)
      entry->seconds += before;
  if (!entry) // no process can be started here
    return tune::refusalText(entry.status().toString());
  entry->configuration = tune::named(space, configuration);
  return tune::answerText(*entry);
}

Result<tune::QueueOptions> queueOptions(const std::string &address, double silence,
                                        const std::atomic<bool> *interrupted) {
  tune::QueueOptions out;
  KILN_ASSIGN(out.address, tune::QueueAddress::parse(address));
  KILN_ASSIGN(const Knobs knobs, Knobs::fromEnvironment());
  KILN_ASSIGN(out.secret, cache::readSecret(knobs.cacheSecret));
  KILN_ASSIGN(out.library, cache::openRedisLibrary());
  out.silence = silence;
  out.interrupted = interrupted;
  out.say = [](const std::string &line) { std::fprintf(stderr, "kiln tune: %s\n", line.c_str()); };
  return out;
}

Result<std::size_t> serveQueue(const tune::QueueOptions &options, const RunOptions &run,
                               const std::vector<std::string> &devices, double idle) {
  std::atomic<std::size_t> answered{0};
  const auto serve = [&](const std::string &device) {
    RunOptions its = run;
    std::string name = nameOfWorker();
    if (!device.empty())
      its.device = device, name += ":" + device;
    RemoteMeasurer measurer(std::move(its));
    return tune::serveRedisQueue(options, name, idle, [&](const std::string &request) {
      std::string out = measurer.answer(request);
      answered += !tune::refusalOf(out);
      return out;
    });
  };
  if (devices.size() < 2) {
    KILN_TRY(serve(devices.empty() ? "" : devices.front()));
    return answered.load();
  }
  std::vector<Status> ends(devices.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const auto one = [&, i] {
        ends[i] = serve(devices[i]);
        if (!ends[i].ok()) // the others go on
          options.say(devices[i] + " measures no more: " + ends[i].toString());
      };
      try {
        threads.emplace_back(one);
      } catch (const std::system_error &) {
        ends[i] = Status(StatusCode::Internal, "no thread can be had to measure on " + devices[i]);
        options.say(ends[i].toString());
      }
    }
  }
  for (Status &s : ends)
    KILN_TRY(std::move(s));
  return answered.load();
}

std::string gpuOfRank(int localRank) {
  std::vector<std::string> notes, gpus;
  for (const DeviceInfo &device : listDevices(notes))
    if (device.kind == DeviceKind::Cuda && !device.driver.empty())
      gpus.push_back(device.name);
  return gpus.empty() ? "" : gpus[static_cast<std::size_t>(localRank) % gpus.size()];
}

} // namespace kiln::tools
