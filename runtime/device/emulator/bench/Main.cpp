// kiln-bench-emulator: thread instructions a second a core, checks off and on, and memory.
#include "runtime/device/emulator/bench/Kernels.h"
#include "runtime/device/emulator/bench/Matrix.h"
#include "runtime/device/emulator/EmulatorDevice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace kiln;

constexpr char help[] = R"(usage: kiln-bench-emulator [--json] [--cpu-level LEVEL] [--threads N] [--repeat N] [--rows N]

Runs an elementwise kernel, a row softmax and a pipeline of cp.async on emulator:sm_90a and prints how many thread instructions one core
executes in a second of CPU time, best of the repetitions, with the checks that cost time off and on, and the memory that the emulator
takes besides the buffers; then matrix products with mma.sync and wgmma, in GFLOP a second and core, exact and fast.  Results are
compared with a float64 reference.

  --json             one JSON object instead of text
  --cpu-level LEVEL  x86-64-v2, x86-64-v3, x86-64-v4 or baseline (default: the best of this CPU)
  --threads N        host threads (default 1)
  --repeat N         launches of each kernel (default 5)
  --rows N           rows of 1024 floats, a multiple of 16 (default 4096)
)";

struct Options {
  bool json = false;
  std::string level;
  unsigned threads = 1, repeat = 5, rows = 4096;
};

/// Resident bytes of this process now.
double residentBytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * 4096;
}

bool report(const Status &status) {
  if (!status.ok())
    std::fprintf(stderr, "kiln-bench-emulator: %s\n", status.toString().c_str());
  return status.ok();
}

/// CPU time of all threads: what other programs take of the machine does not count.
double cpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Measured {
  std::string kernel;
  bool checks = false;
  bool flops = false; ///< `rate` is in FLOP
  double rate = 0;    ///< thread instructions a second a core
  double worstError = 0;
  double bufferMiB = 0;   ///< of the device
  double residentMiB = 0; ///< that the emulator takes for them, all included
};

template <typename T> std::span<const std::byte> bytesOf(const std::vector<T> &v) {
  return std::as_bytes(std::span(v));
}

void pack(std::vector<std::byte> &arguments, const void *value, std::size_t bytes) {
  arguments.resize((arguments.size() + bytes - 1) / bytes * bytes);
  const auto *p = static_cast<const std::byte *>(value);
  arguments.insert(arguments.end(), p, p + bytes);
}

/// A kernel on rows of 1024 floats.
struct RowKernel {
  const char *name, *text;
  unsigned inputs;   ///< 1 or 2
  bool usesLength;   ///< has the parameters n and scale
  unsigned perBlock; ///< floats
};
constexpr RowKernel rowKernels[] = {{"elementwise", bench::elementwise, 2, true, 256},
                                    {"softmax", bench::softmax, 1, false, 1024},
                                    {"pipeline", bench::pipeline, 1, false, 16384}};

bool measure(const Options &options, bool checks, const RowKernel &row, std::vector<Measured> &out) {
  const bool softmax = row.perBlock == 1024;
  const std::uint32_t n = options.rows * 1024;
  std::vector<float> a(n), b(n), result(n);
  const double before = residentBytes();
  EmulatorOptions o;
  o.checks = checks;
  o.hostThreads = options.threads;
  o.cpuLevel = options.level;
  auto target = findTarget("sm_90a");
  auto device = createEmulatorDevice(**target, o);
  if (!report(device.status()))
    return false;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float &v : a)
    v = normal(random);
  for (float &v : b)
    v = normal(random);
  auto x = (*device)->allocate(n * 4, "a"), y = (*device)->allocate(n * 4, "b"), z = (*device)->allocate(n * 4, "out");
  if (!report(x.status()) || !report(y.status()) || !report(z.status()) || !report((*x)->copyFromHost(0, bytesOf(a))) ||
      !report((*y)->copyFromHost(0, bytesOf(b))))
    return false;
  auto module = (*device)->loadPtx(row.text, std::string(row.name) + ".ptx");
  if (!report(module.status()))
    return false;
  auto kernel = (*module)->kernel(row.name);
  if (!report(kernel.status()))
    return false;
  std::vector<std::byte> arguments;
  const float scale = 0.5f;
  auto pointer = [&](const Buffer &buffer) {
    const DeviceAddress address = buffer.address();
    pack(arguments, &address, 8);
  };
  pointer(**x);
  if (row.inputs == 2)
    pointer(**y);
  pointer(**z);
  if (row.usesLength) {
    pack(arguments, &n, 4);
    pack(arguments, &scale, 4);
  }
  LaunchConfig config;
  config.grid = {n / row.perBlock};
  config.block = {256};
  Measured m;
  m.kernel = row.name;
  m.checks = checks;
  for (unsigned i = 0; i < options.repeat; ++i) {
    const double begin = cpuSeconds();
    if (!report((*kernel)->launch(config, arguments)))
      return false;
    const double spent = cpuSeconds() - begin;
    m.rate = std::max(m.rate, static_cast<double>((*device)->takeStatistics().threadInstructions) / spent);
  }
  m.bufferMiB = (row.inputs + 1) * 4.0 * n / (1 << 20);
  m.residentMiB = (residentBytes() - before) / (1 << 20);
  for (const Finding &f : (*device)->takeFindings()) {
    std::fprintf(stderr, "kiln-bench-emulator: unexpected finding %s: %s\n", f.id.c_str(), f.message.c_str());
    return false;
  }
  if (!report((*z)->copyToHost(0, std::as_writable_bytes(std::span(result)))))
    return false;
  for (std::uint32_t r = 0; r < options.rows; ++r) {
    double most = -1e30, sum = 0;
    for (unsigned i = 0; softmax && i < 1024; ++i)
      most = std::max(most, static_cast<double>(a[r * 1024 + i]));
    for (unsigned i = 0; softmax && i < 1024; ++i)
      sum += std::exp(a[r * 1024 + i] - most);
    for (unsigned i = r * 1024; i < r * 1024 + 1024; ++i) {
      // The elementwise kernel is reproduced step by step and must agree to the bit.
      const float v = std::fma(a[i], scale, b[i]),
                  p = std::fma(std::fma(std::fma(v, 0x1.555556p-5f, 0x1.555556p-3f), v, 0.5f), v, 1.0f);
      const double expected = softmax           ? std::exp(a[i] - most) / sum
                              : row.inputs == 2 ? std::max(p * v, a[i])
                                                : std::fma(a[i ^ 512], 0.5f, 1.0f);
      m.worstError = std::max(m.worstError,
                              std::fabs(result[i] - expected) / std::max(softmax ? 1e-3 : 1e-30, std::fabs(expected)));
    }
  }
  out.push_back(m);
  return true;
}

