#include "compiler/pipeline/Dumps.h"

#include "compiler/pipeline/RunnableCommand.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace kiln {

std::error_code replaceFile(llvm::StringRef path, const std::string &text) {
  static std::atomic<unsigned> serial = 0;
  const auto failure = [] { return std::error_code(errno, std::generic_category()); };
  const std::string temporary = llvm::formatv("{0}.{1}-{2}.tmp", path, ::getpid(), ++serial).str();
  (void)::unlink(temporary.c_str()); // of a process that ended while it wrote
  constexpr int fresh = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int fd = ::open(temporary.c_str(), fresh, 0666);
  if (fd < 0)
    return failure();
  llvm::raw_fd_ostream file(fd, /*shouldClose=*/true);
  file << text;
  file.close();
  std::error_code error = file.error();
  file.clear_error();
  if (!error && ::rename(temporary.c_str(), path.str().c_str()) != 0)
    error = failure();
  if (error)
    (void)::unlink(temporary.c_str());
  return error;
}

llvm::StringRef Dumps::suffixOf(Stage done) {
  return done == Stage::Tile      ? stage_files::tile
         : done == Stage::TileGpu ? stage_files::tileGpu
                                  : stage_files::lowering;
}

/// "add.sm_80.1f3a5c70".
void Dumps::begin(llvm::StringRef kernelName) {
  kernel = kernelName.str();
  std::string request = job.program;
  for (const auto &[argument, number] : job.divisible)
    request += "\n" + std::to_string(argument) + "/" + std::to_string(number);
  for (const auto &[argument, number] : job.equals)
    request += "\n" + std::to_string(argument) + "=" + std::to_string(number);
  if (job.noTensorMaps)
    request += "\nno tensor maps";
  const std::string hash = llvm::utohexstr(llvm::xxh3_64bits(request) & 0xffffffff, /*LowerCase=*/true, 8);
  name = (kernel.empty() ? std::string("kernel") : kernel) + "." + job.codeTarget + "." + hash;
}

void Dumps::program() {
  if (!wanted() || job.program.starts_with("ML\xefR")) // bytecode has no comments
    return;
  write("source.mlir", "// " + compileCommand(job, fileName("source.mlir"), std::nullopt) +
                           "\n// The program of kernel '" + kernel + "' for " + job.codeTarget +
                           ", as it was given.\n" + job.program);
}

void Dumps::stage(Stage done, const std::string &text) {
  const llvm::StringRef suffix = suffixOf(done);
  write(suffix, "// " + compileCommand(job, fileName(suffix), done) + "\n// Kernel '" + kernel + "' for " +
                    job.codeTarget + " at stage " + stageName(done).str() + ".\n" + text);
}

void Dumps::llvmIr(const std::string &text) {
  write(stage_files::llvmIr, "; Kernel '" + kernel + "' for " + job.codeTarget +
                                 ": LLVM IR after O3.  The command from the stage before: " +
                                 compileCommand(job, fileName(stage_files::lowering), Stage::Llvm) + "\n" + text);
}

void Dumps::ptx(const std::string &text, unsigned threads, unsigned sharedBytes) {
  write(stage_files::ptx,
        llvm::formatv("// kiln check {0} --decode --target {1}\n// kiln run takes it with --block {2} --shared {3}, "
                      "and the grid and arguments of the call.\n{4}",
                      fileName(stage_files::ptx), job.codeTarget, threads, sharedBytes, text)
            .str());
}

void Dumps::pass(Stage inside, llvm::StringRef passName, const std::string &text, const std::vector<std::string> &rest,
                 bool passFailed) {
  std::string plain;
  for (const char c : passName.take_front(60))
    plain += llvm::isAlnum(c) || c == '-' || c == '_' ? c : '.';
  const std::string suffix = llvm::formatv("{0,0+2}-{1}-{2}{3}.mlir", llvm::utostr(++passNumber), passesName(inside),
                                           plain, passFailed ? ".failed" : "")
                                 .str();
  const std::string where =
      passFailed ? "in pass " + passName.str() + ", which failed" : "after pass " + passName.str();
  write(suffix, "// " + optCommand(job, fileName(suffix), inside, rest) + "\n// Kernel '" + kernel + "' for " +
                    job.codeTarget + " inside stage " + passesName(inside).str() + ", " + where + ".\n" + text);
}

/// One that cannot be written is said once; the rest would fail alike.
void Dumps::write(llvm::StringRef suffix, const std::string &text) {
  if (!wanted() || failed)
    return;
  llvm::SmallString<256> path(job.dumpDirectory);
  llvm::sys::path::append(path, fileName(suffix));
  std::error_code error = llvm::sys::fs::create_directories(job.dumpDirectory);
  if (!error)
    error = replaceFile(path, text);
  failed = static_cast<bool>(error);
  if (error)
    messages.push_back({"warning", path.str().str(), 0, 0, "cannot write a dump: " + error.message(),
                        "set KILN_DUMP_DIR to a folder of your own"});
}

const std::string *Dumps::replacement(llvm::StringRef suffix) {
  for (const auto &[file, text] : job.overrides)
    if (file == fileName(suffix)) {
      messages.push_back(
          {"remark", file, 0, 0, "this file takes the place of what the stage made (KILN_OVERRIDE_DIR)", ""});
      return &text;
    }
  return nullptr;
}

} // namespace kiln
