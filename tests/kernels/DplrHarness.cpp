#include "tests/kernels/DplrHarness.h"

#include "kernels/support/Runner.h"
#include "support/Text.h"
#include "tests/support/TestTier.h"

#include <cmath>
#include <random>

namespace kiln::test {

using namespace kernels;

std::string DplrProblem::text() const {
  std::string out = format("%s B%llu T%llu H%llu K%llu V%llu", std::string(dtypeName(dtype)).c_str(),
                           static_cast<unsigned long long>(batch), static_cast<unsigned long long>(tokens),
                           static_cast<unsigned long long>(heads), static_cast<unsigned long long>(dim),
                           static_cast<unsigned long long>(dimV));
  for (const auto &[name, value] : options)
    out += " " + name + "=" + textOf(value);
  for (const std::uint64_t offset : offsets)
    out += (offset == offsets.front() ? " in " : ",") + std::to_string(offset);
  return out + format(" gates/%g zeroed %g from %g", gates.norm, gates.zeroed, gates.lowest);
}

Array DplrProblem::offsetsArray() const {
  Array out{offsetType, {offsets.size()}, {}};
  for (const std::uint64_t offset : offsets) {
    const auto *bytes = reinterpret_cast<const std::byte *>(&offset); // little-endian, as every target
    out.data.insert(out.data.end(), bytes, bytes + dtypeBytes(offsetType));
  }
  return out;
}

void Dplr::SetUp() {
  on = openedDevice(deviceNames()[GetParam()]);
  ASSERT_TRUE(on);
}

bool Dplr::chosen(unsigned number, unsigned stride) const {
  return isFullTier() || !on->emulated() || number % stride == GetParam() % stride;
}

Arrays Dplr::inputsOf(const DplrProblem &p) {
  const Family &family = familyOf("dplr_backward");
  const Shape keys{p.batch, p.tokens, p.heads, p.dim}, values{p.batch, p.tokens, p.heads, p.dimV};
  const Shape state{p.sequences(), p.heads, p.dim, p.dimV};
  ++seed;
  Arrays out;
  for (const char *name : {"q", "k", "a", "b"})
    out[name] = randomInput(family, name, {p.dtype, keys}, seed);
  out["v"] = randomInput(family, "v", {p.dtype, values}, seed);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<double> g(p.batch * p.tokens * p.heads * p.dim);
  for (double &x : g) {
    x = -std::log1p(std::exp(-normal(random))) / p.gates.norm;
    if (uniform(random) < p.gates.zeroed)
      x = 0;
    x = std::clamp(x, p.gates.lowest, p.gates.highest);
  }
  out["g"] = arrayOf(p.gateType, keys, g);
  const auto scaled = [&](const Shape &shape, DType type) {
    std::uint64_t n = 1;
    for (const std::uint64_t e : shape)
      n *= e;
    std::vector<double> x(n);
    for (double &y : x)
      y = p.unit * normal(random);
    return arrayOf(type, shape, x);
  };
  out["do"] = scaled(values, p.dtype);
  if (p.first)
    out["initial_state"] = randomInput(family, "initial_state", {*p.first, state}, seed);
  if (p.last)
    out["dht"] = scaled(state, *p.last);
  if (!p.offsets.empty())
    out["cu_seqlens"] = p.offsetsArray();
  return out;
}

Arrays inputsFor(const Family &family, const Arrays &inputs) {
  Arrays out;
  for (const TensorParameter &parameter : family.callable->tensors()) {
    const auto found = inputs.find(parameter.name);
    if (!parameter.output && found != inputs.end())
      out[parameter.name] = found->second;
  }
  // RWKV7's names.
  for (const auto &[own, theirs] : {std::pair("r", "q"), {"w", "g"}})
    if (family.name().starts_with("rwkv7"))
      out[own] = inputs.at(theirs);
  return out;
}

Arrays Dplr::run(std::string_view name, const Arrays &inputs, const DplrProblem &p) {
  const Family &family = familyOf(name);
  const Callable &callable = *family.callable;
  OptionValues options = p.options;
  options[std::string(name.find("backward") == std::string_view::npos ? "final_state" : "dh0")] = true;
  const Arrays mine = inputsFor(family, inputs);
  EXPECT_TRUE(callable.complete(mine, options).ok());
  auto placed = PlacedCall::create(*on->device, callable, mine, options);
  EXPECT_TRUE(placed.ok()) << placed.status().toString();
  if (!placed.ok())
    return {};
  const Callable::Planner planner = callable.bind(*on->jit);
  WorkspacePlan size;
  EXPECT_TRUE(planner(placed->call(), size).ok());
  auto workspace = on->device->allocate(std::max<std::size_t>(size.bytes, 256), "workspace");
  EXPECT_TRUE(workspace.ok() && (*workspace)->fill(std::byte(0xFF)).ok());
  if (!workspace.ok())
    return {};
  const Status ran = callable.run(*on->jit, planner, placed->call(),
                                  {.workspace = (*workspace)->address(), .workspaceBytes = size.bytes});
  EXPECT_TRUE(ran.ok()) << ran.toString();
  const Status finished = on->device->defaultStream().synchronize();
  EXPECT_TRUE(finished.ok()) << finished.toString();
  for (const Finding &f : on->device->takeFindings())
    ADD_FAILURE() << f.toString();
  auto outputs = placed->readOutputs();
  EXPECT_TRUE(outputs.ok()) << outputs.status().toString();
  return ran.ok() && outputs.ok() ? std::move(*outputs) : Arrays();
}

void Dplr::compare(std::string_view name, const Arrays &inputs, const DplrProblem &p, const Arrays &outputs) {
  const Family &family = familyOf(name);
  OptionValues options = p.options;
  for (const char *optional : {"final_state", "dh0"})
    if (outputs.count(optional))
      options[optional] = true;
  const auto compared = compareWithReference(family, inputsFor(family, inputs), options, outputs);
  ASSERT_TRUE(compared.ok()) << compared.status().toString();
  EXPECT_TRUE(compared->good()) << name << ": " << compared->toString();
}

void Dplr::check(const DplrProblem &p) {
  SCOPED_TRACE(deviceNames()[GetParam()] + ": " + p.text());
  const Arrays inputs = inputsOf(p);
  for (const char *family : {"dplr", "dplr_backward"}) {
    const Arrays outputs = run(family, inputs, p);
    ASSERT_FALSE(outputs.empty());
    ASSERT_NO_FATAL_FAILURE(compare(family, inputs, p, outputs));
  }
}

void Dplr::checkRows(const std::vector<DplrProblem> &rows, DplrProblem (*shortened)(DplrProblem)) {
  unsigned number = 0;
  for (const DplrProblem &p : rows) {
    if (!chosen(number++, 4))
      continue;
    check(isFullTier() || !on->emulated() ? p : shortened(p));
    if (HasFatalFailure())
      return;
  }
}

void Dplr::checkSaved(const std::string &family, Arrays inputs, const DplrProblem &p) {
  SCOPED_TRACE(deviceNames()[GetParam()] + ": " + family + " " + p.text());
  DplrProblem saving = p;
  saving.options["saved"] = true;
  Arrays out = run(family, inputs, saving);
  ASSERT_TRUE(out.count("saved"));
  ASSERT_NO_FATAL_FAILURE(compare(family, inputs, p, out));
  inputs["saved"] = std::move(out.at("saved"));
  const Arrays gradients = run(family + "_backward", inputs, p);
  ASSERT_FALSE(gradients.empty());
  ASSERT_NO_FATAL_FAILURE(compare(family + "_backward", inputs, p, gradients));
}

} // namespace kiln::test
