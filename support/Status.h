//===- Status.h - Success, or what went wrong and what to do about it -----===//
//
// Every fallible function of Kiln returns a Status or a Result<T>.  No function of the public interface throws, and no
// input of a user reaches an assertion.  A failed Status always has a message that names the thing, the value and the
// limit; `remedy` says what to change, in one sentence, where there is something to change.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_SUPPORT_STATUS_H
#define KILN_SUPPORT_STATUS_H

#include <optional>
#include <string>
#include <utility>

namespace kiln {

/// What kind of thing went wrong.  `exitCode` maps it to the documented exit statuses of the commands.
enum class StatusCode : unsigned char {
  Ok,
  Findings,        ///< the kernel ran, and the checker found something
  InvalidArgument, ///< an argument, a file's contents or a value is wrong
  NotFound,        ///< no such file, entry, target, device
  IoError,         ///< a file could not be read or written
  CompileError,    ///< a program (PTX, later MLIR) was refused
  Unsupported,     ///< understood, but not available on this target or in this version
  DeviceError,     ///< a device refused or aborted the work
  OutOfMemory,
  NotReady,        ///< cannot be done now, can be later: a first call inside a graph capture
  Internal,        ///< a defect of Kiln
};

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message, std::string remedy = {})
      : codeValue(code), text(std::move(message)), remedyText(std::move(remedy)) {}

  static Status invalid(std::string message, std::string remedy = {}) {
    return {StatusCode::InvalidArgument, std::move(message), std::move(remedy)};
  }

  bool ok() const { return codeValue == StatusCode::Ok; }
  StatusCode code() const { return codeValue; }
  const std::string &message() const { return text; }
  const std::string &remedy() const { return remedyText; }

  /// "message (remedy)", for a terminal.
  std::string toString() const { return remedyText.empty() ? text : text + " (" + remedyText + ")"; }

  /// Puts "context: " before the message: where the failure was met.
  Status &&withContext(const std::string &context) && {
    text = context + ": " + text;
    return std::move(*this);
  }

  /// 0 good, 1 findings, 2 input, 3 compile, 4 device.
  int exitCode() const {
    switch (codeValue) {
    case StatusCode::Ok:
      return 0;
    case StatusCode::Findings:
      return 1;
    case StatusCode::InvalidArgument:
    case StatusCode::NotFound:
    case StatusCode::IoError:
      return 2;
    case StatusCode::CompileError:
    case StatusCode::Unsupported:
      return 3;
    case StatusCode::DeviceError:
    case StatusCode::OutOfMemory:
    case StatusCode::NotReady:
    case StatusCode::Internal:
      return 4;
    }
    return 4;
  }

private:
  StatusCode codeValue = StatusCode::Ok;
  std::string text, remedyText;
};

/// A value or a failed Status.  Reading the value of a failed Result is a defect of the caller.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : val(std::move(value)) {}
  Result(Status failure) : failed(std::move(failure)) {}

  bool ok() const { return val.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status &status() const { return failed; }
  Status takeStatus() { return std::move(failed); }

  T &operator*() { return *val; }
  const T &operator*() const { return *val; }
  T *operator->() { return &*val; }
  const T *operator->() const { return &*val; }

private:
  std::optional<T> val;
  Status failed;
};

} // namespace kiln

/// Returns the Status of `expr` from the enclosing function unless it is Ok.
#define KILN_TRY(expr)                                                                                                 \
  do {                                                                                                                 \
    if (::kiln::Status kilnTryStatus = (expr); !kilnTryStatus.ok())                                                    \
      return kilnTryStatus;                                                                                            \
  } while (false)

#define KILN_CONCAT_(a, b) a##b
#define KILN_CONCAT(a, b) KILN_CONCAT_(a, b)
/// `KILN_ASSIGN(auto x, f());` declares x from a Result, or returns its Status from the enclosing function.
#define KILN_ASSIGN(decl, expr) KILN_ASSIGN_(KILN_CONCAT(kilnResult, __COUNTER__), decl, expr)
#define KILN_ASSIGN_(result, decl, expr)                                                                               \
  auto result = (expr);                                                                                                \
  if (!result.ok())                                                                                                    \
    return result.takeStatus();                                                                                        \
  decl = std::move(*result)

#endif // KILN_SUPPORT_STATUS_H
