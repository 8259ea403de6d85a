//===- CallList.h - A text file with a call a line ---------------------------===//
#ifndef KILN_RUNTIME_TOOLS_CALLLIST_H
#define KILN_RUNTIME_TOOLS_CALLLIST_H

#include "support/Status.h"

#include <string>
#include <vector>

namespace kiln::tools {

struct ListedCall {
  std::string where; ///< "calls.txt, line 3"
  std::size_t line = 0;
  std::vector<std::string> words;
};

/// The lines that have words, with blanks between them; # begins a comment.
Result<std::vector<ListedCall>> readCallList(const std::string &file);

/// A line of words as after `kiln bench`: what is called, not how it is measured.
struct CallWords {
  std::vector<std::string> kernels, dtypes, with;
};
Result<CallWords> parseCallWords(const ListedCall &call);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_CALLLIST_H
