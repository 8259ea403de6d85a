#include "tests/numbers/NumbersSweep.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace kiln::test {

namespace {

std::string hex(Bits b) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(b));
  return text;
}

std::string describe(const std::vector<std::vector<Bits>> &operands, std::size_t i) {
  std::string text;
  for (const std::vector<Bits> &list : operands)
    text += (text.empty() ? "" : ", ") + hex(list[i]);
  return text;
}

} // namespace

Result<SweepResult> sweep(Device &device, Module &module, const NumbersCase &c, std::size_t count, unsigned thin) {
  const std::vector<std::vector<Bits>> operands = operandsOf(c, count, thin);
  const std::size_t n = operands[0].size();
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<std::byte> arguments;
  auto push = [&](const void *data, std::size_t size) {
    const auto *bytes = static_cast<const std::byte *>(data);
    arguments.insert(arguments.end(), bytes, bytes + size);
  };
  std::vector<std::byte> packed;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const unsigned size = c.inputs[k].bytes();
    packed.resize(n * size);
    for (std::size_t i = 0; i < n; ++i)
      std::memcpy(&packed[i * size], &operands[k][i], size); // little endian, as the device
    KILN_ASSIGN(auto buffer, device.allocate(packed.size(), "operand"));
    KILN_TRY(buffer->copyFromHost(0, packed));
    const DeviceAddress address = buffer->address();
    push(&address, sizeof address);
    buffers.push_back(std::move(buffer));
  }
  const unsigned size = c.output.bytes();
  KILN_ASSIGN(auto output, device.allocate(n * size, "result"));
  KILN_TRY(output->poison(std::byte(0xa5)));
  const DeviceAddress address = output->address();
  push(&address, sizeof address);
  const auto length = static_cast<std::uint32_t>(n);
  push(&length, sizeof length);
  KILN_ASSIGN(Kernel * kernel, module.kernel(c.name));
  LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>((n + 255) / 256)};
  config.block = {256};
  KILN_TRY(kernel->launch(config, arguments));
  KILN_TRY(device.defaultStream().synchronize());
  packed.resize(n * size);
  KILN_TRY(output->copyToHost(0, packed));
  for (const Finding &finding : device.takeFindings())
    if (!finding.note)
      return Status(StatusCode::Findings, c.name + ": " + finding.toString());
  // Checks cost more than the launch: large sweeps share them between host threads, each a stretch of operands.
  const std::size_t workers = n < (1u << 20) ? 1 : std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 16);
  std::vector<SweepResult> parts(workers);
  auto check = [&](std::size_t worker) {
    SweepResult &part = parts[worker];
    std::vector<Bits> row(operands.size());
    for (std::size_t i = n * worker / workers; i < n * (worker + 1) / workers; ++i) {
      for (std::size_t k = 0; k < operands.size(); ++k)
        row[k] = operands[k][i];
      Bits got = 0;
      std::memcpy(&got, &packed[i * size], size);
      const Verdict verdict = c.check(row, got);
      ++part.checked;
      if (!verdict.right && ++part.wrong == 1)
        part.first = c.name + "(" + describe(operands, i) + ") = " + hex(got) + ", expected " + verdict.expected;
      if (verdict.right && verdict.ulps > part.worstUlps) {
        part.worstUlps = verdict.ulps;
        part.worst = describe(operands, i);
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t worker = 1; worker < workers; ++worker)
    threads.emplace_back(check, worker);
  check(0);
  for (std::thread &t : threads)
    t.join();
  SweepResult result;
  for (const SweepResult &part : parts) {
    result.checked += part.checked;
    if (result.wrong == 0)
      result.first = part.first;
    result.wrong += part.wrong;
    if (part.worstUlps > result.worstUlps) {
      result.worstUlps = part.worstUlps;
      result.worst = part.worst;
    }
  }
  return result;
}

} // namespace kiln::test
