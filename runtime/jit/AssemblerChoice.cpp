#include "runtime/jit/AssemblerChoice.h"

#include "support/Text.h"

namespace kiln {

namespace {

/// The memo entry that names the assembler's file has no file of its own to be stamped by.
const FileStamp noStamp{};

} // namespace

std::string AssemblerChoice::memoName() const {
  return "assembler, library '" + search.nvJitLink + "', program '" + search.ptxas + "'";
}

void AssemblerChoice::look(const FileHashes &hashes) {
  looked = true;
  Result<std::shared_ptr<const Assembler>> any = findAssembler(search);
  if (!any) {
    known = "driver " + device.driver;
    return;
  }
  found = *any;
  known = found->identity();
  // One entry that names the files, and one for each file.
  const std::vector<std::string> files = found->files();
  for (const std::string &file : files)
    if (const Result<FileStamp> stamp = FileStamp::of(file))
      hashes.remember(memoName(), file, *stamp, known);
  hashes.remember(memoName(), "path", noStamp, join(files, "\n"));
}

/// What was remembered, if it is the same of all files; else empty.
std::string AssemblerChoice::recall(const FileHashes &hashes) const {
  std::string out;
  const std::string files = hashes.recall(memoName(), "path", noStamp);
  for (const std::string_view file : split(files, '\n')) {
    const Result<FileStamp> stamp = FileStamp::of(std::string(file));
    const std::string one = stamp ? hashes.recall(memoName(), std::string(file), *stamp) : std::string();
    if (one.empty() || (!out.empty() && one != out))
      return {};
    out = one;
  }
  return out;
}

std::string AssemblerChoice::identity(const FileHashes &hashes) {
  if (device.kind == DeviceKind::Emulator)
    return "none";
  const std::lock_guard lock(mutex);
  if (known.empty())
    known = recall(hashes);
  if (known.empty())
    look(hashes);
  return known;
}

std::shared_ptr<const Assembler> AssemblerChoice::assembler(const FileHashes &hashes) {
  if (device.kind == DeviceKind::Emulator)
    return nullptr;
  const std::lock_guard lock(mutex);
  if (!looked)
    look(hashes);
  return found;
}

Result<std::string> chooseCodeTarget(const DeviceInfo &device, const std::string &wanted) {
  if (wanted.empty()) {
    if (device.target)
      return std::string(device.target->name);
    const Target *best = nullptr; // of a GPU that is in no table: the newest that is not newer than it
    for (const Target &t : allTargets())
      if (!t.archSpecific && t.sm <= device.sm)
        best = &t;
    if (best)
      return std::string(best->name);
    return Status(StatusCode::Unsupported,
                  device.name + " has compute capability " + std::to_string(device.sm / 10) + "." +
                      std::to_string(device.sm % 10) + ", older than every target",
                  "targets: " + targetNames());
  }
  KILN_ASSIGN(const Target *target, findTarget(wanted));
  const std::string what = "code for " + wanted + " does not run on " + device.name;
  if (target->sm > device.sm)
    return Status(StatusCode::Unsupported, what + ", which is sm_" + std::to_string(device.sm),
                  "use a target of at most sm_" + std::to_string(device.sm));
  if (target->archSpecific && (target->sm != device.sm || (device.target && !device.target->archSpecific)))
    return Status(StatusCode::Unsupported,
                  what + ": the suffix 'a' binds it to compute capability " + std::to_string(target->sm / 10) + "." +
                      std::to_string(target->sm % 10),
                  "use a target without the suffix");
  return wanted;
}

std::string assemblyArch(const DeviceInfo &device) {
  if (device.kind == DeviceKind::Emulator)
    return "none";
  return device.target ? std::string(device.target->name) : "sm_" + std::to_string(device.sm);
}

} // namespace kiln
