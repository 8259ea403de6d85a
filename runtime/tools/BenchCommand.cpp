// `kiln bench`: the library's kernels at sizes that fill a GPU, beside the device's own copy in the same run.
#include "kernels/support/Runner.h"
#include "runtime/tools/Commands.h"
#include "runtime/tools/LibraryRun.h"
#include "runtime/tools/Report.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace kiln::tools {
namespace {

using namespace kernels;

struct Options {
  RunOptions run;
  std::vector<std::string> kernels, dtypes{"f32", "bf16"};
  unsigned samples = 15, batch = 20;
  bool check = true;
};

/// Milliseconds of one launch: the median, the least and the most of several batches.
struct Spread {
  double median = 0, least = 0, most = 0;
};

class Bench {
public:
  explicit Bench(const Options &options) : o(options) {}

  int operator()() {
    if (Status s = execute(); !s.ok())
      return fail("bench", s, o.run.json, std::move(report));
    report["wrong"] = wrong;
    report["status"] = wrong ? 1 : 0;
    if (o.run.json)
      printJson(report);
    return wrong ? 1 : 0;
  }

private:
  Status execute() {
    if (o.samples == 0 || o.samples > 1000 || o.batch == 0 || o.batch > 10000)
      return Status::invalid("--samples is 1 to 1000, --batch 1 to 10000");
    KILN_ASSIGN(const std::vector<const Family *> chosen, selectFamilies(o.kernels));
    KILN_ASSIGN(device, openChosenDevice(o.run));
    KILN_ASSIGN(jit, Jit::create(*device));
    large = device->info().kind == DeviceKind::Cuda;
    report["device"] = device->info().name;
    report["description"] = device->info().description;
    report["driver"] = device->info().driver;
    report["results"] = Json::array();
    if (!o.run.json)
      std::printf("%s (%s)\n%-12s %-5s %-14s %9s %9s %9s %9s  %s\n", device->info().name.c_str(),
                  device->info().description.c_str(), "kernel", "type", "shape", "median ms", "min ms", "max ms",
                  "GB/s", "check");
    KILN_TRY(deviceCopy());
    for (const Family *family : chosen)
      for (const std::string &name : o.dtypes) {
        KILN_ASSIGN(const DType type, parseDType(name));
        KILN_TRY(one(*family, type).withContext(std::string(family->name()) + " " + name));
      }
    return {};
  }

  /// `launch` in batches between two events (host clock on the emulator), after one launch that compiles.
  template <typename Launch> Result<Spread> time(Launch launch) {
    KILN_TRY(launch());
    Stream &stream = device->defaultStream();
    KILN_TRY(stream.synchronize());
    const unsigned batch = large ? o.batch : 1, samples = large ? o.samples : 3;
    std::vector<double> times;
    for (unsigned s = 0; s < samples; ++s) {
      const auto hostBegin = std::chrono::steady_clock::now();
      KILN_ASSIGN(auto begin, device->createEvent());
      KILN_ASSIGN(auto end, device->createEvent());
      KILN_TRY(begin->record(stream));
      for (unsigned i = 0; i < batch; ++i)
        KILN_TRY(launch());
      KILN_TRY(end->record(stream));
      KILN_TRY(stream.synchronize());
      double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - hostBegin).count();
      if (large) {
        KILN_ASSIGN(ms, end->millisecondsSince(*begin));
      }
      times.push_back(ms / batch);
    }
    std::sort(times.begin(), times.end());
    return Spread{(times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2, times.front(), times.back()};
  }

  void row(std::string_view kernel, std::string_view type, const std::string &shape, const Spread &t, double bytes,
           const std::string &verdict) {
    const double rate = bytes / t.median * 1e-6;
    report["results"].push_back({{"kernel", kernel},
                                 {"dtype", type},
                                 {"shape", shape},
                                 {"medianMs", t.median},
                                 {"minMs", t.least},
                                 {"maxMs", t.most},
                                 {"bytes", bytes},
                                 {"gigabytesPerSecond", rate},
                                 {"check", verdict}});
    if (!o.run.json)
      std::printf("%-12s %-5s %-14s %9.4f %9.4f %9.4f %9.1f  %s\n", std::string(kernel).c_str(),
                  std::string(type).c_str(), shape.c_str(), t.median, t.least, t.most, rate, verdict.c_str());
    std::fflush(stdout);
  }

