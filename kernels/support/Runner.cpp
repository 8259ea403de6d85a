#include "kernels/support/Runner.h"

#include "kernels/support/Redzones.h"
#include "support/Parallel.h"
#include "support/Text.h"

#include <chrono>
#include <cstring>

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
  KILN_TRY(readOutputs(out));
  return out;
}

Status PlacedCall::readOutputs(Arrays &out) const {
  std::erase_if(out, [&](const auto &array) { return !outputTypes.contains(array.first); });
  for (const auto &[name, type] : outputTypes) {
    const Buffer &buffer = bufferOf(name);
    Array &array = out[name];
    array.type = type.dtype, array.shape = type.shape;
    array.data.resize(buffer.size() - 2 * margin);
    KILN_TRY(buffer.copyToHost(margin, array.data));
  }
  return {};
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
  if (type.dtype == DType::I8) {
    Array out{type.dtype, type.shape, std::vector<std::byte>(n)};
    drawInPieces(n, seed, [&](std::mt19937_64 &random, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i)
        out.data[i] = static_cast<std::byte>(random());
    });
    return out;
  }
  std::vector<float> values(n);
  drawInPieces(n, seed, [&](std::mt19937_64 &random, std::size_t begin, std::size_t end) {
    std::normal_distribution<float> normal(0.0f, 2.0f);
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t kind = random() % 64;
      values[i] = kind == 0 ? 0.0f : kind == 1 && i > begin ? values[i - 1] : normal(random);
    }
  });
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

} // namespace kiln::kernels
