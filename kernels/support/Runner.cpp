#include "kernels/support/Runner.h"

#include "kernels/support/Redzones.h"
#include "kernels/support/Rounding.h"
#include "support/Parallel.h"
#include "support/Text.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

namespace kiln::kernels {
namespace {

/// One run's time; on a GPU the events are part of the stream's work.
class Stopwatch {
public:
  Status start(Device &device) {
    if (device.info().kind == DeviceKind::Cuda) {
      KILN_ASSIGN(begin, device.createEvent());
      KILN_ASSIGN(end, device.createEvent());
      return begin->record(device.defaultStream());
    }
    hostBegin = std::chrono::steady_clock::now();
    return {};
  }
  Result<double> stop(Device &device) {
    if (begin) {
      KILN_TRY(end->record(device.defaultStream()));
      KILN_TRY(device.defaultStream().synchronize());
      return end->millisecondsSince(*begin);
    }
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - hostBegin).count();
  }

private:
  std::unique_ptr<Event> begin, end;
  std::chrono::steady_clock::time_point hostBegin;
};

/// What the kernel does not write stays as it is now: poison, unless it may leave elements alone.
Status fillOutput(Buffer &buffer, const TensorType &type, std::size_t margin) {
  if (!type.rest)
    return buffer.poison(std::byte(0xCD));
  Array one{DType::F64, {1}, std::vector<std::byte>(sizeof(double))};
  std::memcpy(one.data.data(), &*type.rest, sizeof(double));
  KILN_ASSIGN(one, convertArray(std::move(one), type.dtype, "rest"));
  std::vector<std::byte> all(buffer.size() - 2 * margin);
  for (std::size_t at = 0; at < all.size(); at += one.data.size())
    std::copy(one.data.begin(), one.data.end(), all.begin() + static_cast<std::ptrdiff_t>(at));
  return buffer.copyFromHost(margin, all);
}

} // namespace

Status PlacedCall::place(Device &device, const std::string &name, const TensorType &type) {
  KILN_ASSIGN(const std::uint64_t bytes, shapeBytes(type.shape, dtypeBytes(type.dtype)));
  KILN_ASSIGN(buffers[name], device.allocate(bytes + 2 * margin, name));
  const std::vector<std::int64_t> extents(type.shape.begin(), type.shape.end());
  KILN_ASSIGN(tensors.tensors[name], Tensor::dense(device, *buffers[name], type.dtype, extents, margin));
  return {};
}

Result<PlacedCall> PlacedCall::planned(const Callable &callable, const Arrays &inputs, const OptionValues &options,
                                       Arrays &tables) {
  KILN_TRY(checkOptions(callable, options));
  PlacedCall out;
  out.tensors.options = options;
  TensorTypes types;
  for (const auto &[name, array] : inputs)
    types[name] = {array.type, array.shape};
  KILN_ASSIGN(out.outputTypes, callable.outputs(types, options));
  KILN_TRY(callable.complete(inputs, out.tensors.options));
  KILN_ASSIGN(tables, callable.tables(inputs, options));
  return out;
}

void PlacedCall::putInPlace(const Callable &callable) {
  for (const TensorParameter &p : callable.tensors())
    if (!p.inPlaceOf.empty()) {
      written.insert(p.inPlaceOf); // whether its new state is asked for or not
      if (outputTypes.contains(p.name)) {
        inPlace[p.name] = p.inPlaceOf;
        tensors.tensors[p.name] = tensors.tensors.at(p.inPlaceOf);
      }
    }
}

