//===- EntryName.h - The kernel that --entry means ------------------------===//
//
// Compilers mangle names to a thousand characters and more, so a part of one is enough, as it is or demangled, or the
// kernel's number in its file (from 1), which messages and `kiln check FILE --decode` tell.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_ENTRYNAME_H
#define KILN_RUNTIME_TOOLS_ENTRYNAME_H

#include "support/Status.h"

#include <string>
#include <vector>

namespace kiln::tools {

/// The name among `names`, those of `file`, that `entry` means: a whole name, a number, or a part that no other has.
/// Empty: the only one.  What nothing is known of (a driver may list no names) is returned as it is.
Result<std::string> chooseEntry(const std::string &file, const std::vector<std::string> &names,
                                const std::string &entry);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_ENTRYNAME_H
