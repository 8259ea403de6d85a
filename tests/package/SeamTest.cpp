// Only the compiler's folders include LLVM or MLIR: runtime, kernels, front end and commands reach none of their
// headers, over any chain of includes.
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace fs = std::filesystem;

namespace {

const fs::path root = KILN_SOURCE_DIR;

struct Include {
  std::string name;
  bool quoted;
};

std::vector<Include> includesOf(const fs::path &file) {
  std::vector<Include> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#')
      continue;
    const std::size_t word = line.find_first_not_of(" \t", hash + 1);
    if (word == std::string::npos || line.compare(word, 7, "include") != 0)
      continue;
    const std::size_t open = line.find_first_of("\"<", word + 7);
    if (open == std::string::npos)
      continue;
    const std::size_t close = line.find_first_of("\">", open + 1);
    if (close != std::string::npos)
      out.push_back({line.substr(open + 1, close - open - 1), line[open] == '"'});
  }
  return out;
}

bool isForeign(const std::string &include) {
  for (const char *prefix : {"mlir/", "mlir-c/", "llvm/", "llvm-c/"})
    if (include.starts_with(prefix))
      return true;
  return false;
}

/// Every source below these folders and whatever they include, as far as it is in the repository.
class Reach {
public:
  explicit Reach(std::initializer_list<const char *> folders) {
    for (const char *folder : folders)
      for (const auto &entry : fs::recursive_directory_iterator(root / folder))
        if (const std::string kind = entry.path().extension(); kind == ".h" || kind == ".cpp" || kind == ".def")
          visit(entry.path(), "");
  }
  std::map<fs::path, std::string> files;                       ///< file -> who included it
  std::vector<std::pair<std::string, std::string>> violations; ///< file, what it includes

private:
  void visit(const fs::path &given, const std::string &from) {
    const fs::path file = fs::weakly_canonical(given);
    if (!files.emplace(file, from).second)
      return;
    for (const Include &include : includesOf(file)) {
      if (isForeign(include.name))
        violations.emplace_back(file.string() + " (included by " + from + ")", include.name);
      if (!include.quoted)
        continue;
      for (const fs::path &base : {file.parent_path(), root, root / "runtime/include"})
        if (fs::exists(base / include.name)) {
          visit(base / include.name, file.string());
          break;
        }
    }
  }
};

TEST(Seam, NothingOutsideTheCompilerReachesLlvm) {
  const Reach reach({"support", "runtime", "kernels", "compiler/language", "compiler/layout", "compiler/target",
                     "examples/out-of-tree-kernel"});
  for (const auto &[file, include] : reach.violations)
    ADD_FAILURE() << file << " includes " << include;
  EXPECT_GT(reach.files.size(), 300u);
  // Of the compiler proper: the C table, and the assembler's libraries, which have no LLVM.
  for (const auto &[file, from] : reach.files) {
    const std::string name = fs::relative(file, root).string();
    if (!name.starts_with("compiler/") || name.starts_with("compiler/language/") ||
        name.starts_with("compiler/layout/") || name.starts_with("compiler/target/"))
      continue;
    EXPECT_TRUE(name == "compiler/pipeline/CompilerTable.h" || name.starts_with("compiler/codegen/"))
        << name << " is included by " << from;
  }
}

TEST(Seam, TheReachOfTheCompilerIsSeen) {
  const Reach reach({"compiler/passes", "compiler/pipeline"});
  EXPECT_GT(reach.violations.size(), 20u); // or the test above would prove nothing
  std::set<std::string> found;
  for (const auto &[file, include] : reach.violations)
    found.insert(include.substr(0, include.find('/')));
  EXPECT_EQ(found, (std::set<std::string>{"llvm", "mlir"}));
}

/// The arrows between the folders that go without LLVM.
TEST(Seam, ArrowsRunOneWay) {
  const struct {
    const char *folder;
    std::vector<const char *> mayUse;
  } rows[] = {
      {"support", {"support/"}},
      {"compiler/target", {"support/", "compiler/target/"}},
      {"compiler/layout", {"support/", "compiler/target/", "compiler/layout/"}},
      {"compiler/language", {"support/", "compiler/target/KernelOptions", "compiler/language/"}},
      {"runtime/ptx", {"support/", "runtime/ptx/"}},
      {"runtime/device", {"support/", "compiler/target/", "runtime/"}},
      {"runtime/cache", {"support/", "runtime/"}},
      {"runtime/io", {"support/", "runtime/"}},
      {"runtime/jit",
       {"support/", "compiler/target/", "compiler/language/", "compiler/layout/", "compiler/codegen/",
        "compiler/pipeline/CompilerTable.h", "runtime/"}},
  };
  for (const auto &row : rows)
    for (const auto &[file, from] : Reach({row.folder}).files) {
      const std::string name = fs::relative(file, root).string();
      EXPECT_TRUE(std::any_of(row.mayUse.begin(), row.mayUse.end(), [&](const char *p) { return name.starts_with(p); }))
          << row.folder << " reaches " << name << " through " << from;
    }
}

} // namespace
