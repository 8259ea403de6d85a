// The C entry of libkiln-compiler: requests, containment, results.
#include "compiler/pipeline/CompilerTable.h"

#include "compiler/codegen/Child.h"
#include "compiler/codegen/CompileMessage.h"
#include "compiler/pipeline/Compile.h"
#include "compiler/pipeline/Dialects.h"
#include "compiler/pipeline/Reproducer.h"

#include "llvm/Config/llvm-config.h"

#include <cstring>
#include <dlfcn.h>
#include <memory>

namespace kiln {
namespace {

/// A result and the strings that it points to.
struct OwnedResult {
  KilnCompileResult result{};
  std::string output, metadata, diagnostics;
};

KilnText view(const std::string &s) {
  return {s.data(), s.size()};
}

KilnCompileResult *hand(std::unique_ptr<OwnedResult> owned) {
  KilnCompileResult &r = owned->result;
  r.output = view(owned->output);
  r.metadata = view(owned->metadata);
  r.diagnostics = view(owned->diagnostics);
  r.owner = owned.get();
  return &owned.release()->result;
}

KilnCompileResult *failed(int status, std::vector<Message> messages) {
  auto owned = std::make_unique<OwnedResult>();
  owned->result.status = status;
  owned->diagnostics = toJson(messages);
  return hand(std::move(owned));
}

/// A compile that could not begin, for want of memory or tasks: no defect, and nothing to reproduce.
KilnCompileResult *notStarted(const CompileJob &job, const Status &why) {
  return failed(KILN_COMPILE_NOT_STARTED,
                {{"error", job.fileName, 0, 0, "the compiler could not start: " + why.message(), why.remedy()}});
}

/// `where`: the pass in which it failed, if that is known.
KilnCompileResult *crashed(const CompileJob &job, const Status &why, const std::string &where = {}) {
  const std::string what = (where.empty() ? "" : "in " + where + ": ") + why.message();
  Message m{"error",     job.fileName, 0, 0, "the compiler failed" + std::string(where.empty() ? ": " : " ") + what,
            why.remedy()};
  const Result<Reproducer> made = writeReproducer(job, what);
  m.remedy += (m.remedy.empty() ? "" : "; ") +
              (made ? "please report it with " + made->path + ", which " + made->command + " runs again"
                    : "no reproducer was written: " + made.status().message());
  return failed(KILN_COMPILE_CRASHED, {m});
}

KilnCompileResult *finish(JobOutput out) {
  auto owned = std::make_unique<OwnedResult>();
  owned->result.status = out.status;
  owned->output = std::move(out.text);
  owned->metadata = std::move(out.metadata);
  owned->diagnostics = toJson(out.messages);
  return hand(std::move(owned));
}

/// The path of this shared object.
std::string ownPath() {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void *>(&kilnCompilerTable), &info) && info.dli_fname ? info.dli_fname : "";
}

KilnCompileResult *compileInChild(const KilnCompileRequest &request, const CompileJob &job) {
  ChildOptions options;
  options.program = programBeside(reinterpret_cast<const void *>(&kilnCompilerTable), "kiln-compile-helper");
  options.arguments = {ownPath()};
  options.deadlineSeconds = job.deadlineSeconds;
  if (options.program.empty())
    return crashed(job, Status(StatusCode::NotFound, "kiln-compile-helper is not next to " + ownPath(),
                               "install it there, or use isolation = thread in a new process"));
  // The helper compiles the same request in its own thread.
  const std::string knobs = forHelper(request.options);
  KilnCompileRequest inner = request;
  inner.options = view(knobs);
  Result<std::string> answer = runInChild(encodeRequest(inner), options);
  if (!answer)
    return answer.status().code() == StatusCode::OutOfMemory ? notStarted(job, answer.status())
                                                             : crashed(job, answer.status());
  Result<KilnCompileResult> decoded = decodeResult(*answer);
  if (!decoded)
    return crashed(job, decoded.status());
  auto owned = std::make_unique<OwnedResult>();
  owned->result.status = decoded->status;
  owned->output.assign(decoded->output.data, decoded->output.size);
  owned->metadata.assign(decoded->metadata.data, decoded->metadata.size);
  owned->diagnostics.assign(decoded->diagnostics.data, decoded->diagnostics.size);
  return hand(std::move(owned));
}

KilnCompileResult *compile(const KilnCompileRequest *request) {
  Result<CompileJob> job = readRequest(*request);
  if (!job)
    return failed(KILN_COMPILE_INPUT, {{"error", "", 0, 0, job.status().message(), job.status().remedy()}});
  Isolation isolation = effectiveIsolation(job->isolation);
  // Plugins cannot be unloaded, and what a file holds may change: a process of its own loads what it holds now.
  // The back end's timers are the process's.
  if (isolation == Isolation::Thread && (!job->plugins.empty() || job->timePasses) && !job->inHelper)
    isolation = Isolation::Child;
  switch (isolation) {
  case Isolation::None: {
    CompileProgress progress;
    return finish(compileJob(*job, progress));
  }
  case Isolation::Child:
    return compileInChild(*request, *job);
  case Isolation::Thread:
    break;
  }
  // Lives on the heap: a crash leaves the thread without unwinding, and what it half wrote is leaked, not read.
  auto *out = new JobOutput;
  CompileProgress progress;
  const Status status = runContained([&] { *out = compileJob(*job, progress); });
  if (status.code() == StatusCode::OutOfMemory) {
    // No thread.  A process of its own has an address space of its own; one that was made for this compile needs none:
    // it ends with it.
    delete out;
    return job->inHelper ? finish(compileJob(*job, progress)) : compileInChild(*request, *job);
  }
  if (!status.ok())
    return crashed(*job, status, progress.where());
  std::unique_ptr<JobOutput> owned(out);
  return finish(std::move(*owned));
}

void release(KilnCompileResult *result) {
  if (result)
    delete static_cast<OwnedResult *>(result->owner);
}

int opt(int argc, char **argv) {
  return optMain(argc, argv);
}

constexpr KilnCompilerTable table = {KILN_COMPILER_ABI, "kiln " KILN_VERSION ", LLVM " LLVM_VERSION_STRING, &compile,
                                     &release, &opt};

} // namespace
} // namespace kiln

extern "C" __attribute__((visibility("default"))) const KilnCompilerTable *kilnCompilerTable(void) {
  return &kiln::table;
}
