#include "runtime/tools/EntryName.h"

#include "support/Names.h"
#include "support/ParseNumber.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::tools {
namespace {

constexpr std::size_t mostListed = 40, mostCharacters = 100;

/// "2: f<int>(float), 5: ...", demangled; of what all have in common at their start only the end is shown.
std::string numbered(const std::vector<std::string> &names, const std::vector<std::size_t> &which) {
  std::vector<std::string> texts;
  for (std::size_t i : which)
    texts.push_back(demangled(names[i]));
  std::size_t common = 0;
  while (texts.size() > 1 && common < texts[0].size() &&
         std::all_of(
             texts.begin(), texts.end(), [&](auto &t) { return common < t.size() && t[common] == texts[0][common]; }))
    ++common;
  constexpr std::size_t context = 20;
  const std::size_t cut = common > 2 * context ? common - context : 0;
  std::vector<std::string> out;
  for (std::size_t i = 0; i < std::min(which.size(), mostListed); ++i)
    out.push_back(std::to_string(which[i] + 1) + ": " + (cut ? "..." : "") +
                  shortName(texts[i].substr(cut), mostCharacters));
  return join(out) + (which.size() > mostListed ? " and " + std::to_string(which.size() - mostListed) + " more" : "");
}

} // namespace

Result<std::string> chooseEntry(const std::string &file, const std::vector<std::string> &names,
                                const std::string &entry) {
  std::vector<std::size_t> matches;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!entry.empty() && names[i] == entry)
      return entry;
    if (names[i].find(entry) != std::string::npos || demangled(names[i]).find(entry) != std::string::npos)
      matches.push_back(i);
  }
  if (entry.empty()) {
    if (names.size() == 1)
      return names[0];
    return Status::invalid(names.empty() ? "'" + file + "' has no kernel that can be listed"
                                         : "'" + file + "' has " + std::to_string(names.size()) +
                                               " kernels: " + numbered(names, matches),
                           "choose one with --entry NAME, a part of its name or its number");
  }
  // No PTX name starts with a digit.
  if (!names.empty() && entry.find_first_not_of("0123456789") == std::string::npos) {
    const std::size_t number = parseNumber<std::size_t>(entry).value_or(0);
    if (number == 0 || number > names.size())
      return Status::invalid("--entry " + entry + ": '" + file + "' has kernels 1 to " + std::to_string(names.size()),
                             "kiln check FILE --decode lists them");
    return names[number - 1];
  }
  if (matches.size() == 1)
    return names[matches[0]];
  if (matches.size() > 1)
    return Status::invalid("--entry " + shortName(entry) + " is a part of the names of " +
                               std::to_string(matches.size()) + " kernels of '" + file +
                               "': " + numbered(names, matches),
                           "give more of the name, or the number");
  return entry; // the module says that it has none, and which are near
}

} // namespace kiln::tools
