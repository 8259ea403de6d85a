#include "runtime/tools/CallList.h"

#include "runtime/io/File.h"
#include "support/Text.h"

namespace kiln::tools {

Result<std::vector<ListedCall>> readCallList(const std::string &file) {
  KILN_ASSIGN(const std::string text, readTextFile(file));
  std::vector<ListedCall> out;
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ListedCall call{file + ", line " + std::to_string(++number), number, {}};
    for (const std::string_view word : split(line.substr(0, line.find('#')), ' '))
      if (const std::size_t begin = word.find_first_not_of("\t\r"); begin != word.npos)
        call.words.emplace_back(word.substr(begin, word.find_last_not_of("\t\r") + 1 - begin));
    if (!call.words.empty())
      out.push_back(std::move(call));
  }
  return out;
}

} // namespace kiln::tools
