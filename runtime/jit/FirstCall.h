//===- FirstCall.h - One key's way from nothing to a loaded function ------===//
//
// Made and run by the one thread that serves a key.  Times every stage.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_FIRSTCALL_H
#define KILN_RUNTIME_JIT_FIRSTCALL_H

#include "runtime/jit/Service.h"

namespace kiln {

class FirstCall {
public:
  using Clock = std::chrono::steady_clock;

  FirstCall(JitService &service, const JitKernel::Implementation &kernel, const ClassKey &classKey,
            const cache::KeyText &key, const KeyParts &parts, Clock::time_point start);

  /// The loaded kernel, or nothing if the compiler or the assembler turned out to be another one than the key says:
  /// then the key has to be made again.
  Result<std::optional<std::unique_ptr<LoadedKernel>>> run();

private:
  Result<std::unique_ptr<LoadedKernel>> fromDisk(bool first, bool &present);
  /// Null: nobody has it.  What comes from afar is `store`d in the cache.
  std::unique_ptr<LoadedKernel> fromLayers(bool store);
  /// Whether it is there now; if not, why is said.
  bool store(const cache::Entry &entry);
  Result<std::optional<cache::Entry>> compile();
  Result<std::unique_ptr<LoadedKernel>> load(const cache::Entry &entry, FirstCallReport::Source source);
  void explainMiss(cache::MissReason why);
  void notStored(const Status &why) const;
  void stage(std::string name, Clock::time_point since);
  void say(LogTopic topic, LogLevel level, const std::string &text) const;

  JitService &service;
  const JitKernel::Implementation &kernel;
  const cache::KeyText &key;
  const KeyParts &parts;
  const Clock::time_point start;
  const std::string variant;
  FirstCallReport report;
};

} // namespace kiln

#endif // KILN_RUNTIME_JIT_FIRSTCALL_H
