//===- Dumps.h - A compile's stages and passes as files -----------------------===//
//
// KILN_DUMP_DIR gets the text of every stage as KERNEL.TARGET.HASH.STAGE, and with KILN_DUMP_PASSES the text after
// every pass as KERNEL.TARGET.HASH.NN-STAGE-PASS.mlir.  The hash is that of the program and the facts: variants do not
// overwrite each other.  The first line of each is the command that does the rest from that file.
//
// KILN_OVERRIDE_DIR has files of the same names, whose text takes the place of a stage's output.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_DUMPS_H
#define KILN_PIPELINE_DUMPS_H

#include "compiler/pipeline/Compile.h"
#include "compiler/pipeline/GivenStage.h"
#include "compiler/target/StageFiles.h"

#include "mlir/Pass/PassManager.h"

namespace kiln {

/// `text` under this path: a new file takes the name, so that a link that lay there is not written through.
std::error_code replaceFile(llvm::StringRef path, const std::string &text);

class Dumps {
public:
  Dumps(const CompileJob &job, std::vector<Message> &messages) : job(job), messages(messages) {}

  /// Names the files: once the kernel is known, before anything else.
  void begin(llvm::StringRef kernel);

  bool wanted() const { return !job.dumpDirectory.empty(); }
  bool passesWanted() const { return wanted() && job.dumpPasses; }

  void program();
  void stage(Stage done, const std::string &text);
  void llvmIr(const std::string &text);
  void ptx(const std::string &text, unsigned threads, unsigned sharedBytes);
  /// After a pass of a stage, of which the passes `rest` are still to run; or one in which the pass failed.
  void pass(Stage inside, llvm::StringRef name, const std::string &text, const std::vector<std::string> &rest,
            bool failed);

  /// What takes the place of the file "KERNEL.TARGET.HASH.<suffix>"; null: nothing does.  Says so.
  const std::string *replacement(llvm::StringRef suffix);
  std::string fileName(llvm::StringRef suffix) const { return name + "." + suffix.str(); }

  /// "tile.mlir", "tile_gpu.mlir", "lowering.mlir".
  static llvm::StringRef suffixOf(Stage done);

private:
  void write(llvm::StringRef suffix, const std::string &text);

  const CompileJob &job;
  std::vector<Message> &messages;
  std::string name, kernel;
  unsigned passNumber = 0;
  bool failed = false;
};

} // namespace kiln

#endif // KILN_PIPELINE_DUMPS_H
