#include "kernels/dplr/DplrCallable.h"

#include "kernels/dplr/DplrOperation.h"
#include "support/Text.h"

namespace kiln::kernels {

std::vector<OptionInfo> DplrCallable::options() const {
  return optionsListedBy([&](auto &&visit) {
    const DplrArguments standard;
    chunkOptions(standard, visit, names.gate != GateKind::None, names.isRwkv() ? scaleTextOfRwkv7 : scaleText);
  });
}

std::optional<DType> DplrCallable::inputType(const TensorParameter &parameter, std::optional<DType> called,
                                             const OptionValues &) const {
  const bool keeps = parameter.name == names.g || parameter.name == "initial_state" || parameter.name == "dht" ||
                     parameter.name == "cu_seqlens" || parameter.name == "beta";
  return keeps ? std::nullopt : parameter.dtype ? parameter.dtype : called;
}

std::vector<TensorParameter> DplrCallable::inputParameters() const {
  const std::string q(names.q);
  std::vector<TensorParameter> out{{q, false, false, "B x T x H x K, f16 or bf16"},
                                   {"k", false, false, "B x T x H x K"},
                                   {"v", false, false, "B x T x H x V"}};
  if (names.rule == ChunkRule::Dplr) {
    out.push_back({"a", false, false, "B x T x H x K: reads the state before it decays"});
    out.push_back({"b", false, false, "B x T x H x K: where what was read is added"});
  }
  if (names.gate != GateKind::None)
    out.push_back({std::string(names.g), false, false,
                   std::string(names.gate == GateKind::Head ? "B x T x H" : "B x T x H x K") + ", f32 or as " + q +
                       ": natural logarithms of decays, at most 0"});
  if (names.rule == ChunkRule::Delta)
    out.push_back({"beta", false, false, "B x T x H, f32 or as " + q + ": how much of what k reads is taken back"});
  out.push_back({"initial_state", false, true, "N x H x K x V, f32, f16 or bf16"});
  out.push_back({"cu_seqlens", false, true, "N + 1, int32 or int64: where each sequence starts; B is 1"});
  return out;
}

Result<DplrCallable::Extents> DplrCallable::extentsOf(const TensorTypes &inputs) const {
  const Shape &q = inputs.find(names.q)->second.shape, &v = inputs.find("v")->second.shape;
  for (const auto &[name, shape] : {std::pair(names.q, &q), {std::string_view("v"), &v}})
    if (shape->size() != 4)
      return Status::invalid(std::string(names.operation) + ": argument '" + std::string(name) + "' has " +
                                 std::to_string(shape->size()) + " dimensions",
                             "give it four: B x T x H x columns");
  if (const auto g = inputs.find(names.g); names.gate != GateKind::None && g != inputs.end()) {
    const std::size_t wanted = names.gate == GateKind::Head ? 3 : 4;
    if (g->second.shape.size() != wanted)
      return Status::invalid(format("%s: argument '%s' has %zu dimensions", std::string(names.operation).c_str(),
                                    std::string(names.g).c_str(), g->second.shape.size()),
                             wanted == 3 ? "give it three, a gate for each head: B x T x H"
                                         : "give it four, a gate for each channel: B x T x H x K");
  }
  Extents e{q[0], q[1], q[2], q[3], v[3], q[0]};
  if (const auto cu = inputs.find("cu_seqlens"); cu != inputs.end()) {
    if (cu->second.shape.size() != 1 || cu->second.shape[0] == 0)
      return Status::invalid(std::string(names.operation) + ": cu_seqlens is no list of N + 1 offsets",
                             "give it one dimension");
    e.sequences = cu->second.shape[0] - 1;
  }
  return e;
}

Result<TensorType> DplrCallable::savedType(const Extents &e, bool packed, const OptionValues &options) const {
  KILN_ASSIGN(const DplrArguments arguments, readOptions<DplrArguments>(names.operation, options));
  DplrInputs in;
  const auto n = [](std::uint64_t x) { return static_cast<std::int64_t>(x); };
  in.q.shape = {n(e.batch), n(e.tokens), n(e.heads), n(e.dim)};
  in.v.shape = {n(e.batch), n(e.tokens), n(e.heads), n(e.dimV)};
  in.q.dtype = in.v.dtype = dtypes().front(); // all of them have two bytes
  in.rule = names.rule, in.gate = names.gate;
  if (packed)
    in.cuSeqlens.emplace().shape[0] = n(e.sequences) + 1;
  if (arguments.chunkSize == 16 || arguments.chunkSize == 32) // a call with any other than these and 64 is refused
    in.chunkSize = arguments.chunkSize;
  return TensorType{DType::U8, {static_cast<std::uint64_t>(savedBytes(in))}};
}

Status DplrCallable::complete(const Arrays &inputs, OptionValues &) const {
  const auto cu = inputs.find("cu_seqlens");
  if (cu == inputs.end())
    return {};
  const std::vector<double> offsets = toHost(cu->second).values;
  const auto tokens = static_cast<double>(inputs.find(names.q)->second.shape[1]);
  const auto wrong = [&](std::size_t at, const std::string &what) {
    return Status::invalid(format("%s: cu_seqlens[%zu] = %.0f: ", std::string(names.operation).c_str(), at,
                                  at < offsets.size() ? offsets[at] : 0.0) +
                               what,
                           "give offsets that begin at 0, never fall, and end at T");
  };
  if (offsets.empty() || offsets.front() != 0)
    return wrong(0, "it must be 0");
  for (std::size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i] < offsets[i - 1])
      return wrong(i, format("below the one before it, %.0f", offsets[i - 1]));
  if (offsets.back() != tokens)
    return wrong(offsets.size() - 1, format("it must be T, %.0f", tokens));
  return {};
}

std::string DplrCallable::sizeText(const TensorTypes &inputs, const OptionValues &) const {
  const auto e = extentsOf(inputs);
  if (!e.ok())
    return {};
  const auto n = [](std::uint64_t v) { return std::to_string(v); };
  return "B" + n(e->batch) + " T" + n(e->tokens) + " H" + n(e->heads) + " D" + n(e->dim) +
         (e->dim == e->dimV ? "" : "," + n(e->dimV)) +
         (inputs.count("cu_seqlens") ? " in " + n(e->sequences) + " sequences" : "");
}

std::vector<TensorParameter> DplrForwardCallable::tensors() const {
  std::vector<TensorParameter> out = inputParameters();
  out.push_back({"o", true, false, "B x T x H x V"});
  out.push_back({"final_state", true, true, "N x H x K x V, f32"});
  out.push_back({"saved", true, true, "u8: what gradients by the same inputs take in place of making it again"});
  return out;
}

Result<TensorTypes> DplrForwardCallable::outputs(const TensorTypes &inputs, const OptionValues &options) const {
  KILN_ASSIGN(const Extents e, extentsOf(inputs));
  TensorTypes out{{"o", {inputs.find(names.q)->second.dtype, {e.batch, e.tokens, e.heads, e.dimV}}}};
  if (isSet(options, "final_state"))
    out["final_state"] = {DType::F32, {e.sequences, e.heads, e.dim, e.dimV}};
  if (isSet(options, "saved")) {
    KILN_ASSIGN(out["saved"], savedType(e, inputs.count("cu_seqlens") != 0, options));
  }
  return out;
}

} // namespace kiln::kernels
