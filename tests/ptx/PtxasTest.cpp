// NVIDIA's assembler as a reference: the same verdict on every construct, and the same machine code from a printed
// module as from its source.  Skipped where ptxas is not installed.
#include "Constructs.h"
#include "PtxTesting.h"

#include "runtime/ptx/Printer.h"
#include "tests/support/TestTier.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <regex>

namespace kiln::ptx::test {
namespace {

class Ptxas : public ::testing::Test {
protected:
  void SetUp() override {
    for (const char *candidate : {"/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas", "/opt/cuda/bin/ptxas"})
      if (std::filesystem::exists(candidate))
        program = candidate;
    if (program.empty())
      GTEST_SKIP() << "ptxas is not installed";
  }

  bool assembles(const std::string &text, const std::string &target) const {
    std::ofstream(directory.path() + "/m.ptx", std::ios::binary) << text;
    const std::string command =
        "cd '" + directory.path() + "' && '" + program + "' -c -arch=" + target + " m.ptx -o m.cubin > log 2>&1";
    return std::system(command.c_str()) == 0;
  }

  std::string read(const char *name) const {
    std::ifstream in(directory.path() + "/" + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

  /// Contents of the object's sections that hold code or data.
  std::map<std::string, std::string> sections() const {
    const std::string elf = read("m.cubin");
    auto at = [&elf]<typename T>(T value, std::size_t offset) {
      if (offset + sizeof value <= elf.size())
        std::memcpy(&value, elf.data() + offset, sizeof value);
      return value;
    };
    const std::size_t table = at(std::uint64_t{0}, 0x28);
    const unsigned count = at(std::uint16_t{0}, 0x3c), names = at(std::uint16_t{0}, 0x3e);
    const std::size_t nameTable = at(std::uint64_t{0}, table + names * 64 + 24);
    std::map<std::string, std::string> out;
    for (unsigned i = 0; i < count; ++i) {
      const std::size_t header = table + i * 64;
      if (at(std::uint32_t{0}, header + 4) == 1) // SHT_PROGBITS
        out[elf.c_str() + nameTable + at(std::uint32_t{0}, header)] =
            elf.substr(at(std::uint64_t{0}, header + 24), at(std::uint64_t{0}, header + 32));
    }
    return out;
  }

  kiln::test::TemporaryDirectory directory;
  std::string program;
};

TEST_F(Ptxas, AgreesOnConstructs) {
  const std::size_t step = kiln::test::pick<std::size_t>(9, 1);
  for (std::size_t i = 0; i < constructs().size(); i += step) {
    const Construct &c = constructs()[i];
    EXPECT_EQ(assembles(moduleOf(c), "sm_90a"), c.error.empty() == c.difference.empty()) << c.text << "\n"
                                                                                         << read("log");
  }
  for (std::string_view text : callConstructs())
    EXPECT_TRUE(assembles(moduleOfCalls(text), "sm_90a")) << text << "\n" << read("log");
}

TEST_F(Ptxas, SameCodeFromPrintedModules) {
  // Debug information, lines and unrolling hints do not survive printing.
  const std::regex dropped("(\\n\\s*(\\.loc|\\.pragma)\\s[^\\n]*)|(, debug)");
  for (const Sample &s : samples()) {
    if (!kiln::test::isFullTier() && s.name.find("async") == s.name.npos)
      continue;
    auto m = accepted(s.text);
    ASSERT_TRUE(m);
    const std::string target(m->targets[0]);
    ASSERT_TRUE(assembles(std::regex_replace(s.text, dropped, ""), target)) << s.name << "\n" << read("log");
    const auto want = sections();
    ASSERT_TRUE(assembles(std::regex_replace(print(*m), dropped, ""), target)) << s.name << "\n" << read("log");
    const auto got = sections();
    EXPECT_GT(want.size(), 1u);
    EXPECT_TRUE(want == got) << s.name;
  }
}

} // namespace
} // namespace kiln::ptx::test
