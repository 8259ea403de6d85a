#include "compiler/pipeline/Reproducer.h"

#include "compiler/pipeline/RunnableCommand.h"
#include "support/Text.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

namespace kiln {

Result<Reproducer> writeReproducer(const CompileJob &job, const std::string &reason) {
  llvm::SmallString<256> model;
  if (!job.dumpDirectory.empty()) {
    model = job.dumpDirectory;
    (void)llvm::sys::fs::create_directories(model);
  } else {
    llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, model);
  }
  llvm::sys::path::append(model, "kiln-crash-%%%%%%%%.mlir");
  int fd = -1;
  llvm::SmallString<256> path;
  // It holds a kernel's source, and the folder may be everybody's.
  const unsigned ownersAlone = llvm::sys::fs::owner_read | llvm::sys::fs::owner_write;
  if (std::error_code error = llvm::sys::fs::createUniqueFile(model, fd, path, llvm::sys::fs::OF_None, ownersAlone))
    return Status(StatusCode::IoError, "cannot write " + model.str().str() + ": " + error.message());
  llvm::raw_fd_ostream os(fd, /*shouldClose=*/true);
  const std::string fileName = llvm::sys::path::filename(path).str();
  os << "// " << compileCommand(job, fileName, std::nullopt) << "\n// The compiler failed on this program";
  for (std::string_view rest = reason; !rest.empty();) {
    const size_t end = rest.find('\n');
    os << "\n//   " << llvm::StringRef(rest.substr(0, end));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  os << "\n" << job.program << "\n";
  os.close();
  if (os.has_error())
    return Status(StatusCode::IoError, "cannot write " + path.str().str() + ": " + os.error().message());
  return Reproducer{path.str().str(), compileCommand(job, path.str().str(), std::nullopt)};
}

std::string forHelper(const KilnText &options) {
  llvm::json::Object knobs;
  if (options.size) {
    llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(llvm::StringRef(options.data, options.size));
    if (!parsed)
      llvm::consumeError(parsed.takeError());
    else if (llvm::json::Object *object = parsed->getAsObject())
      knobs = std::move(*object);
  }
  knobs["isolation"] = "thread";
  knobs["in_helper"] = true;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::json::Value(std::move(knobs));
  return text;
}

} // namespace kiln
