//===- CStatus.h - Calls of kiln/kiln.h end here ------------------------------===//
//
// A failure becomes a status, and what the thread's kiln_error_message and kiln_error_remedy say.
//
// Invariant: no exception leaves `guarded`.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DOOR_CSTATUS_H
#define KILN_RUNTIME_DOOR_CSTATUS_H

#include "kiln/kiln.h"
#include "runtime/door/DoorCall.h"

#include <cstring>
#include <exception>
#include <new>

namespace kiln::door {

/// Of the calling thread.
struct LastFailure {
  std::string message, remedy;
};
LastFailure &lastFailure();

kiln_status fail(Failure failure);

template <typename F> kiln_status guarded(F f) {
  const auto because = [](StatusCode code, const char *message, const char *remedy) {
    return fail({"", message, remedy, code});
  };
  try {
    Failure failure = f();
    return failure.kind.empty() ? KILN_OK : fail(std::move(failure));
  } catch (const std::bad_alloc &) {
    return because(StatusCode::OutOfMemory, "the host has no memory left", "give smaller tensors");
  } catch (const std::exception &e) {
    return because(StatusCode::Internal, e.what(), "report it");
  }
}

/// A wrong argument of `function`.
inline Failure wrong(const char *function, const std::string &what, std::string remedy) {
  return failureOf(function, Status::invalid(std::string(function) + ": " + what, std::move(remedy)));
}

/// What the options say; nothing if they are NULL.
inline Failure surroundingsOf(const char *function, const kiln_options *options, Surroundings &out) {
  std::size_t size = 0;
  if (!options)
    return {};
  std::memcpy(&size, options, sizeof size);
  if (size != sizeof(kiln_options))
    return wrong(function,
                 "its kiln_options say that they have " + std::to_string(size) + " bytes; this library knows " +
                     std::to_string(sizeof(kiln_options)),
                 "write them with kiln_options_init");
  out = {options->stream, reinterpret_cast<DeviceAddress>(options->workspace), options->workspace_bytes};
  return {};
}

} // namespace kiln::door

#define KILN_API extern "C" __attribute__((visibility("default")))

#endif // KILN_RUNTIME_DOOR_CSTATUS_H