Result<PlacedCall> PlacedCall::create(Device &device, const Callable &callable, const Arrays &inputs,
                                      const OptionValues &options, Around around) {
  Arrays tables;
  KILN_ASSIGN(PlacedCall out, planned(callable, inputs, options, tables));
  out.margin = around == Around::Redzones ? redzoneBytes : 0;
  for (const Arrays *arrays : {&inputs, &std::as_const(tables)})
    for (const auto &[name, array] : *arrays) {
      KILN_TRY(out.place(device, name, {array.type, array.shape}));
      KILN_TRY(out.buffers[name]->copyFromHost(out.margin, array.data));
    }
  out.putInPlace(callable);
  for (const auto &[name, type] : out.outputTypes) {
    if (out.inPlace.contains(name))
      continue;
    KILN_TRY(out.place(device, name, type));
    KILN_TRY(fillOutput(*out.buffers[name], type, out.margin));
  }
  if (out.margin)
    for (const auto &[name, buffer] : out.buffers)
      KILN_TRY(fillRedzones(*buffer));
  return out;
}

Result<bool> PlacedCall::renew(const Callable &callable, const Arrays &inputs, const OptionValues &options) {
  Arrays tables;
  KILN_ASSIGN(PlacedCall other, planned(callable, inputs, options, tables));
  const auto isThere = [&](const std::string &name, const TensorType &type) {
    const auto found = tensors.tensors.find(name);
    if (found == tensors.tensors.end() || found->second.dtype != type.dtype || found->second.rank != type.shape.size())
      return false;
    return std::equal(type.shape.begin(), type.shape.end(), found->second.shape.begin(),
                      [](std::uint64_t a, std::int64_t b) { return static_cast<std::int64_t>(a) == b; });
  };
  const auto areThere = [&](const Arrays &arrays) {
    return std::ranges::all_of(arrays,
                               [&](const auto &a) { return isThere(a.first, {a.second.type, a.second.shape}); });
  };
  const bool fits = tensors.tensors.size() == inputs.size() + tables.size() + other.outputTypes.size() &&
                    areThere(inputs) && areThere(tables) &&
                    std::ranges::all_of(other.outputTypes, [&](const auto &o) { return isThere(o.first, o.second); });
  if (!fits)
    return false;
  tensors.options = std::move(other.tensors.options);
  outputTypes = std::move(other.outputTypes);
  for (const auto &[name, array] : tables)
    KILN_TRY(buffers.at(name)->copyFromHost(margin, array.data));
  for (const std::string &input : written)
    if (const auto from = inputs.find(input); from != inputs.end())
      KILN_TRY(buffers.at(input)->copyFromHost(margin, from->second.data));
  for (const auto &[name, type] : outputTypes) {
    if (inPlace.contains(name))
      continue;
    KILN_TRY(fillOutput(*buffers.at(name), type, margin));
    if (margin) // poison is of the whole buffer
      KILN_TRY(fillRedzones(*buffers.at(name)));
  }
  return true;
}

Result<PlacedCall> PlacedCall::createForPlans(Device &device, const Callable &callable, const Arrays &inputs,
                                              const OptionValues &options) {
  Arrays tables;
  KILN_ASSIGN(PlacedCall out, planned(callable, inputs, options, tables));
  TensorTypes all = out.outputTypes;
  for (const Arrays *arrays : {&inputs, &std::as_const(tables)})
    for (const auto &[name, array] : *arrays)
      all[name] = {array.type, array.shape};
  for (const TensorParameter &p : callable.tensors())
    if (!p.inPlaceOf.empty())
      all.erase(p.name);
  for (const auto &[name, type] : all)
    KILN_TRY(out.place(device, name, type));
  out.putInPlace(callable);
  return out;
}

Result<Arrays> PlacedCall::readOutputs() const {
  Arrays out;
  for (const auto &[name, type] : outputTypes) {
    const Buffer &buffer = bufferOf(name);
    Array &array = out[name] = {type.dtype, type.shape, std::vector<std::byte>(buffer.size() - 2 * margin)};
    KILN_TRY(buffer.copyToHost(margin, array.data));
  }
  return out;
}

Result<std::optional<std::string>> PlacedCall::trespass(const Arrays &inputs, std::size_t turn) const {
  std::optional<std::string> found;
  for (const auto &[name, buffer] : buffers) {
    if (!margin)
      break;
    KILN_ASSIGN(found, redzoneDamage(*buffer, name));
    if (found)
      return found;
  }
  for (const auto &[name, array] : inputs) {
    if (written.contains(name))
      continue;
    KILN_ASSIGN(found, inputDamage(bufferOf(name), margin, name, array.data, turn));
    if (found)
      return found;
  }
  return found;
}

