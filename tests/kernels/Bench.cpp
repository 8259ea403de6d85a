#include "tests/kernels/Bench.h"

#include "tests/kernels/SwappingDevice.h"

#include "support/Text.h"

#include <cmath>
#include <cstring>

namespace kiln::test {

using namespace kernels;

namespace {

constexpr std::byte poison{0xCD};   // of outputs
constexpr std::byte sentinel{0xFF}; // around the elements of inputs: a NaN in every type

std::string chosenDevice;

std::map<std::string, std::unique_ptr<Opened>> &openDevices() {
  static std::map<std::string, std::unique_ptr<Opened>> all;
  return all;
}

template <typename T> T valueAt(const Array &array, std::uint64_t i) {
  T out;
  std::memcpy(&out, array.data.data() + i * sizeof(T), sizeof(T));
  return out;
}

Array transposed(const Array &x) {
  const unsigned width = dtypeBytes(x.type);
  const std::uint64_t rows = x.shape[0], columns = x.shape[1];
  Array out{x.type, {columns, rows}, std::vector<std::byte>(x.data.size())};
  for (std::uint64_t i = 0; i < rows; ++i)
    for (std::uint64_t j = 0; j < columns; ++j)
      std::memcpy(&out.data[(j * rows + i) * width], &x.data[(i * columns + j) * width], width);
  return out;
}

/// The correctly rounded sum.  Sums of two f16 or bf16 values that float64 cannot hold exactly are no ties of those
/// types, so rounding twice is rounding once.
Array roundedSum(const Array &x, const Array &y) {
  Array wide{DType::F64, x.shape, {}};
  std::vector<double> sums(x.elements());
  const unsigned width = dtypeBytes(x.type);
  for (std::uint64_t i = 0; i < sums.size(); ++i)
    sums[i] = x.type == DType::F32 ? static_cast<double>(valueAt<float>(x, i) + valueAt<float>(y, i))
                                   : loadElement(&x.data[i * width], x.type) + loadElement(&y.data[i * width], x.type);
  return arrayOf(x.type, x.shape, sums);
}

/// Bits are equal, but for the payload of NaNs where `nansAreEqual`.
void expectSameBits(const Array &got, const Array &wanted, bool nansAreEqual) {
  ASSERT_EQ(got.data.size(), wanted.data.size());
  const unsigned width = dtypeBytes(got.type);
  std::uint64_t wrong = 0;
  std::string first;
  for (std::uint64_t i = 0; i < got.elements(); ++i) {
    const std::byte *g = &got.data[i * width], *w = &wanted.data[i * width];
    if (std::memcmp(g, w, width) == 0)
      continue;
    const double a = loadElement(g, got.type), b = loadElement(w, got.type);
    if (nansAreEqual && std::isnan(a) && std::isnan(b))
      continue;
    if (wrong++ == 0)
      first = format("element %llu is %.17g, expected %.17g", static_cast<unsigned long long>(i), a, b);
  }
  EXPECT_EQ(wrong, 0u) << "elements whose bits differ; " << first;
}

struct Placed {
  Window window;
  std::unique_ptr<Buffer> buffer;
};

Status upload(const Placed &p, Array &array, const std::string &name) {
  if (p.window.isDense()) { // the rest stays unwritten: the emulator reports reads of it
    KILN_TRY(p.buffer->poison(sentinel));
    return p.buffer->copyFromHost(p.window.firstByte(), array.data);
  }
  std::vector<std::byte> image(p.window.bytes(), sentinel);
  p.window.scatter(array, image);
  array = p.window.gather(image); // what stands there after a stride of 0
  return p.buffer->copyFromHost(0, image);
}

void check(const Case &c, const Family &family, const Arrays &outputs) {
  if (c.family == "copy")
    return expectSameBits(outputs.at("out"), c.inputs.at("x"), false);
  if (c.family == "transpose")
    return expectSameBits(outputs.at("out"), transposed(c.inputs.at("x")), false);
  if (c.family == "add")
    return expectSameBits(outputs.at("out"), roundedSum(c.inputs.at("x"), c.inputs.at("y")), true);
  auto comparison = compareWithReference(family, c.inputs, c.options, outputs);
  ASSERT_TRUE(comparison.ok()) << comparison.status().toString();
  EXPECT_TRUE(comparison->good()) << comparison->toString();
}

} // namespace

void setDevice(std::string name) {
  chosenDevice = std::move(name);
}

std::vector<std::string> deviceNames() {
  if (!chosenDevice.empty())
    return {chosenDevice};
  return {"emulator:sm_80", "emulator:sm_89", "emulator:sm_90a", "emulator:sm_120a"};
}

std::vector<const Family *> shapeFamilies() {
  std::vector<const Family *> out;
  for (const Family &family : families())
    if (family.callable->tensors().front().name == "x")
      out.push_back(&family);
  return out;
}

std::vector<FamilyOnDevice> familiesOnDevices() {
  std::vector<FamilyOnDevice> out;
  for (const Family *family : shapeFamilies())
    for (std::size_t i = 0; i < deviceNames().size(); ++i)
      out.emplace_back(family->name(), i);
  return out;
}

std::string familyAndDevice(const testing::TestParamInfo<FamilyOnDevice> &info) {
  return std::get<0>(info.param) + "_" + testName(deviceNames()[std::get<1>(info.param)]);
}

std::unique_ptr<Opened> openWith(const std::string &name, const Opening &how) {
  auto out = std::make_unique<Opened>();
  EmulatorOptions emulator = how.emulator;
  emulator.strictProxy = true; // the library leaves out no fence that PTX asks for
  auto device = openDevice(name, emulator);
  if (!device.ok()) {
    ADD_FAILURE() << name << ": " << device.status().toString();
    return nullptr;
  }
  out->device = std::move(*device);
  if (how.texts || !how.swaps.empty())
    out->device = std::make_unique<SwappingDevice>(std::move(out->device), how.swaps, how.texts);
  JitOptions options;
  // Of the environment only what looks at code, or says who assembles it: a test is the same wherever it runs.
  using Field = std::string Knobs::*;
  for (const auto &[field, variable] : {std::pair<Field, const char *>(&Knobs::dumpDir, "KILN_DUMP_DIR"),
                                        {&Knobs::overrideDir, "KILN_OVERRIDE_DIR"},
                                        {&Knobs::nvJitLink, "KILN_NVJITLINK"},
                                        {&Knobs::ptxas, "KILN_PTXAS"}})
    if (const char *given = std::getenv(variable))
      options.knobs.*field = given;
  options.knobs.compiler = KILN_BINARY_DIR "/bin/libkiln-compiler.so";
  options.knobs.stress = how.stress;
  options.codeTarget = how.codeTarget;
  if (how.cache.empty())
    options.diskCache = false;
  else
    options.knobs.cacheDir = how.cache;
  auto jit = Jit::create(*out->device, std::move(options));
  if (!jit.ok()) {
    ADD_FAILURE() << name << ": " << jit.status().toString();
    return nullptr;
  }
  out->jit = std::move(*jit);
  return out;
}

std::unique_ptr<Opened> freshDevice(const std::string &name, unsigned hostThreads) {
  Opening how;
  how.emulator.hostThreads = hostThreads;
  return openWith(name, how);
}

Opened *openedDevice(const std::string &name) {
  auto &slot = openDevices()[name];
  if (!slot)
    slot = freshDevice(name);
  return slot.get();
}

void closeDevices() {
  openDevices().clear();
}

std::string testName(std::string_view text) {
  if (const auto colon = text.find(':'); colon != std::string_view::npos && text.starts_with("emulator"))
    text.remove_prefix(colon + 1);
  std::string out;
  for (char c : text)
    out += c == ':' || c == '-' ? '_' : c;
  return out;
}

const Family &familyOf(std::string_view name) {
  auto found = findFamily(name);
  if (!found.ok()) // a mistake in the test
    ADD_FAILURE() << found.status().toString();
  return found.ok() ? **found : families().front();
}

std::string Case::toString() const {
  std::string out = family;
  for (const auto &[name, array] : inputs) {
    const auto place = places.find(name);
    out += " " + name + "=" + std::string(dtypeName(array.type)) + ":" + shapeText(array.shape) + ":" +
           placeName(place == places.end() ? Place::Dense : place->second);
  }
  if (const auto place = places.find("out"); place != places.end())
    out += std::string(" out=") + placeName(place->second);
  return out;
}

Array arrayOf(DType dtype, const Shape &shape, const std::vector<double> &values) {
  Array wide{DType::F64, shape, {}};
  const auto bytes = std::as_bytes(std::span(values));
  wide.data.assign(bytes.begin(), bytes.end());
  auto out = convertArray(std::move(wide), dtype, "values");
  EXPECT_TRUE(out.ok()) << out.status().toString();
  return out.ok() ? std::move(*out) : Array{};
}

void runCase(Opened &on, Case c) {
  SCOPED_TRACE(on.device->info().name + ": " + c.toString());
  const Family &family = familyOf(c.family);
  Device &device = *on.device;
  TensorTypes types;
  for (const auto &[name, array] : c.inputs)
    types[name] = {array.type, array.shape};
  auto outputTypes = family.callable->outputs(types, c.options);
  ASSERT_TRUE(outputTypes.ok()) << outputTypes.status().toString();

  std::map<std::string, Placed> placed;
  Call call;
  call.options = c.options;
  const auto add = [&](const std::string &name, DType dtype, const Shape &shape) -> Status {
    const auto place = c.places.find(name);
    Placed &p =
        placed
            .try_emplace(name, Placed{{place == c.places.end() ? Place::Dense : place->second, dtype, shape}, nullptr})
            .first->second;
    KILN_ASSIGN(p.buffer, device.allocate(p.window.bytes(), name));
    KILN_ASSIGN(call.tensors[name], p.window.tensor(device, *p.buffer));
    return {};
  };
  for (auto &[name, array] : c.inputs) {
    Status s = add(name, array.type, array.shape);
    ASSERT_TRUE(s.ok()) << s.toString();
    s = upload(placed.at(name), array, name);
    ASSERT_TRUE(s.ok()) << s.toString();
  }
  for (const auto &[name, type] : *outputTypes) {
    Status s = add(name, type.dtype, type.shape);
    ASSERT_TRUE(s.ok()) << s.toString();
    s = placed.at(name).buffer->poison(poison);
    ASSERT_TRUE(s.ok()) << s.toString();
  }

  device.takeFindings();
  Status ran = family.callable->run(*on.jit, call, {});
  const Status waited = device.defaultStream().synchronize();
  std::string findings;
  for (const Finding &f : device.takeFindings())
    findings += f.toString() + "\n";
  ASSERT_TRUE(ran.ok()) << ran.toString() << "\n" << findings;
  ASSERT_TRUE(waited.ok()) << waited.toString();
  ASSERT_EQ(findings, "");

  if (c.tamper)
    c.tamper(*placed.at("out").buffer);

  Arrays outputs;
  for (const auto &[name, type] : *outputTypes) {
    const Placed &p = placed.at(name);
    std::vector<std::byte> image(p.window.bytes());
    const Status s = p.buffer->copyToHost(0, image);
    ASSERT_TRUE(s.ok()) << s.toString();
    const std::int64_t stray = p.window.strayByte(image, poison);
    EXPECT_EQ(stray, -1) << "the byte of " << name << "'s buffer that was written outside the tensor";
    outputs[name] = p.window.gather(image);
  }
  check(c, family, outputs);
}

void expectRefused(const Status &s, std::initializer_list<std::string> parts, const std::string &what) {
  ASSERT_FALSE(s.ok()) << what << " took wrong arguments";
  EXPECT_EQ(s.code(), StatusCode::InvalidArgument) << s.toString();
  EXPECT_FALSE(s.remedy().empty()) << s.toString();
  for (const std::string &part : parts)
    EXPECT_NE(s.message().find(part), std::string::npos) << what << ": '" << part << "' is not in: " << s.toString();
}

} // namespace kiln::test
