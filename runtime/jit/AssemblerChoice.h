//===- AssemblerChoice.h - Who turns PTX into code, and for which arch ----===//
//
// An emulator takes PTX as it is.  A GPU takes a cubin from nvJitLink or ptxas, else its driver compiles the PTX.  The
// assembler's identity is part of every key; asking for it must not load a library or start a program on a cache hit,
// so it is remembered under the file's stamp (FileHash.h) and checked again whenever the assembler is really used.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_ASSEMBLERCHOICE_H
#define KILN_RUNTIME_JIT_ASSEMBLERCHOICE_H

#include "compiler/codegen/Assembler.h"
#include "kiln/Device.h"
#include "runtime/jit/FileHash.h"

#include <memory>
#include <mutex>
#include <string>

namespace kiln {

class AssemblerChoice {
public:
  AssemblerChoice(const DeviceInfo &device, AssemblerSearch search) : device(device), search(std::move(search)) {}

  /// For keys.
  std::string identity(const FileHashes &hashes);

  /// nullptr: the device takes PTX.
  std::shared_ptr<const Assembler> assembler(const FileHashes &hashes);

private:
  void look(const FileHashes &hashes);
  std::string memoName() const;
  std::string recall(const FileHashes &hashes) const;
  const DeviceInfo &device;
  AssemblerSearch search;
  std::mutex mutex;
  bool looked = false;
  std::shared_ptr<const Assembler> found;
  std::string known; ///< identity; empty: not asked for yet
};

/// The code target: `wanted`, or if empty what suits the device.  A failure says why the device cannot run it.
Result<std::string> chooseCodeTarget(const DeviceInfo &device, const std::string &wanted);

/// What the assembler is told: the device's own arch.  "none" for emulators.
std::string assemblyArch(const DeviceInfo &device);

} // namespace kiln

#endif // KILN_RUNTIME_JIT_ASSEMBLERCHOICE_H