/// mma.sync m16n8k16 on f16: figures in FLOP a second a core.
bool measureMatmul(const Options &options, bool checks, MatrixMode mode, std::vector<Measured> &out) {
  constexpr unsigned n = bench::matmulSize;
  EmulatorOptions o;
  o.checks = checks;
  o.hostThreads = options.threads;
  o.cpuLevel = options.level;
  o.mma = mode;
  auto device = createEmulatorDevice(**findTarget("sm_90a"), o);
  if (!report(device.status()))
    return false;
  std::mt19937 random(1);
  std::vector<std::uint16_t> a(n * n), b(n * n);
  std::vector<float> valuesA(n * n), valuesB(n * n), result(n * n);
  const auto draw = [&](std::uint16_t &half, float &value) { // eleven bits from -1 to 1
    const int v = static_cast<int>(random() % 2047) - 1023;
    value = static_cast<float>(v) / 1024;
    half = __builtin_bit_cast(std::uint16_t, static_cast<_Float16>(value));
  };
  for (unsigned i = 0; i < n * n; ++i) {
    draw(a[i], valuesA[i]);
    draw(b[i], valuesB[i]);
  }
  auto x = (*device)->allocate(n * n * 2, "a"), y = (*device)->allocate(n * n * 2, "b"),
       z = (*device)->allocate(n * n * 4, "d");
  if (!report(x.status()) || !report(y.status()) || !report(z.status()) || !report((*x)->copyFromHost(0, bytesOf(a))) ||
      !report((*y)->copyFromHost(0, bytesOf(b))))
    return false;
  auto module = (*device)->loadPtx(bench::matmul(), "matmul.ptx");
  if (!report(module.status()))
    return false;
  auto kernel = (*module)->kernel("matmul");
  if (!report(kernel.status()))
    return false;
  std::vector<std::byte> arguments;
  for (const Buffer *buffer : {&**x, &**y, &**z}) {
    const DeviceAddress address = buffer->address();
    pack(arguments, &address, 8);
  }
  LaunchConfig config;
  config.grid = {n / 32, n / 32};
  config.block = {32};
  Measured m;
  m.kernel = "mma " + std::string(matrixModeName(mode));
  m.checks = checks;
  m.flops = true;
  for (unsigned i = 0; i < options.repeat; ++i) {
    const double begin = cpuSeconds();
    if (!report((*kernel)->launch(config, arguments)))
      return false;
    m.rate = std::max(m.rate, 2.0 * n * n * n / (cpuSeconds() - begin));
  }
  for (const Finding &f : (*device)->takeFindings()) {
    std::fprintf(stderr, "kiln-bench-emulator: unexpected finding %s: %s\n", f.id.c_str(), f.message.c_str());
    return false;
  }
  if (!report((*z)->copyToHost(0, std::as_writable_bytes(std::span(result)))))
    return false;
  for (unsigned i = 0; i < n; ++i)
    for (unsigned j = 0; j < n; ++j) {
      double sum = 0;
      for (unsigned k = 0; k < n; ++k)
        sum += static_cast<double>(valuesA[i * n + k]) * valuesB[j * n + k];
      m.worstError = std::max(m.worstError, std::fabs(result[i * n + j] - sum));
    }
  out.push_back(m);
  return true;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    auto number = [&](unsigned &value) {
      const long v = i + 1 < argc ? std::strtol(argv[++i], nullptr, 10) : 0;
      if (v < 1 || v > 1 << 20) {
        std::fprintf(stderr, "kiln-bench-emulator: %s needs a number from 1 to 1048576\n", arg.c_str());
        std::exit(2);
      }
      value = static_cast<unsigned>(v);
    };
    if (arg == "--help" || arg == "-h") {
      std::fputs(help, stdout);
      return 0;
    }
    if (arg == "--json")
      options.json = true;
    else if (arg == "--cpu-level" && i + 1 < argc)
      options.level = argv[++i];
    else if (arg == "--threads")
      number(options.threads);
    else if (arg == "--repeat")
      number(options.repeat);
    else if (arg == "--rows")
      number(options.rows);
    else {
      std::fprintf(stderr, "kiln-bench-emulator: unknown option '%s'; see --help\n", arg.c_str());
      return 2;
    }
  }
  std::vector<Measured> results;
  for (const RowKernel &row : rowKernels)
    for (bool checks : {false, true})
      if (!measure(options, checks, row, results))
        return 4;
  for (MatrixMode mode : {MatrixMode::Exact, MatrixMode::Fast})
    for (bool checks : {false, true})
      if (!measureMatmul(options, checks, mode, results))
        return 4;
  const auto table = emulatorInfo(**findTarget("sm_90a"), {.cpuLevel = options.level});
  bool good = true;
  if (options.json)
    std::printf("{\"cpu_level\": \"%s\", \"threads\": %u, \"kernels\": [", table.driver.c_str(), options.threads);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Measured &m = results[i];
    // Sums of 256 products of about 1/3: every step of 16 may lose a few ulp.
    good &= m.worstError <= (m.flops ? 1e-4 : m.kernel == "softmax" ? 2e-6 : 0);
    if (options.json && m.flops)
      std::printf("%s{\"kernel\": \"%s\", \"checks\": %s, \"flop_per_second_per_core\": %.4g, \"worst_error\": %.3g}",
                  i ? ", " : "", m.kernel.c_str(), m.checks ? "true" : "false", m.rate, m.worstError);
    else if (m.flops)
      std::printf("%-12s checks %-3s  %6.2f GFLOP / s / core   worst error %.2g\n", m.kernel.c_str(),
                  m.checks ? "on" : "off", m.rate * 1e-9, m.worstError);
    else if (options.json)
      std::printf("%s{\"kernel\": \"%s\", \"checks\": %s, \"thread_instructions_per_second_per_core\": %.4g, "
                  "\"resident_mib\": %.1f, \"buffer_mib\": %.1f, \"worst_error\": %.3g}",
                  i ? ", " : "", m.kernel.c_str(), m.checks ? "true" : "false", m.rate, m.residentMiB, m.bufferMiB,
                  m.worstError);
    else
      std::printf("%-12s checks %-3s  %6.2f G thread instructions / s / core   %.0f MiB resident for %.0f MiB of "
                  "buffers   worst error %.2g\n",
                  m.kernel.c_str(), m.checks ? "on" : "off", m.rate * 1e-9, m.residentMiB, m.bufferMiB, m.worstError);
  }
  const auto matrix = bench::measureMatrix(options.level, options.repeat);
  if (!report(matrix.status()))
    return 4;
  if (options.json)
    std::printf("], \"matrix\": [");
  for (std::size_t i = 0; i < matrix->size(); ++i) {
    const bench::MatrixRate &r = (*matrix)[i];
    const std::string mode(matrixModeName(r.mode));
    if (options.json)
      std::printf("%s{\"kernel\": \"%s\", \"mode\": \"%s\", \"checks\": %s, \"flop_per_second_per_core\": %.4g}",
                  i ? ", " : "", r.kernel.c_str(), mode.c_str(), r.checks ? "true" : "false", r.flops);
    else
      std::printf("%-55s %-5s  checks %-3s  %6.2f GFLOP / s / core\n", r.kernel.c_str(), mode.c_str(),
                  r.checks ? "on" : "off", r.flops * 1e-9);
  }
  if (options.json)
    std::printf("]}\n");
  else
    std::printf("CPU level %s, %u host thread%s\n", table.driver.c_str(), options.threads,
                options.threads > 1 ? "s" : "");
  if (!good)
    std::fprintf(stderr, "kiln-bench-emulator: results differ from the reference\n");
  return good ? 0 : 1;
}