  Status deviceCopy() {
    const std::size_t bytes = std::size_t(large ? 1 : 0) * (1ull << 30) + (1u << 20);
    KILN_ASSIGN(auto from, device->allocate(bytes, "from"));
    KILN_ASSIGN(auto to, device->allocate(bytes, "to"));
    KILN_TRY(from->fill(std::byte(1)));
    KILN_ASSIGN(const Spread t, time([&] { return to->copyFrom(*from); }));
    row("device copy", "bytes", std::to_string(bytes), t, 2.0 * static_cast<double>(bytes), "the device's own");
    return {};
  }

  /// Random data of a type: a block of it, repeated, because drawing a gigabyte takes the host longer than the GPU.
  static Array inputOf(const TensorType &type, std::uint64_t seed) {
    const std::uint64_t blockElements = (1u << 20) + 7;
    Array block = randomArray({type.dtype, {blockElements}}, seed);
    Array out{type.dtype, type.shape, {}};
    std::uint64_t n = 1;
    for (std::uint64_t extent : type.shape)
      n *= extent;
    const std::uint64_t bytes = n * dtypeBytes(type.dtype);
    out.data.resize(bytes);
    for (std::uint64_t at = 0; at < bytes; at += block.data.size())
      std::copy_n(block.data.begin(), std::min<std::uint64_t>(block.data.size(), bytes - at),
                  out.data.begin() + static_cast<std::ptrdiff_t>(at));
    return out;
  }

  Status one(const Family &family, DType type) {
    const TensorTypes example = family.example(type, large);
    Arrays inputs;
    for (const auto &[name, t] : example)
      inputs[name] = inputOf(t, inputs.size() + 1);
    const Numbers numbers = defaultNumbers(family);
    KILN_ASSIGN(const PlacedCall placed, PlacedCall::create(*device, family, inputs, numbers));
    const Call &call = placed.call();
    KILN_ASSIGN(const Spread t, time([&] { return family.run(*jit, call, {}); }));
    std::string verdict = "not checked";
    if (o.check) {
      KILN_ASSIGN(const Arrays outputs, placed.readOutputs());
      KILN_ASSIGN(const Comparison comparison, compareWithReference(family, inputs, numbers, outputs));
      wrong += !comparison.good();
      verdict = comparison.good() ? "good" : "WRONG: " + comparison.toString();
    }
    row(family.name(), dtypeName(type), shapeText(example.at("x").shape), t, family.bytes(call), verdict);
    return {};
  }

  const Options &o;
  std::unique_ptr<Device> device; // before what it makes
  std::unique_ptr<Jit> jit;
  bool large = false;
  unsigned wrong = 0;
  Json report = Json::object();
};

} // namespace

void addBenchCommand(CLI::App &app, int &exitStatus) {
  auto o = std::make_shared<Options>();
  CLI::App *c = app.add_subcommand("bench", "Time the library's kernels beside the device's own copy");
  c->add_option("kernels", o->kernels, "kernels to time (default: all)")->type_name("KERNEL");
  c->add_option("--dtype", o->dtypes, "types (default: f32 bf16)")->type_name("DTYPE");
  c->add_option("--samples", o->samples, "batches; their median is reported")->type_name("N");
  c->add_option("--batch", o->batch, "launches of a batch, between two events")->type_name("N");
  c->add_option("--device", o->run.device, "auto (default), cuda:N or emulator:TARGET")->type_name("NAME");
  c->add_option("--target", o->run.target, "the same as --device emulator:TARGET")->type_name("TARGET");
  c->add_flag("!--no-check", o->check, "do not compare what was timed with float64");
  c->add_flag("--json", o->run.json, "one JSON object on standard output");
  c->footer("On a GPU the tensors are far larger than its caches; GB/s counts each input and output once.\n"
            "On the emulator sizes are small and times say nothing about a GPU.\n"
            "Examples:\n"
            "  kiln bench softmax --dtype f32 --target sm_80\n"
            "  kiln bench copy add --device cuda:0 --samples 31 --json\n"
            "Exit status: 0 good, 1 wrong results, 2 input, 3 compile, 4 device.");
  c->callback([o, &exitStatus] { exitStatus = Bench(*o)(); });
}

} // namespace kiln::tools
