//===- Temporaries.h - Files that must not outlive the process ------------===//
//
// The names of the temporary files that this process has in some folder right now.  Whoever is ended by a signal can
// remove them from its handler: the list takes no lock and no memory.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_IO_TEMPORARIES_H
#define KILN_RUNTIME_IO_TEMPORARIES_H

#include <string>
#include <utility>

namespace kiln {

/// One name on the list, from before the file is made until it is renamed or removed.  Beyond `most` names at a time a
/// file is not listed.
class ListedTemporary {
public:
  static constexpr unsigned most = 64;

  ListedTemporary() = default;
  explicit ListedTemporary(const std::string &path);
  ListedTemporary(ListedTemporary &&other) noexcept : slot(std::exchange(other.slot, -1)) {}
  ListedTemporary &operator=(ListedTemporary &&other) noexcept {
    std::swap(slot, other.slot);
    return *this;
  }
  ~ListedTemporary();

private:
  int slot = -1;
};

/// Removes every file on the list, if this is the process that made them and no child of it.  Safe in a signal handler.
void removeListedTemporaries();

/// From here on SIGINT, SIGTERM and SIGHUP remove the files on the list and then end the process as they would have.  A
/// signal that is ignored stays ignored.  For programs; a library leaves signals to its caller.
void removeTemporariesOnSignals();

} // namespace kiln

#endif // KILN_RUNTIME_IO_TEMPORARIES_H
