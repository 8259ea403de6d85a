#include "PipelineHarness.h"

#include "compiler/codegen/Process.h"
#include "kernels/reduce_sum/ReduceSum.h"
#include "kernels/support/Family.h"
#include "support/Text.h"
#include "tests/support/TestTier.h"

#include <algorithm>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace kiln::test {
namespace {

KilnText view(std::string_view text) {
  return {text.data(), text.size()};
}
std::string copy(const KilnText &text) {
  return std::string(text.data, text.size);
}

} // namespace

const KilnCompilerTable &compiler() {
  static const KilnCompilerTable *table = [] {
    void *library = ::dlopen(KILN_BINARY_DIR "/bin/libkiln-compiler.so", RTLD_NOW | RTLD_LOCAL);
    void *function = library ? ::dlsym(library, "kilnCompilerTable") : nullptr;
    if (!function) {
      std::fprintf(stderr, "%s\n", ::dlerror());
      std::abort();
    }
    return reinterpret_cast<decltype(&kilnCompilerTable)>(function)();
  }();
  return *table;
}

Compiled compile(std::string_view program, const CompileOptions &o) {
  nlohmann::json knobs{{"emit", o.emit}, {"line_info", o.lineInfo}, {"isolation", o.isolation}};
  if (!o.dumpDirectory.empty())
    knobs["dump_dir"] = o.dumpDirectory;
  if (!o.plugin.empty())
    knobs["plugins"] = {o.plugin};
  if (!o.passes.empty())
    knobs["passes"] = o.passes;
  if (o.deadlineSeconds != 300)
    knobs["deadline"] = o.deadlineSeconds;
  const std::string options = knobs.dump();
  const KilnCompileRequest request{view(program), view(o.fileName), {}, view(o.target), view(o.facts), view(options)};
  KilnCompileResult *result = compiler().compile(&request);
  Compiled out{result->status, copy(result->output), copy(result->metadata), copy(result->diagnostics)};
  compiler().release(result);
  if (!out.metadata.empty()) {
    auto metadata = nlohmann::ordered_json::parse(out.metadata);
    metadata.erase("milliseconds");
    out.metadata = metadata.dump();
  }
  return out;
}

std::vector<LibraryKernel> libraryKernels(bool all) {
  using kernels::Settings;
  const std::vector<std::pair<std::string_view, Settings>> variants = {
      {"add", {{"strided", "true"}}},
      {"copy", {{"strided", "true"}}},
      {"cumsum", {{"rowsPerProgram", "4"}, {"adjacent", "false"}}},
      {"layer_norm", {{"looping", "true"}}},
      {"layer_norm", {{"rowsPerProgram", "4"}, {"adjacent", "false"}, {"affine", "false"}}},
      {"reduce_sum", {{"adjacent", "false"}}},
      {"softmax", {{"looping", "true"}}},
      {"softmax", {{"rowsPerProgram", "4"}, {"adjacent", "false"}}},
      {"softmax", {{"block", "4096"}, {"warps", "8"}}},
      {"transpose", {{"xUnit", "0"}, {"outUnit", "0"}}},
      {"transpose", {{"xUnit", "-1"}, {"outUnit", "-1"}}},
  };
  std::vector<LibraryKernel> out;
  auto record = [&](std::string name, const language::Kernel &kernel) {
    EXPECT_TRUE(kernel.ok()) << name << ": " << kernel.status().toString();
    const std::string &text = kernel.text();
    // Some families share their kernels with others: rwkv7 with dplr.
    if (std::ranges::any_of(out, [&](const LibraryKernel &k) { return k.text == text; }))
      return;
    const std::size_t at = text.find("loc(\"kernels/");
    EXPECT_NE(at, std::string::npos) << name;
    if (at != std::string::npos)
      out.push_back({std::move(name), text, text.substr(at + 5, text.find('"', at + 5) - at - 5)});
  };
  for (const DType e : {DType::F32, DType::F16, DType::BF16}) {
    const std::string type(elementName(e));
    unsigned number = 0;
    for (const kernels::Family &family : kernels::families()) {
      const std::vector<DType> types = family.callable->dtypes();
      if (std::none_of(types.begin(), types.end(), [&](DType t) { return dtypeName(t) == type; }))
        continue;
      // Of those of two types that differ in the names of instructions alone every other one has the one, not both.
      if (!all && types.size() == 2 && (number++ + (e == DType::F16)) % 2)
        continue;
      record(std::string(family.name()) + " " + type, family.callable->record(e, {}));
      for (const auto &[name, settings] : variants) {
        if (!all || name != family.name())
          continue;
        std::string full = std::string(name) + " " + type;
        for (const auto &[key, value] : settings)
          full += " " + key + "=" + value;
        record(std::move(full), family.callable->record(e, settings));
      }
    }
    record("reduce_sum_final " + type, kernels::reduceSumFinal(e));
  }
  return out;
}

std::string kilnOpt(const std::vector<std::string> &arguments, std::string_view input) {
  const TemporaryDirectory folder;
  ProcessSpec spec;
  spec.program = KILN_BINARY_DIR "/bin/kiln-opt";
  spec.arguments = arguments;
  spec.arguments.insert(spec.arguments.end(), {folder.path() + "/in.mlir", "-o", folder.path() + "/out"});
  std::ofstream(folder.path() + "/in.mlir") << input;
  const Result<ProcessEnd> end = runProcess(spec);
  if (!end.ok() || end->exitStatus != 0) {
    ADD_FAILURE() << "kiln-opt " << join(arguments, " ") << ": " << (end.ok() ? end->output : end.status().toString());
    return {};
  }
  std::ostringstream text;
  text << std::ifstream(folder.path() + "/out").rdbuf();
  return text.str();
}

} // namespace kiln::test