Result<RunnerResult> runCall(Jit &jit, const Callable &callable, const Arrays &inputs, const OptionValues &options,
                             const RunnerOptions &how) {
  Device &device = jit.device();
  KILN_ASSIGN(const PlacedCall placed, PlacedCall::create(device, callable, inputs, options));
  const Call &call = placed.call();

  RunnerResult out;
  out.bytes = callable.bytes(call);
  out.flops = callable.flops(call);
  for (unsigned i = 0; i < how.repeat; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    Stopwatch watch;
    KILN_TRY(watch.start(device));
    Status ran = callable.run(jit, call, {});
    std::vector<Finding> seen = device.takeFindings();
    out.findings.insert(out.findings.end(), seen.begin(), seen.end());
    // A finding that ended the launch is the answer; the failure repeats it.
    if (!ran.ok() && seen.empty())
      return ran;
    if (!seen.empty())
      return out;
    KILN_ASSIGN(const double milliseconds, watch.stop(device));
    KILN_TRY(device.defaultStream().synchronize());
    out.milliseconds.push_back(milliseconds);
    if (i == 0)
      out.firstCallMilliseconds =
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  }
  if (how.read) {
    KILN_ASSIGN(out.outputs, placed.readOutputs());
  }
  return out;
}

Array randomArray(const TensorType &type, std::uint64_t seed) {
  std::uint64_t n = 1;
  for (std::uint64_t extent : type.shape)
    n *= extent;
  std::mt19937_64 random(seed);
  if (type.dtype == DType::I8) {
    Array out{type.dtype, type.shape, std::vector<std::byte>(n)};
    for (std::byte &b : out.data)
      b = static_cast<std::byte>(random());
    return out;
  }
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<float> values(n);
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t kind = random() % 64;
    values[i] = kind == 0 ? 0.0f : kind == 1 && i ? values[i - 1] : normal(random);
  }
  return arrayOf(type, values);
}

Array arrayOf(const TensorType &type, std::span<const float> values) {
  Array wide{DType::F32, type.shape, {}};
  const std::span<const std::byte> bytes = std::as_bytes(values);
  wide.data.assign(bytes.begin(), bytes.end());
  // f32 to any floating-point type always converts.
  Result<Array> converted = convertArray(std::move(wide), type.dtype, "random");
  return converted ? std::move(*converted) : Array{type.dtype, type.shape, {}};
}

Array randomInput(const Family &family, std::string_view name, const TensorType &type, std::uint64_t seed) {
  if (family.samples)
    if (std::optional<Array> own = family.samples->input(name, type, seed))
      return std::move(*own);
  // Inputs of one call differ.
  const std::vector<TensorParameter> all = family.callable->tensors();
  const auto at = std::find_if(all.begin(), all.end(), [&](const TensorParameter &p) { return p.has(name); });
  return randomArray(type, seed + static_cast<std::uint64_t>(at - all.begin()));
}

Arrays randomInputs(const Family &family, const TensorTypes &types, std::uint64_t seed) {
  Arrays out;
  std::vector<std::pair<Arrays::value_type *, const TensorType *>> drawn;
  for (const TensorParameter &p : family.callable->tensors())
    for (const auto &[name, type] : types)
      if (!p.output && p.has(name)) {
        Arrays::value_type &one = *out.try_emplace(name).first; // nodes of a map stay where they are
        if (std::optional<Array> table = family.samples ? family.samples->table(name, types, seed) : std::nullopt)
          one.second = std::move(*table);
        else
          drawn.emplace_back(&one, &type);
      }
  inParallel(drawn.size(), [&](std::size_t i) {
    const auto &[one, type] = drawn[i];
    one->second = randomInput(family, one->first, *type, seed);
  });
  return out;
}

