// Functions that CUDA's device runtime provides: vprintf, __assertfail, malloc, free.
#include "runtime/device/emulator/execute/Executor.h"
#include "runtime/device/emulator/memory/DefinedBits.h"
#include "runtime/device/emulator/observe/DevicePrints.h"
#include "support/Text.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

namespace kiln::emulator {

namespace {

/// Reads through a generic address of one lane.  Reading past the memory stops, it reports nothing.
class LaneReader {
public:
  LaneReader(const WarpState &w, unsigned lane) : w(w), lane(lane) {}

  const std::byte *at(std::uint64_t address, std::uint64_t bytes) const {
    const BlockState &b = *w.block;
    const std::uint64_t number = address >> windowShift, offset = address & windowOffsetMask;
    if (number == SharedWindow) {
      const std::uint64_t own = offset - b.sharedAddress;
      return own >= b.sharedBegin && own + bytes <= b.sharedEnd ? b.shared + own : nullptr;
    }
    if (number == LocalWindow)
      return offset + bytes <= w.stack()[lane] ? w.local + lane * b.localStride + offset : nullptr;
    const auto &parameters = b.worker.launch.parameters;
    if (number == ParamWindow)
      return offset + bytes <= parameters.size() ? parameters.data() + offset : nullptr;
    return b.worker.launch.memory->holding(address, bytes) ? reinterpret_cast<const std::byte *>(address) : nullptr;
  }
  template <typename T> bool read(std::uint64_t address, T &value) const {
    const std::byte *p = at(address, sizeof value);
    if (p)
      std::memcpy(&value, p, sizeof value);
    return p;
  }
  std::string text(std::uint64_t address) const {
    std::string out;
    for (std::uint64_t i = 0; i < 65536; ++i) {
      char c = 0;
      if (!read(address + i, c) || c == 0)
        break;
      out += c;
    }
    return out;
  }

private:
  const WarpState &w;
  unsigned lane;
};

/// printf with the arguments packed at `arguments` as the compiler packs them: each at its natural alignment, 4 bytes
/// for int and 8 for long, double, pointers.
std::string formatDevice(const LaneReader &reader, const std::string &format, std::uint64_t arguments) {
  std::string out;
  std::uint64_t offset = 0;
  auto next = [&](unsigned bytes) {
    offset = (offset + bytes - 1) / bytes * bytes;
    std::uint64_t v = 0;
    if (bytes == 8)
      reader.read(arguments + offset, v);
    else if (std::uint32_t narrow = 0; reader.read(arguments + offset, narrow))
      v = narrow;
    offset += bytes;
    return v;
  };
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    std::string spec = "%";
    std::size_t j = i + 1;
    bool isLong = false;
    for (; j < format.size() && std::strchr("-+ #0123456789.*hlLqjzt", format[j]); ++j) {
      if (format[j] == '*')
        spec += std::to_string(static_cast<std::int32_t>(next(4)));
      else if (std::strchr("lLqjzt", format[j]))
        isLong = true;
      else if (format[j] != 'h')
        spec += format[j];
    }
    if (j >= format.size()) {
      out += format.substr(i);
      break;
    }
    // Widths beyond reason are cut: the text is a program's.
    if (spec.size() > 8)
      spec.resize(8);
    const char c = format[j];
    char buffer[512];
    switch (c) {
    case 'd':
    case 'i':
      std::snprintf(buffer, sizeof buffer, (spec + "lld").c_str(),
                    isLong ? static_cast<long long>(next(8))
                           : static_cast<long long>(static_cast<std::int32_t>(next(4))));
      out += buffer;
      break;
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      std::snprintf(buffer, sizeof buffer, (spec + "ll" + c).c_str(),
                    static_cast<unsigned long long>(next(isLong ? 8 : 4)));
      out += buffer;
      break;
    case 'c':
      out += static_cast<char>(next(4));
      break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      std::snprintf(buffer, sizeof buffer, (spec + c).c_str(), std::bit_cast<double>(next(8)));
      out += buffer;
      break;
    case 'p':
      std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(next(8)));
      out += buffer;
      break;
    case 's':
      out += reader.text(next(8));
      break;
    case '%':
      out += '%';
      break;
    default:
      out += format.substr(i, j - i + 1);
    }
    i = j;
  }
  return out;
}

