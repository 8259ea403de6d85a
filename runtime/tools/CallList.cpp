#include "runtime/tools/CallList.h"

#include "runtime/io/File.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <algorithm>

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

Result<CallWords> parseCallWords(const ListedCall &call) {
  CallWords out;
  CLI::App line;
  line.set_help_flag();
  line.add_option("kernels", out.kernels)->required();
  line.add_option("--dtype", out.dtypes);
  line.add_option("--with", out.with)->allow_extra_args(false);
  std::vector<std::string> words(call.words.rbegin(), call.words.rend()); // as CLI11 takes them
  try {
    line.parse(std::move(words));
  } catch (const CLI::ParseError &e) {
    return Status::invalid("'" + join(call.words, " ") + "': " + e.what(),
                           "write KERNEL [--dtype DTYPE] [--with NAME=V ..], as after kiln bench");
  }
  return out;
}

} // namespace kiln::tools
