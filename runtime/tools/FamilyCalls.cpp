#include "runtime/tools/FamilyCalls.h"

#include "runtime/tools/FamilyWords.h"
#include "support/Parallel.h"

#include <algorithm>

namespace kiln::tools {
namespace {

using namespace kernels;

/// --with NAME=SHAPE, NAME=SHAPE:DTYPE or NAME=FILE.npy instead of the samples' tensors, --with NAME=V in addition to
/// their options.
Status applyWith(std::span<const std::string> with, const Family &family, DType type, std::vector<Sample> &samples) {
  const Callable &callable = *family.callable;
  std::vector<std::string> words;
  for (const std::string &text : with)
    words.push_back("--" + text);
  KILN_ASSIGN(const FamilyWords given, parseFamilyWords(callable, words));
  TensorTypes tensors;
  Arrays read;
  OptionValues asked;
  std::vector<std::string> made;
  for (const TensorParameter &p : callable.tensors())
    for (const auto &[name, value] : given.tensors) {
      if (!p.has(name))
        continue;
      if (p.output && p.optional && value == "1") {
        asked[name] = true;
        continue;
      }
      if (!p.madeBy.empty()) {
        if (value != p.madeBy)
          return Status::invalid("--with " + name + "=" + value + ": it is what " + p.madeBy + " makes",
                                 "write --with " + name + "=" + p.madeBy);
        made.push_back(name);
        continue;
      }
      if (value.ends_with(".npy") && !p.output) {
        KILN_ASSIGN(Array array, readInput(name, value, callable.inputType(p, type, given.options)));
        tensors[name] = {array.type, array.shape};
        read[name] = std::move(array);
        continue;
      }
      const std::size_t colon = value.find(':');
      KILN_ASSIGN(const Shape shape, parseShape(value.substr(0, colon)));
      if (p.output)
        return Status::invalid("--with " + name + "=" + value + ": the sizes of outputs follow from the inputs",
                               p.optional ? "write --with " + name + "=1 to have it made" : "leave it out");
      DType own = callable.inputType(p, type, given.options).value_or(type);
      if (colon != std::string::npos) {
        KILN_ASSIGN(own, parseDType(value.substr(colon + 1)));
      }
      const bool isTable = own == DType::I32 || (own == DType::I64 && colon != std::string::npos);
      if (isTable && !family.samples->table(name, {{name, {own, shape}}}, 1))
        return Status::invalid("--with " + name + "=" + value + ": such inputs are random, and a table cannot be",
                               "give a file: --with " + name + "=FILE.npy");
      tensors[name] = {own, shape};
    }
  if (!tensors.empty()) {
    // What a call needs and another family makes is made.
    TensorTypes present = tensors;
    for (const TensorParameter &p : callable.tensors())
      if (!p.output && !p.optional && !p.madeBy.empty()) {
        present[p.name];
        if (std::find(made.begin(), made.end(), p.name) == made.end())
          made.push_back(p.name);
      }
    KILN_TRY(requireInputs(callable, present));
    samples = {{tensors}};
    samples[0].given = std::move(read);
  }
  for (Sample &sample : samples) {
    for (const auto &[name, value] : given.options)
      sample.options[name] = value;
    sample.options.insert(asked.begin(), asked.end());
    sample.made.insert(sample.made.end(), made.begin(), made.end());
    if (const auto outputs = callable.outputs(sample.inputs, sample.options); !outputs.ok())
      return outputs.status();
  }
  return {};
}

/// A table, or the family's random data: a block of rows, repeated, because drawing a gigabyte takes the host longer
/// than the GPU.
Array inputOf(const Family &family, std::string_view name, const TensorTypes &all, std::uint64_t seed,
              InputValues values) {
  if (std::optional<Array> table = family.samples->table(name, all, seed))
    return std::move(*table);
  const TensorType &type = all.find(name)->second;
  std::uint64_t n = 1;
  for (std::uint64_t extent : type.shape)
    n *= extent;
  const std::uint64_t bytes = n * dtypeBytes(type.dtype);
  Array out{type.dtype, type.shape, std::vector<std::byte>(bytes)};
  if (values == InputValues::Any || n == 0)
    return out;
  const std::uint64_t blockElements = std::min<std::uint64_t>(n, 1u << 20);
  const std::uint64_t columns = type.shape.empty() ? 1 : std::clamp<std::uint64_t>(type.shape.back(), 1, blockElements);
  // An odd number of rows: heads, whose number is mostly even, see different ones.
  const Array block = randomInput(family, name, {type.dtype, {(blockElements / columns) | 1, columns}}, seed);
  for (std::uint64_t at = 0; at < bytes; at += block.data.size())
    std::copy_n(block.data.begin(), std::min<std::uint64_t>(block.data.size(), bytes - at),
                out.data.begin() + static_cast<std::ptrdiff_t>(at));
  return out;
}

} // namespace

Result<std::vector<FamilyCall>> chooseFamilyCalls(const std::vector<std::string> &names,
                                                  const std::vector<std::string> &dtypes,
                                                  std::span<const std::string> with, Needs needs, SampleUse use,
                                                  bool large) {
  if (!with.empty() && names.size() != 1)
    return Status::invalid("--with " + with[0] + ": its parameters are of one kernel, " + std::to_string(names.size()) +
                               " are named",
                           "name one kernel");
  KILN_ASSIGN(const std::vector<KernelTypes> chosen, selectKernels(names, dtypes, needs));
  std::vector<FamilyCall> calls;
  for (const auto &[family, types] : chosen)
    for (const DType type : types) {
      std::vector<Sample> samples = family->samples->calls(type, use, large);
      KILN_TRY(applyWith(with, *family, type, samples));
      for (Sample &sample : samples)
        calls.push_back({family, std::move(sample), type});
    }
  return calls;
}

Result<Arrays> randomInputsOf(Jit &jit, const FamilyCall &call, InputValues values) {
  Arrays drawn;
  std::vector<Arrays::value_type *> all;
  for (const auto &[name, t] : call.sample.inputs)
    all.push_back(&*drawn.try_emplace(name).first); // nodes of a map stay where they are
  inParallel(all.size(), [&](std::size_t i) {
    auto &[name, array] = *all[i];
    const auto given = call.sample.given.find(name);
    array = given == call.sample.given.end() ? inputOf(*call.family, name, call.sample.inputs, i + 1, values)
                                             : given->second;
  });
  return withMadeInputs(jit, *call.family->callable, std::move(drawn), call.sample.options, call.sample.made,
                        values == InputValues::Any);
}

std::string sizeTextOf(const FamilyCall &call) {
  const Callable &callable = *call.family->callable;
  const Sample &sample = call.sample;
  std::string size = callable.sizeText(sample.inputs, sample.options);
  for (const TensorParameter &p : callable.tensors())
    if (p.optional &&
        (p.output ? isSet(sample.options, p.name) : std::count(sample.made.begin(), sample.made.end(), p.name)))
      size += ", " + p.name;
  return size;
}

} // namespace kiln::tools
