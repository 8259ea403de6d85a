// Code of a CPU level must not be shared with code that runs on every CPU: of an inline function that several objects
// define, the linker keeps any one.  So no weak symbol may belong to a level's namespace, and no weak function may use
// the level's instructions (AVX: mnemonics that start with v).
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

std::vector<std::string> linesOf(const std::string &command) {
  std::vector<std::string> lines;
  std::FILE *pipe = popen(command.c_str(), "r");
  if (!pipe)
    return lines;
  std::string line;
  for (int c; (c = std::fgetc(pipe)) != EOF;)
    if (c == '\n')
      lines.push_back(std::exchange(line, {}));
    else
      line += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return lines;
}

std::vector<std::string> objects() {
  std::ifstream list(KILN_BINARY_DIR "/emulator-level-objects.txt");
  std::vector<std::string> out;
  for (std::string line; std::getline(list, line);)
    if (!line.empty())
      out.push_back(line);
  return out;
}

} // namespace

TEST(Levels, NoWeakSymbolBelongsToALevel) {
  ASSERT_FALSE(objects().empty());
  std::size_t symbols = 0;
  for (const std::string &object : objects())
    for (const std::string &line : linesOf(KILN_NM " '" + object + "'")) {
      // "0000000000000000 W _ZN4kiln8emulator2v3...": address, kind, name.
      const std::size_t kind = line.find_first_not_of("0123456789abcdef ");
      if (kind == std::string::npos)
        continue;
      ++symbols;
      const std::string name = line.substr(kind + 2);
      const bool weak = line[kind] == 'W' || line[kind] == 'V' || line[kind] == 'u';
      for (const char *level : {"8emulator2v2", "8emulator2v3", "8emulator2v4", "8emulator8baseline"})
        EXPECT_FALSE(weak && name.find(level) != std::string::npos) << object << ": " << name;
    }
  EXPECT_GT(symbols, 100u);
}

TEST(Levels, WeakFunctionsUseNoInstructionOfALevel) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "levels exist on x86-64 only";
#endif
  std::size_t instructions = 0;
  for (const std::string &object : objects()) {
    // Functions that others may define too have sections of their own.
    std::string sections;
    for (const std::string &line : linesOf(KILN_OBJDUMP " -h -w '" + object + "'"))
      if (const std::size_t name = line.find(".text._Z"); name != std::string::npos)
        sections += " -j " + line.substr(name, line.find(' ', name) - name);
    if (sections.empty())
      continue;
    for (const std::string &line : linesOf(KILN_OBJDUMP " -d --no-show-raw-insn" + sections + " '" + object + "'"))
      if (const std::size_t tab = line.find('\t'); tab != std::string::npos) {
        ++instructions;
        EXPECT_FALSE(line.compare(tab + 1, 1, "v") == 0 && line.compare(tab + 1, 3, "ver") != 0) << object << line;
      }
  }
  EXPECT_GT(instructions, 100u);
}
