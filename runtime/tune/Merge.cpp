#include "runtime/tune/Merge.h"

#include <map>

namespace kiln::tune {

Result<Merged> mergeJournals(const std::string &out, const std::vector<std::string> &parts) {
  if (parts.size() < 2)
    return Status::invalid("merge takes a new journal and at least two parts, " + std::to_string(parts.size()) +
                               " were given",
                           "write kiln tune merge OUT A B");
  JournalHeader header;
  std::vector<Entry> all;
  std::map<std::string, std::size_t> places;
  Merged merged;
  for (const std::string &part : parts) {
    KILN_ASSIGN(const JournalContents contents, readJournal(part));
    if (&part == &parts[0])
      header = contents.header;
    else
      KILN_TRY(sameSweep(part, contents.header, header));
    for (const Entry &e : contents.entries) {
      const auto [at, isNew] = places.try_emplace(e.key(), all.size());
      if (isNew) {
        all.push_back(e);
        continue;
      }
      ++merged.duplicates;
      if (e.good() && !all[at->second].good())
        all[at->second] = e;
    }
  }
  KILN_ASSIGN(const std::unique_ptr<Journal> journal, Journal::create(out, header));
  KILN_TRY(journal->append(all));
  merged.entries = all.size();
  return merged;
}

} // namespace kiln::tune
