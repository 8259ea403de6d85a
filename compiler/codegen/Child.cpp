#include "compiler/codegen/Child.h"

#include "compiler/codegen/ProcessStart.h"
#include "support/Text.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kiln {
namespace {

// A frame: magic, 64-bit little-endian size, bytes.  Both ends are one build on one machine.
constexpr std::string_view magic = "kilnchd1";
constexpr std::size_t headerBytes = 16;

std::string frame(std::string_view bytes) {
  std::string out(magic);
  const std::uint64_t size = bytes.size();
  out.append(reinterpret_cast<const char *>(&size), sizeof size);
  out += bytes;
  return out;
}

/// The bytes of a complete frame, or a failure that says what is wrong with it.
Result<std::string_view> unframe(std::string_view bytes) {
  if (bytes.size() < headerBytes || bytes.substr(0, magic.size()) != magic)
    return Status(StatusCode::Internal, bytes.empty() ? "no answer" : "not an answer of a compile helper");
  std::uint64_t size;
  std::memcpy(&size, bytes.data() + magic.size(), sizeof size);
  if (bytes.size() - headerBytes != size)
    return Status(StatusCode::Internal, format("an answer of %llu bytes, of which %zu came",
                                               static_cast<unsigned long long>(size), bytes.size() - headerBytes));
  return bytes.substr(headerBytes);
}

/// The last lines of `text`, at most `lines`, on one line; "" if there is none.
std::string lastLines(std::string_view text, std::size_t lines) {
  std::vector<std::string> kept;
  for (std::string_view line : split(text, '\n'))
    if (!line.empty())
      kept.emplace_back(line);
  if (kept.size() > lines)
    kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(lines));
  return join(kept, " | ");
}

} // namespace

Result<std::string> runInChild(std::string_view request, const ChildOptions &options) {
  const std::string framed = frame(request);
  ProcessSpec spec;
  spec.program = options.program;
  spec.arguments = options.arguments;
  spec.deadlineSeconds = options.deadlineSeconds;
  spec.channel = true;
  spec.request = framed;
  spec.maxResponseBytes = options.maxResponseBytes;
  KILN_ASSIGN(ProcessEnd end, runProcess(spec));

  std::string said = lastLines(end.output, 3);
  if (!said.empty())
    said = "; it said: " + said;
  if (end.timedOut)
    return Status(StatusCode::CompileError,
                  format("the compile took longer than its deadline of %g s and was stopped", options.deadlineSeconds) +
                      said,
                  "give it a longer deadline if the kernel is large");
  if (end.overflow)
    return Status(StatusCode::Internal,
                  format("the compile helper answered with more than %zu bytes", options.maxResponseBytes));
  if (end.signal)
    return Status(StatusCode::Internal, "the compiler crashed: " + signalName(end.signal) + said);
  Result<std::string_view> answer = unframe(end.response);
  if (!answer.ok() || end.exitStatus > 0)
    return Status(StatusCode::Internal, format("the compile helper ended with status %d and ", end.exitStatus) +
                                            (answer.ok() ? std::string("an answer") : answer.status().message()) +
                                            said);
  end.response.erase(0, headerBytes);
  return std::move(end.response);
}

int serveChild(const std::function<std::string(std::string_view)> &handler) {
  // Ends with its parent, even in an endless loop; a parent that is gone already is noticed by the empty request.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string request;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::recv(channelDescriptor, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    request.append(buffer, static_cast<std::size_t>(n));
  }
  Result<std::string_view> bytes = unframe(request);
  if (!bytes.ok()) {
    static constexpr std::string_view text = "this program is started by the compiler, not by hand\n";
    (void)!::write(2, text.data(), text.size());
    return 2;
  }
  return sendToStarter(frame(handler(*bytes))) ? 0 : 1;
}

std::string programBeside(const void *addressWithin, std::string_view name) {
  Dl_info info;
  if (!::dladdr(addressWithin, &info) || !info.dli_fname)
    return {};
  std::error_code error;
  std::filesystem::path where = std::filesystem::canonical(info.dli_fname, error);
  if (error) // The main program is listed by argv[0], which need not be a path.
    where = std::filesystem::canonical("/proc/self/exe", error);
  if (error)
    return {};
  const std::filesystem::path program = where.parent_path() / name;
  return ::access(program.c_str(), X_OK) == 0 ? program.string() : std::string();
}

} // namespace kiln
