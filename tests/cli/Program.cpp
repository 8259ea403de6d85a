#include "tests/cli/Program.h"

#include "runtime/io/Npy.h"
#include "support/Text.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

namespace kiln::test {

const char *const addPtx = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n) {
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<3>; .reg .b64 %d<6>;
  ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1; @%p1 bra DONE;
  mul.wide.u32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
  ld.global.f32 %f1, [%d4]; add.rn.f32 %f2, %f1, %f1; st.global.f32 [%d5], %f2;
DONE:
  ret;
}
)";

/// Starts `kiln`; -1 if that fails.
static pid_t start(const std::vector<std::string> &arguments, const std::string &libraries,
                   const posix_spawn_file_actions_t &actions) {
  std::vector<std::string> words = {KILN_BINARY_DIR "/bin/kiln"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char *> argv;
  for (std::string &w : words)
    argv.push_back(w.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables;
  for (char **e = environ; *e; ++e)
    if (std::strncmp(*e, "LD_LIBRARY_PATH=", 16) != 0)
      variables.emplace_back(*e);
  if (!libraries.empty())
    variables.push_back("LD_LIBRARY_PATH=" + libraries);
  std::vector<char *> environment;
  for (std::string &v : variables)
    environment.push_back(v.data());
  environment.push_back(nullptr);
  pid_t child = -1;
  const int error = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environment.data());
  EXPECT_EQ(error, 0) << argv[0] << ": " << std::strerror(error);
  return error ? -1 : child;
}

/// `output` makes descriptor 1.
template <typename Output>
static Outcome run(const std::vector<std::string> &arguments, const std::string &libraries, Output output) {
  TemporaryDirectory folder;
  const std::string out = folder.path() + "/out", err = folder.path() + "/err";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  output(actions, out);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_CREAT | O_WRONLY, 0600);
  const pid_t child = start(arguments, libraries, actions);
  posix_spawn_file_actions_destroy(&actions);
  Outcome outcome;
  if (child < 0)
    return outcome;
  int state = 0;
  waitpid(child, &state, 0);
  outcome.status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  outcome.out = readTextFile(out).ok() ? *readTextFile(out) : "";
  outcome.err = *readTextFile(err);
  return outcome;
}

Outcome kiln(const std::vector<std::string> &arguments, const std::string &libraries) {
  return run(arguments, libraries, [](posix_spawn_file_actions_t &actions, const std::string &out) {
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_CREAT | O_WRONLY, 0600);
  });
}

Outcome kilnInto(const std::string &standardOutput, const std::vector<std::string> &arguments) {
  return run(arguments, {}, [&](posix_spawn_file_actions_t &actions, const std::string &) {
    if (standardOutput.empty())
      posix_spawn_file_actions_addclose(&actions, 1);
    else
      posix_spawn_file_actions_addopen(&actions, 1, standardOutput.c_str(), O_WRONLY, 0);
  });
}

int startKiln(const std::vector<std::string> &arguments) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  const pid_t child = start(arguments, {}, actions);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

std::vector<std::string> kilnCommands() {
  const std::string err = kiln({"no such command"}).err, before = "the commands are ";
  const std::size_t begin = err.find(before);
  EXPECT_NE(begin, std::string::npos) << err;
  std::vector<std::string> out;
  if (begin == std::string::npos)
    return out;
  std::string list = err.substr(begin + before.size());
  list = list.substr(0, list.find('\n'));
  for (std::string_view name : split(list, ','))
    out.emplace_back(name.substr(name.find_first_not_of(' ')));
  return out;
}

unsigned CliTest::makeSumsWrong(const std::string &from, const std::string &to) const {
  std::filesystem::create_directory(file(to));
  std::filesystem::permissions(file(to), std::filesystem::perms::owner_all);
  unsigned edited = 0;
  for (const auto &dump : std::filesystem::directory_iterator(file(from))) {
    const std::string name = dump.path().filename().string(), zeros = "dense<0.000000e+00> : tensor<64x64xf32";
    std::ifstream in(dump.path(), std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(in), {});
    const std::size_t at = text.find(zeros);
    if (!name.ends_with(".tile_gpu.mlir") || at == std::string::npos)
      continue;
    text[at + 6] = '1';
    write(to + "/" + name, text);
    ++edited;
  }
  return edited;
}

std::string CliTest::write(const std::string &name, const std::string &text) const {
  std::ofstream(file(name), std::ios::binary) << text;
  return file(name);
}

std::string CliTest::floats(const std::string &name, unsigned count) const {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  const auto bytes = std::as_bytes(std::span(values));
  EXPECT_TRUE(writeNpy(file(name), Array{DType::F32, {count}, {bytes.begin(), bytes.end()}}).ok());
  return file(name);
}

std::vector<std::string> CliTest::files() const {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder.path()))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::string CliTest::fakeDriver() const {
  const std::string libraries = file("driver");
  std::filesystem::create_directory(libraries);
  std::filesystem::create_symlink(KILN_BINARY_DIR "/tests/libkiln-fake-cuda.so", libraries + "/libcuda.so.1");
  return libraries;
}

void CliTest::expectRefused(const std::vector<std::string> &arguments, const std::string &part) const {
  std::vector<std::string> before = files();
  const Outcome o = kiln(arguments);
  EXPECT_EQ(o.status, 2) << part << "\n" << o.err << o.out;
  EXPECT_NE(o.err.find(part), std::string::npos) << "expected: " << part << "\nin: " << o.err;
  EXPECT_EQ(o.out, "");
  std::vector<std::string> after = files();
  std::erase(before, "cache"), std::erase(after, "cache");
  EXPECT_EQ(after, before) << part;
}

} // namespace kiln::test