Result<MakerCall> makerOf(const TensorParameter &p, const Arrays &inputs, const OptionValues &options,
                          const std::vector<std::string> &made) {
  MakerCall out;
  KILN_ASSIGN(out.family, findFamily(p.madeBy));
  const Callable &maker = *out.family->callable;
  for (const TensorParameter &t : maker.tensors()) {
    for (const auto &[name, array] : inputs)
      if (!t.output && t.has(name))
        out.inputs[name] = array;
    if (t.output && t.optional && std::find(made.begin(), made.end(), t.name) != made.end())
      out.options[t.name] = true;
  }
  for (const OptionInfo &o : maker.options())
    if (const auto found = options.find(o.name); found != options.end())
      out.options.insert(*found);
  return out;
}

Result<Arrays> withMadeInputs(Jit &jit, const Callable &callable, Arrays inputs, const OptionValues &options,
                              const std::vector<std::string> &made, bool isPlanned) {
  const auto isMade = [&](const TensorParameter &p) {
    return std::find(made.begin(), made.end(), p.name) != made.end();
  };
  const std::vector<TensorParameter> all = callable.tensors();
  for (const TensorParameter &p : all) {
    if (!isMade(p) || inputs.count(p.name))
      continue;
    KILN_ASSIGN(const MakerCall call, makerOf(p, inputs, options, made));
    const Callable &maker = *call.family->callable;
    RunnerResult result;
    if (isPlanned) {
      TensorTypes types;
      for (const auto &[name, array] : call.inputs)
        types[name] = {array.type, array.shape};
      KILN_ASSIGN(const TensorTypes outputs, maker.outputs(types, call.options));
      for (const auto &[name, type] : outputs) {
        KILN_ASSIGN(const std::uint64_t bytes, shapeBytes(type.shape, dtypeBytes(type.dtype)));
        result.outputs[name] = {type.dtype, type.shape, std::vector<std::byte>(bytes)};
      }
    } else {
      KILN_ASSIGN(result, runCall(jit, maker, call.inputs, call.options));
    }
    // All that it makes, in one run.
    for (const TensorParameter &other : all) {
      if (!isMade(other) || other.madeBy != p.madeBy)
        continue;
      const auto output = result.outputs.find(other.name);
      if (output == result.outputs.end())
        return Status(StatusCode::Internal, p.madeBy + " made no '" + other.name + "'" +
                                                (result.findings.empty() ? "" : ": " + result.findings[0].toString()));
      inputs[other.name] = std::move(output->second);
    }
  }
  return inputs;
}

Result<Arrays> sampleInputs(Jit &jit, const Family &family, const Sample &sample, std::uint64_t seed) {
  Arrays inputs = randomInputs(family, sample.inputs, seed);
  for (const auto &[name, array] : sample.given)
    inputs[name] = array;
  return withMadeInputs(jit, *family.callable, std::move(inputs), sample.options, sample.made);
}

std::string Comparison::toString() const {
  const std::string sampled =
      elements < all ? format(", a sample of %llu", static_cast<unsigned long long>(all)) : std::string();
  if (wrong == 0 && !(meanExcess <= 1))
    return format("the mean difference of '%s' is %.3g times what is allowed, though each of %llu elements%s is within "
                  "tolerance",
                  output.c_str(), meanExcess, static_cast<unsigned long long>(elements), sampled.c_str());
  if (wrong == 0 && ratioExcess > 1)
    return format("the root mean square of the differences of '%s' is %.3g times what is allowed, though each of %llu "
                  "elements%s is within tolerance",
                  output.c_str(), ratioExcess, static_cast<unsigned long long>(elements), sampled.c_str());
  if (good() && ratioExcess > 0)
    return format("%llu elements%s within tolerance (root mean square %.2g of it, largest difference %.3g)",
                  static_cast<unsigned long long>(elements), sampled.c_str(), ratioExcess, worstDifference);
  if (good())
    return format("%llu elements%s within tolerance (worst %.2g of it, largest difference %.3g)",
                  static_cast<unsigned long long>(elements), sampled.c_str(), worstExcess, worstDifference);
  return format("%llu of %llu elements%s of '%s' are wrong; the worst is element %llu: %.9g, expected %.9g",
                static_cast<unsigned long long>(wrong), static_cast<unsigned long long>(elements), sampled.c_str(),
                output.c_str(), static_cast<unsigned long long>(worstIndex), got, wanted);
}

