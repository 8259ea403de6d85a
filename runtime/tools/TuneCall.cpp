#include "runtime/tools/TuneCall.h"

#include "kiln/Knobs.h"
#include "runtime/jit/CompilerLibrary.h"
#include "runtime/model/Estimate.h"
#include "runtime/tools/BenchPrediction.h"
#include "support/ParseNumber.h"
#include "support/Text.h"

#include <algorithm>
#include <map>

namespace kiln::tools {
namespace {

using namespace kernels;

Status unknownParameter(const Callable &callable, const std::string &name, const std::vector<OptionInfo> &options) {
  std::vector<std::string> names;
  for (const OptionInfo &o : options)
    if (o.kind != OptionInfo::Kind::Text)
      names.push_back(o.name);
  const std::vector<std::string> near = nearest(name, names);
  return Status::invalid("--set " + name + ": kernel '" + std::string(callable.name()) + "' has no such parameter",
                         near.empty() ? "its parameters are " + join(names)
                                      : "did you mean " + join(near, " or ") + "?");
}

/// The parameter of one --set.
Result<tune::Parameter> parameterOf(const Callable &callable, const std::string &text,
                                    const std::vector<OptionInfo> &options) {
  const std::size_t equal = text.find('=');
  const std::string name = text.substr(0, equal);
  const auto found = std::find_if(options.begin(), options.end(), [&](const OptionInfo &o) {
    return o.name == name && o.kind != OptionInfo::Kind::Text;
  });
  if (found == options.end())
    return unknownParameter(callable, name, options);
  tune::Parameter out{name, {}};
  if (equal == std::string::npos || equal + 1 == text.size())
    return Status::invalid("--set " + text + ": it leaves no value of " + name + ": the space is empty",
                           "write --set " + name + "=V1,V2");
  for (const std::string_view value : split(std::string_view(text).substr(equal + 1), ',')) {
    const std::optional<OptionValue> parsed = found->parse(value);
    if (!parsed)
      return Status::invalid("--set " + name + "=" + std::string(value) + ": expected " +
                                 (found->kind == OptionInfo::Kind::Flag     ? "true or false"
                                  : found->kind == OptionInfo::Kind::Choice ? join(found->choices)
                                  : found->kind == OptionInfo::Kind::Whole  ? "a whole number"
                                                                            : "a number"),
                             name + " is " + found->text);
    out.values.push_back(textOf(*parsed)); // 064 is 64, as journals say it
  }
  return out;
}

} // namespace

Result<tune::Space> spaceOf(const Callable &callable, const OptionValues &fixed, const std::vector<std::string> &set) {
  const std::vector<OptionInfo> options = callable.options();
  std::vector<tune::Parameter> given;
  for (const std::string &text : set) {
    KILN_ASSIGN(tune::Parameter p, parameterOf(callable, text, options));
    if (std::any_of(given.begin(), given.end(), [&](const tune::Parameter &g) { return g.name == p.name; }))
      return Status::invalid("--set " + text + " contradicts another --set " + p.name,
                             "give all of its values at once");
    if (const auto is = fixed.find(p.name); is != fixed.end())
      return Status::invalid("--set " + text + " contradicts the call, in which " + p.name + " is " +
                                 textOf(is->second),
                             "leave one of them out");
    given.push_back(std::move(p));
  }
  std::vector<tune::Parameter> parameters;
  for (const OptionInfo &o : options) {
    const auto own =
        std::find_if(given.begin(), given.end(), [&](const tune::Parameter &g) { return g.name == o.name; });
    if (own != given.end())
      parameters.push_back(*own);
    else if (!o.candidates.empty() && !fixed.contains(o.name))
      parameters.push_back({o.name, o.candidates});
  }
  if (parameters.empty())
    return Status::invalid("kernel '" + std::string(callable.name()) +
                               "' has no parameter left that a tuner may choose",
                           "its calls choose their tiles themselves, or --with fixes them all");
  return tune::Space::create(std::move(parameters));
}

Result<std::unique_ptr<TuneCall>> TuneCall::create(const TuneRequest &r) {
  std::unique_ptr<TuneCall> out(new TuneCall);
  KILN_ASSIGN(const Family *family, findFamily(r.kernel));
  std::string dtype = r.dtype;
  if (dtype.empty())
    dtype = dtypeName(family->callable->dtypes().front());
  RunOptions run = r.run;
  run.noChecks = true; // nothing runs
  KILN_ASSIGN(out->owned, openChosenDevice(run));
  Device &device = *out->owned;
  const DeviceInfo &about = device.info();
  if (out->isPredicted())
    KILN_TRY(recordSample(device));
  if (out->isPredicted() && r.flushL2)
    return Status::invalid("--flush-l2: " + about.name + " has no caches, and its times are the performance model's",
                           "leave it out");
  KILN_ASSIGN(std::vector<FamilyCall> calls,
              chooseFamilyCalls({r.kernel}, {dtype}, r.with, {.reference = true, .samples = true}, SampleUse::Bench,
                                /*large=*/true));
  if (calls.size() != 1)
    return Status::invalid(r.kernel + ": one call is tuned, and the kernel's own are " + std::to_string(calls.size()),
                           "say which: --with NAME=SHAPE for each of its inputs");
  out->of = std::move(calls[0]);
  const Callable &callable = *family->callable;
  KILN_ASSIGN(out->configurations, spaceOf(callable, out->of.sample.options, r.set));
  for (const tune::Parameter &p : out->configurations->parameters())
    for (const OptionInfo &o : callable.options())
      if (o.name == p.name)
        out->options.push_back(o);
  KILN_ASSIGN(JitOptions options, chosenJitOptions(run));
  options.knobs.tuned = false;
  options.onTunedQuestion = [call = out.get()](const TunedQuestion &question) { call->questions.push_back(question); };
  KILN_ASSIGN(out->jit, Jit::create(device, std::move(options)));
  KILN_ASSIGN(const Target *code, findTarget(out->jit->codeTarget()));
  out->target = *code;
  if (about.target)
    out->target.sharedOptIn = std::min(out->target.sharedOptIn, about.target->sharedOptIn);
  Result<model::Hardware> hardware = model::hardwareOf(about.target ? *about.target : *code);
  if (hardware)
    out->hardware = *hardware;
  else
    out->known = hardware.takeStatus();
  KILN_ASSIGN(const Arrays inputs, randomInputsOf(*out->jit, out->of, InputValues::Any));
  KILN_ASSIGN(out->placed, PlacedCall::createForPlans(device, callable, inputs, out->of.sample.options));
  out->planner = callable.bind(*out->jit);
  out->with = r.with;
  out->isRestricted = !r.set.empty();
  out->flushesL2 = r.flushes();
  return out;
}

Call TuneCall::callOf(const tune::Configuration &configuration) const {
  Call call = placed->call();
  for (std::size_t i = 0; i < options.size(); ++i)
    call.options[options[i].name] = *options[i].parse(configuration[i]);
  return call;
}

/// Which kernels a call launches, and over how many programs.
static Result<std::vector<std::pair<const JitKernel *, Dim3>>> launchesOf(const Callable::Planner &planner,
                                                                          const Call &call) {
  PlanListing list;
  KILN_TRY(planner(call, list));
  std::vector<std::pair<const JitKernel *, Dim3>> out;
  for (const PlanListing::Launch &launch : list.launches)
    out.emplace_back(launch.kernel, launch.grid);
  return out;
}

void TuneCall::findDefault(std::vector<tune::Candidate> &candidates) {
  const auto usual = launchesOf(planner, placed->call());
  if (!usual || usual->empty())
    return;
  for (tune::Candidate &c : candidates) {
    const auto its = launchesOf(planner, callOf(configurations->at(c.number)));
    if ((c.isDefault = its.ok() && *its == *usual))
      return;
  }
  if (isRestricted)
    return;
  tune::Configuration standard;
  for (const OptionInfo &o : options)
    if (o.standard)
      standard.push_back(textOf(*o.standard));
  // One of the combinations that was rejected would be there twice.
  if (standard.size() != options.size() || configurations->numberOf(standard))
    return;
  if (const auto its = launchesOf(planner, callOf(standard)); its && *its == *usual)
    candidates.push_back({configurations->add(std::move(standard)), std::nullopt, /*isDefault=*/true});
}

Result<std::vector<TuneCall::Kept>> TuneCall::keep(const tune::Entry &winner, const tune::Entry *usual,
                                                   std::size_t configurations) {
  // An operation that has asked for nothing yet says what the call asks for.
  questions.clear();
  const Callable::Planner fresh = of.family->callable->bind(*jit);
  KILN_TRY(launchesOf(fresh, placed->call()).status());
  std::map<std::string, std::string> values(winner.configuration.begin(), winner.configuration.end());
  // The default was chosen for these very sizes; others in the bucket have their own.
  const bool isUsual = usual && usual->key() == winner.key();
  std::vector<Kept> out;
  Call asked = placed->call();
  for (const TunedQuestion &question : questions) {
    Kept &one = out.emplace_back(question, TunedValues(question.options.size()));
    for (std::size_t i = 0; i < question.options.size() && !isUsual; ++i) {
      one.values[i] = parseNumber<std::int64_t>(values[question.options[i]]).value_or(0);
      asked.options[question.options[i]] = one.values[i];
      values.erase(question.options[i]);
    }
  }
  // The rest of what the winner says must not matter: tiles of a launch that the call does not make.
  tune::Configuration whole;
  for (const tune::Parameter &p : space().parameters())
    for (const auto &[name, value] : winner.configuration)
      if (name == p.name)
        whole.push_back(value);
  KILN_ASSIGN(const auto its, launchesOf(planner, callOf(whole)));
  KILN_ASSIGN(const auto kept, launchesOf(fresh, asked));
  if (its != kept) {
    std::vector<std::string> others;
    for (const auto &[name, value] : values)
      others.push_back(name + " = " + value);
    return Status::invalid("the winner has " + join(others) + ", which no call takes from the cache",
                           "name it in the call that is tuned (--with), and in later ones");
  }
  TunedOrigin origin;
  KILN_ASSIGN(const tune::JournalHeader about, header());
  origin.call = about.call;
  origin.milliseconds = winner.milliseconds;
  if (usual && usual->good())
    origin.untuned = usual->milliseconds;
  origin.configurations = configurations;
  origin.time = winner.time;
  for (const Kept &one : out)
    KILN_TRY(jit->keepTuned(one.question, one.values, origin));
  return out;
}

Result<std::variant<tune::Rejection, std::optional<double>>>
TuneCall::judge(const tune::Configuration &configuration) const {
  using Verdict = std::variant<tune::Rejection, std::optional<double>>;
  const Callable &callable = *of.family->callable;
  const Call call = callOf(configuration);
  const std::optional<ProgramNeeds> needs = callable.needs(call, target);
  if (needs)
    if (std::optional<tune::Rejection> rejection = tune::judge(*needs, target))
      return Verdict(std::move(*rejection));
  WorkspacePlan plan;
  if (Status s = planner(call, plan); !s.ok())
    return Verdict(tune::Rejection{tune::Rule::Kernel, s.toString()});
  if (!needs || !known.ok())
    return Verdict(std::optional<double>());
  return Verdict(std::optional(model::estimateMilliseconds(*needs, target, hardware, owned->info().multiprocessors)));
}

Result<tune::JournalHeader> TuneCall::header() const {
  std::vector<std::string> parts;
  for (const auto &[name, type] : of.sample.inputs) {
    parts.push_back(name + "=" + shapeText(type.shape));
    for (const TensorParameter &p : of.family->callable->tensors())
      if (!with.empty() && p.has(name) &&
          type.dtype != of.family->callable->inputType(p, of.type, of.sample.options).value_or(of.type))
        parts.back() += ":" + std::string(dtypeName(type.dtype)); // as a word said
  }
  for (const TensorParameter &p : of.family->callable->tensors()) // calls without it launch other kernels
    if (p.optional && std::ranges::count(of.sample.made, p.name))
      parts.push_back(p.name + "=" + p.madeBy);
  for (const auto &[name, value] : of.sample.options)
    parts.push_back(name + "=" + textOf(value));
  for (const std::string &word : with) // values of files are as good as their names
    if (word.ends_with(".npy"))
      parts.push_back(word);
  KILN_ASSIGN(const Knobs knobs, Knobs::fromEnvironment());
  KILN_ASSIGN(const auto compiler, CompilerLibrary::find(knobs.compiler));
  tune::JournalHeader out;
  KILN_ASSIGN(out.compiler, compiler->identity(FileHashes(nullptr)));
  out.kernel = of.family->name();
  out.dtype = dtypeName(of.type);
  out.target = jit->codeTarget();
  // Which GPU of a host it was does not matter; which kind does.
  out.device = isPredicted() ? owned->info().name : owned->info().description;
  out.call = join(parts);
  out.objective = isPredicted() ? "predicted" : "measured";
  // The model has numbers of one GPU for a target; those of another one are other roofs.
  const Callable &callable = *of.family->callable;
  const double flops = callable.flops(placed->call()), bytes = callable.bytes(placed->call());
  if (known.ok() && flops > 0 && bytes > 0 && (isPredicted() || owned->info().description == hardware.name)) {
    const unsigned bits = 8 * static_cast<unsigned>(dtypeBytes(of.type));
    out.roofline = {flops, bytes, model::productRate(hardware, bits, owned->info().multiprocessors),
                    hardware.dram * 1e9, std::string(hardware.name)};
  }
  out.timing = isPredicted() ? "" : flushesL2 ? tune::timingCold : tune::timingWarm;
  return out;
}

} // namespace kiln::tools
