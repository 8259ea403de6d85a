#include "tests/jit/FakeCompiler.h"

#include "compiler/pipeline/CompilerTable.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using json = nlohmann::ordered_json;

namespace {

struct Answer {
  KilnCompileResult result{};
  std::string output, metadata, diagnostics;
};

std::string copy(KilnText t) {
  return t.data ? std::string(t.data, t.size) : std::string();
}

void note(const std::string &line) {
  const char *path = std::getenv("KILN_TEST_COMPILE_LOG");
  if (!path)
    return;
  const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  const std::string text = line + "\n";
  if (file < 0 || ::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    std::abort();
  ::close(file);
}

unsigned bytesOf(const std::string &type) {
  if (type.starts_with("ptr") || type.ends_with("64"))
    return 8;
  return type == "i1" || type == "i8" ? 1 : type.ends_with("16") ? 2 : 4;
}

KilnCompileResult *compile(const KilnCompileRequest *request) {
  note(copy(request->options));
  auto *answer = new Answer;
  const std::string program = copy(request->program);
  json metadata{{"kernel", copy(request->kernel)},
                {"entry", copy(request->kernel)},
                {"target", copy(request->codeTarget)},
                {"ptx_isa", "7.0"},
                {"num_warps", 4},
                {"shared_bytes", 0},
                {"reproducible", true},
                {"arguments", json::array()},
                {"milliseconds", {{"parse", 0.25}, {"llvm", 0.5}}}};
  const std::string facts = copy(request->specialization);
  metadata["guards"] = json::array();
  bool withMaps = true;
  for (const json &fact : facts.empty() ? json::array() : json::parse(facts))
    if (fact.contains("tensor_maps"))
      withMaps = fact["tensor_maps"].get<bool>();
    else
      metadata["guards"].push_back(fact);
  std::istringstream lines(program);
  std::string line, replaced;
  int status = 0;
  unsigned offset = 0, number = 0;
  bool once = false;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string key, name, type;
    words >> key;
    if (key == "ptx") {
      answer->output.assign(std::istreambuf_iterator<char>(lines), {});
    } else if (key == "argument") {
      words >> name >> type;
      const unsigned bytes = bytesOf(type);
      offset = (offset + bytes - 1) / bytes * bytes;
      metadata["arguments"].push_back({{"name", name}, {"type", type}, {"offset", offset}, {"bytes", bytes}});
      offset += bytes;
    } else if (key == "warps") {
      words >> number;
      metadata["num_warps"] = number;
    } else if (key == "bytes") {
      words >> number;
      metadata["shared_bytes"] = number;
    } else if (key == "entry") {
      words >> name;
      metadata["entry"] = name;
    } else if (key == "guard") {
      metadata["guards"].push_back(json::parse(line.substr(6)));
    } else if (key == "field") {
      words >> name;
      metadata[name] = json::parse(line.substr(line.find('=') + 1));
    } else if (key == "mapped") {
      words >> name;
      if (withMaps) {
        metadata[name] = json::parse(line.substr(line.find('=') + 1));
        metadata["maps_by_passes"] = true;
      }
    } else if (key == "metadata") {
      replaced = line.substr(9);
    } else if (key == "sleep") {
      words >> number;
      std::this_thread::sleep_for(std::chrono::milliseconds(number));
    } else if (key == "once") {
      words >> name;
      const int file = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
      once = file < 0;
      if (file >= 0)
        ::close(file);
    } else if (key == "fail" && !once) {
      words >> status;
      json all = json::array();
      all.push_back({{"severity", "error"},
                     {"file", "k.cpp"},
                     {"line", 7},
                     {"column", 3},
                     {"message", line.substr(line.find(' ', 5) + 1)},
                     {"remedy", "do it otherwise"}});
      answer->diagnostics = all.dump();
    }
  }
  if (status == 0)
    answer->metadata = replaced.empty() ? metadata.dump() : replaced;
  answer->result.status = status;
  answer->result.output = {answer->output.data(), answer->output.size()};
  answer->result.metadata = {answer->metadata.data(), answer->metadata.size()};
  answer->result.diagnostics = {answer->diagnostics.data(), answer->diagnostics.size()};
  answer->result.owner = answer;
  return &answer->result;
}

void release(KilnCompileResult *result) {
  delete static_cast<Answer *>(result->owner);
}
int optMain(int, char **) {
  return 2;
}

/// KILN_TEST_TOUCH_WHEN_LOADED names a file that changes while this library is loaded: this one.
[[gnu::constructor]] void touchWhenLoaded() {
  if (const char *path = std::getenv("KILN_TEST_TOUCH_WHEN_LOADED"))
    if (::utimensat(AT_FDCWD, path, nullptr, 0) != 0)
      std::abort();
}

} // namespace

#ifndef KILN_FAKE_ABI
#define KILN_FAKE_ABI KILN_COMPILER_ABI
#endif

extern "C" const KilnCompilerTable *kilnCompilerTable() {
  static const KilnCompilerTable table{KILN_FAKE_ABI, "fake 1, no LLVM", compile, release, optMain};
  return &table;
}