Result<Comparison> compareWithReference(const Family &family, const Arrays &inputs, const OptionValues &options,
                                        const Arrays &outputs) {
  KILN_ASSIGN(const Reference *reference, referenceOf(family));
  const HostTensors host = toHost(inputs);
  KILN_ASSIGN(const HostTensors wanted, reference->compute(host, options));
  return compareWith(wanted, *reference, host, options, outputs);
}

Result<Comparison> compareWith(const HostTensors &wanted, const Reference &reference, const HostTensors &inputs,
                               const OptionValues &options, const Arrays &outputs, Limits *known) {
  Comparison out;
  Limits own;
  Limits &limits = known ? *known : own;
  for (const auto &[name, expected] : wanted) {
    const auto found = outputs.find(name);
    if (found == outputs.end() || found->second.shape != expected.shape)
      return Status(StatusCode::Internal, "the reference of '" + name + "' does not have the output's shape");
    // Of a sample no more is converted: the rest may be a hundred times as much.
    const std::vector<double> values =
        expected.sample.empty() ? toHost(found->second).values : elementsOf(found->second, expected.sample);
    auto limit = limits.find(name);
    if (limit == limits.end())
      limit = limits.emplace(name, reference.allowed(name, found->second.type, inputs, wanted, options)).first;
    const std::vector<double> &allowed = limit->second;
    const std::uint64_t compared = values.size();
    if (allowed.size() != compared || expected.values.size() != compared)
      return Status(StatusCode::Internal, "'" + name + "' has no tolerance for each element");
    out.elements += compared;
    out.all += found->second.elements();
    const DType type = found->second.type;
    double total = 0, squares = 0, referenceSquares = 0;
    for (std::uint64_t i = 0; i < compared; ++i) {
      const std::uint64_t at = expected.sample.empty() ? i : expected.sample[i];
      const double g = values[i], w = expected.values[i];
      // Infinity is the rounded result where the value before rounding may lie beyond the type's largest.
      const bool overflows = std::isinf(g) && std::signbit(g) == std::signbit(w) &&
                             std::abs(w) + std::max(0.0, allowed[i] - halfUlp(w, type)) >= overflowThreshold(type);
      const bool same = g == w || (std::isnan(g) && std::isnan(w)) || overflows;
      const double difference = same ? 0 : std::abs(g - w);
      const double excess = same ? 0 : allowed[i] > 0 ? difference / allowed[i] : INFINITY;
      const bool wrong = !(excess <= 1); // a NaN on one side is wrong
      out.wrong += wrong;
      total += difference;
      squares += difference * difference;
      referenceSquares += w * w;
      if (difference > out.worstDifference)
        out.worstDifference = difference;
      if (excess > out.worstExcess || (wrong && out.wrong == 1)) {
        out.output = name;
        out.worstExcess = std::isnan(excess) ? INFINITY : excess;
        out.worstIndex = at;
        out.got = g;
        out.wanted = w;
      }
    }
    if (const std::optional<double> mean = reference.allowedMean(name, type, inputs, expected); mean && compared) {
      const double excess = total / static_cast<double>(compared) / *mean;
      out.meanExcess = std::isnan(excess) ? INFINITY : std::max(out.meanExcess, excess);
      if (excess > 1 && out.wrong == 0)
        out.output = name;
    }
    if (const std::optional<double> ratio = reference.allowedRatio(name); ratio && compared) {
      const double n = static_cast<double>(compared);
      const double excess = std::sqrt(squares / n) / (std::sqrt(referenceSquares / n) + 1e-8) / *ratio;
      out.ratioExcess = std::isnan(excess) ? INFINITY : std::max(out.ratioExcess, excess);
      if (excess > 1 && out.wrong == 0)
        out.output = name;
    }
  }
  return out;
}

} // namespace kiln::kernels
