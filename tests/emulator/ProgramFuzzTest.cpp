// Any module gives an answer: kernels compiled by nvcc, damaged at random, are loaded and, if they load, launched with
// arguments that may be anything.  Nothing may crash, hang or touch memory outside the emulated GPU (the sanitizer
// builds watch that).
#include "runtime/device/emulator/EmulatorDevice.h"
#include "tests/emulator/PtxHarness.h"
#include "tests/support/TestTier.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sstream>

using namespace kiln;
using namespace kiln::test;

namespace {

using Random = std::mt19937;

std::size_t below(Random &random, std::size_t n) {
  return n ? random() % n : 0;
}

std::vector<std::string> modules() {
  std::vector<std::string> paths;
  for (const auto &entry : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/tests/nvcc/ptx"))
    if (entry.path().extension() == ".ptx" && entry.path().string().find(".O3.") != std::string::npos)
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const std::string &path : paths) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    texts.push_back(text.str());
  }
  return texts;
}

/// Pieces that may stand where another stood.
const char *const words[] = {"%r1",        "%rd1",
                             "%p1",        "%f1",
                             "0",          "-1",
                             "0xFFFFFFFF", "4096",
                             "[%rd1]",     "[%rd1+4]",
                             "_",          "{%r1, %r2}",
                             ".u32",       ".f32",
                             ".b64",       ".s8",
                             ".v4",        ".global",
                             ".shared",    ".local",
                             ".param",     "bar.sync 0",
                             "ret",        "exit",
                             "trap",       "%tid.x",
                             "mov",        "add",
                             "ld",         "st",
                             "bra",        "call",
                             "shfl",       "atom",
                             "1e400",      "0d7FF0000000000000",
                             ";",          "{",
                             "}",          "<2>",
                             "%r<99>",     "sm_90a",
                             ".align 128", "[4000000000]",
                             "!%p1",       "1152921504606846976"};

std::string damaged(const std::string &text, Random &random) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  // After the header, so that most of them still parse.
  const std::size_t first = std::min<std::size_t>(12, lines.size() - 1);
  for (std::size_t n = 1 + below(random, 4); n > 0; --n) {
    const std::size_t i = first + below(random, lines.size() - first), j = first + below(random, lines.size() - first);
    std::string &line = lines[i];
    switch (below(random, 6)) {
    case 0:
      line.clear();
      break;
    case 1:
      std::swap(line, lines[j]);
      break;
    case 2:
      line = lines[j] + "\n" + line;
      break;
    case 3: { // a digit changes: another register, label, offset, size
      std::vector<std::size_t> digits;
      for (std::size_t k = 0; k < line.size(); ++k)
        if (line[k] >= '0' && line[k] <= '9')
          digits.push_back(k);
      if (!digits.empty())
        line[digits[below(random, digits.size())]] = static_cast<char>('0' + below(random, 10));
      break;
    }
    default: { // one word becomes another
      const std::size_t begin = line.find_first_not_of(" \t,", below(random, line.size() + 1));
      if (begin == std::string::npos)
        break;
      const std::size_t end = line.find_first_of(" \t,;.", begin + 1);
      line.replace(begin, end == std::string::npos ? std::string::npos : end - begin,
                   words[below(random, std::size(words))]);
    }
    }
  }
  std::string out;
  for (const std::string &line : lines)
    out += line + "\n";
  return out;
}

} // namespace

TEST(ProgramFuzz, DamagedModulesAreAnswered) {
  const std::vector<std::string> texts = modules();
  ASSERT_FALSE(texts.empty());
  Random random(20260101);
  unsigned refused = 0, ran = 0, failed = 0;
  EmulatorOptions options;
  options.instructionBudget = 20000;
  options.secondsBudget = 1;
#if __has_feature(thread_sanitizer)
  options.hostThreads = 1; // the damaged kernels themselves race between blocks, on the emulated memory
#else
  options.hostThreads = 2;
#endif
  testing::internal::CaptureStdout(); // some of them print
  for (int i = 0, n = pick(150, 6000); i < n; ++i) {
    const std::string &original = texts[below(random, texts.size())];
    const std::string text = damaged(original, random);
    Emulator gpu("sm_90a", options);
    auto module = gpu.load(text);
    if (!module) {
      EXPECT_FALSE(module.status().message().empty());
      ++refused;
      continue;
    }
    auto &buffer = gpu.upload(std::vector<std::uint32_t>(4096, 1), "buffer");
    for (const std::string &name : (*module)->kernelNames()) {
      auto kernel = (*module)->kernel(name);
      if (!kernel) { // the others of its module run all the same
        EXPECT_FALSE(kernel.status().message().empty());
        ++refused;
        continue;
      }
      const KernelInfo &info = (*kernel)->info();
      std::vector<std::byte> arguments(info.parameterBytes);
      for (const ParameterInfo &p : info.parameters) {
        const std::uint64_t v =
            p.size == 8 ? (below(random, 8) ? buffer.address() + 4 * below(random, 3) : random()) : below(random, 64);
        std::memcpy(arguments.data() + p.offset, &v, std::min<std::size_t>(p.size, 8));
      }
      LaunchConfig config;
      config.grid = {static_cast<std::uint32_t>(1 + below(random, 3))};
      config.block =
          info.requiredBlock.x ? info.requiredBlock : Dim3{static_cast<std::uint32_t>(1 + below(random, 96))};
      config.dynamicSharedBytes = static_cast<std::uint32_t>(below(random, 3) * 1024);
      ((*kernel)->launch(config, arguments).ok() ? ran : failed) += 1;
      gpu.device().takeFindings();
    }
  }
  testing::internal::GetCapturedStdout();
  RecordProperty("refused", static_cast<int>(refused));
  RecordProperty("ran", static_cast<int>(ran));
  RecordProperty("failed", static_cast<int>(failed));
  // The damage is neither hopeless nor harmless.
  EXPECT_GT(refused, 0u);
  EXPECT_GT(ran, 0u);
  EXPECT_GT(failed, 0u);
}
