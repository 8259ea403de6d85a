//===- Assembler.h - PTX text to cubin, and what it costs -----------------===//
//
// An assembler is nvJitLink (a shared library, in process) or ptxas (a program); `findAssembler` takes the first that
// this machine has, with the others for what that one cannot do well.  The code target (in the PTX) and the assembly
// arch are two things: sm_80 code may be assembled for sm_90. std and dlopen only, no LLVM: the runtime uses it too.
// Assemblers are immutable and thread safe; libraries stay loaded.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_ASSEMBLER_H
#define KILN_CODEGEN_ASSEMBLER_H

#include "support/Status.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// One kernel's cost, as the assembler reports it or the cubin says.  Bytes a thread, but for shared memory (a block).
struct KernelResources {
  std::string name;
  std::uint32_t registers = 0;
  std::uint32_t sharedBytes = 0; ///< static
  std::uint32_t stackBytes = 0;
  std::uint32_t barriers = 0;
  std::optional<std::uint32_t> spillStoreBytes; ///< absent: neither log nor cubin says
  std::optional<std::uint32_t> spillLoadBytes;
};

struct ResourceReport {
  std::vector<KernelResources> kernels; ///< sorted by name
  /// The kernel called `name`, or null.
  const KernelResources *find(std::string_view name) const;
};

struct AssembledModule {
  std::vector<std::byte> cubin;
  ResourceReport resources;
  std::vector<std::string> warnings; ///< the assembler's, as it worded them
  std::string_view assembler;        ///< its name: whose this is
  double milliseconds = 0;
  /// Why this is for looking at, not to be run: it may be wrong (RegisterLimit.h).  Empty: it may be run.
  std::string doubt;
  bool isTrusted() const { return doubt.empty(); }
};

struct AssembleOptions {
  unsigned optimisation = 3; ///< 0..3
  bool lineInfo = false;     ///< keep .loc in the cubin
};

/// Miscompiles that the compiler works around; rows in Assembler.cpp say which versions have them.
enum class AssemblerDefect : unsigned char {
  RegisterSourcedWgmma, ///< wgmma with A in registers; use the form with A in shared memory
};

struct AssemblerVersion {
  unsigned major = 0, minor = 0;
  auto operator<=>(const AssemblerVersion &) const = default;
};

/// Whether the table of known miscompiles lists `defect` for that CUDA version.
bool versionHasDefect(AssemblerVersion version, AssemblerDefect defect);

class Assembler {
public:
  virtual ~Assembler() = default;
  virtual std::string_view name() const = 0; ///< "nvJitLink", "ptxas"
  virtual AssemblerVersion version() const = 0;
  /// For cache keys: name, version, build ("nvJitLink 13.0 build-id 3f2a..").  Equal strings make equal code, unless a
  /// program could not be run once.
  virtual const std::string &identity() const = 0;
  virtual const std::string &path() const = 0; ///< where it was found
  /// On whose contents `identity` depends.
  virtual std::vector<std::string> files() const { return {path()}; }
  /// It takes PTX for a part of a program, to be linked: nvJitLink does, and no option of it says otherwise.
  virtual bool makesParts() const { return false; }
  /// It makes of this PTX what it says.  In a part of a program no warp can give registers to others (setmaxnreg):
  /// such code spills and waits.
  virtual bool serves(std::string_view ptx) const { return true; }
  /// `arch` is "sm_90a"; `fileName` names the PTX in messages, which give its line.
  virtual Result<AssembledModule> assemble(std::string_view ptx, std::string_view arch,
                                           const AssembleOptions &options = {},
                                           std::string_view fileName = "<ptx>") const = 0;

  /// Does what only a process's first `assemble` needs, which takes tens of milliseconds; later calls do nothing.  May
  /// run concurrently with other work, `assemble` included.
  virtual void warmUp(std::string_view arch) const {}

  bool hasDefect(AssemblerDefect defect) const;
};

/// Code to run where the driver takes PTX, too: if the result is not trusted, the driver is to assemble the PTX, and
/// `doubt` says why.  So of PTX that the assembler does not serve, or is too old for; of these there is no code.
Result<AssembledModule> assembleToRun(const Assembler &assembler, std::string_view ptx, std::string_view arch,
                                      const AssembleOptions &options = {}, std::string_view fileName = "<ptx>");

struct AssemblerSearch {
  std::string nvJitLink; ///< path of the library; empty: the usual names; "none": do not use it
  std::string ptxas;     ///< path of the program; empty: PATH, then the usual folders; "none": do not use it
  std::string temporaryDirectory = "/tmp"; ///< for ptxas's files; a private folder is made in it and removed
};

/// nvJitLink, else ptxas, else NotFound with everything that was tried.  Where there are both, ptxas gets what takes so
/// long that starting a program does not show, what nvJitLink does not serve, and what it makes no trusted code of.
Result<std::shared_ptr<const Assembler>> findAssembler(const AssemblerSearch &search = {});

/// Every assembler of this machine, preferred first; `notes` says why others are missing.
std::vector<std::shared_ptr<const Assembler>> listAssemblers(const AssemblerSearch &search,
                                                             std::vector<std::string> &notes);

} // namespace kiln

#endif // KILN_CODEGEN_ASSEMBLER_H