/// The value of argument k of one lane.
std::uint64_t argumentOf(const WarpState &w, const CallSite &site, std::size_t k, unsigned lane) {
  const CallValue &v = site.arguments[k];
  std::uint64_t value = 0;
  if (v.isRegister) {
    if (v.bytes > 4)
      std::memcpy(&value, w.registers + v.where + 8 * lane, 8);
    else
      std::memcpy(&value, w.registers + v.where + 4 * lane, 4);
  } else {
    std::memcpy(&value, w.local + lane * w.block->localStride + w.frame()[lane] + v.where, std::min(v.bytes, 8u));
  }
  return value;
}

void giveResult(WarpState &w, const CallSite &site, unsigned lane, std::uint64_t value) {
  if (site.returns.empty())
    return;
  const CallValue &v = site.returns[0];
  if (v.isRegister) {
    if (v.bytes > 4)
      std::memcpy(w.registers + v.where + 8 * lane, &value, 8);
    else
      std::memcpy(w.registers + v.where + 4 * lane, &value, 4);
    return;
  }
  BlockState &b = *w.block;
  const std::uint64_t at =
      static_cast<std::uint64_t>(w.local - b.localBase) + lane * b.localStride + w.frame()[lane] + v.where;
  std::memcpy(b.localBase + at, &value, std::min(v.bytes, 8u));
  if (b.localBits)
    markDefined(b.localBits, at, std::min(v.bytes, 8u));
}

} // namespace

Next callBuiltin(WarpState &w, const Op &op) {
  const CallSite &site = w.program->calls[op.aux];
  GlobalMemory &memory = *w.block->worker.launch.memory;
  ++w.block->worker.progress;
  for (std::uint32_t m = w.exec; m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(__builtin_ctz(m));
    const LaneReader reader(w, l);
    const std::uint64_t first = argumentOf(w, site, 0, l);
    switch (site.builtin) {
    case Builtin::Vprintf: {
      const std::string pattern = reader.text(first);
      std::string text = formatDevice(reader, pattern, argumentOf(w, site, 1, l));
      giveResult(w, site, l, text.size());
      if (DevicePrints::isPrint(pattern)) {
        std::shared_ptr<DevicePrints> &prints = w.block->prints;
        if (!prints)
          prints = std::make_shared<DevicePrints>(w.block->worker);
        const SourceLine &line = w.program->lines[op.line];
        prints->add(pattern, line.file, line.line, std::move(text));
      } else {
        std::fwrite(text.data(), 1, text.size(), stdout);
      }
      break;
    }
    case Builtin::AssertFail: {
      const std::string message =
          reader.text(argumentOf(w, site, 1, l)) + ":" + std::to_string(argumentOf(w, site, 2, l) & 0xFFFFFFFFu) +
          ": " + reader.text(argumentOf(w, site, 3, l)) + ": assertion '" + reader.text(first) + "' failed";
      reportFinding(w, op, "assert", w.exec, message + " (lane " + std::to_string(l) + ")", true);
      return Next::Fault;
    }
    case Builtin::Malloc: {
      auto address = first ? memory.allocate(first, "device malloc") : Result<std::uint64_t>(std::uint64_t(0));
      giveResult(w, site, l, address.ok() ? *address : 0);
      break;
    }
    case Builtin::Free: {
      const Allocation *a = first ? memory.holding(first, 1) : nullptr;
      if (first && (!a || a->begin != first || a->label != "device malloc")) {
        reportFinding(w, op, "use_after_free", 1u << l,
                      format("free(0x%llx): the address was not allocated by malloc, or is free already",
                             static_cast<unsigned long long>(first)),
                      true);
        return Next::Fault;
      }
      memory.release(first);
      // Ops may remember the allocation.
      for (AccessCache &c : w.block->worker.caches)
        c = {};
      break;
    }
    case Builtin::None:
      break;
    }
  }
  return Next::Advance;
}

} // namespace kiln::emulator
