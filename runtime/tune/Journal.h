//===- Journal.h - What a sweep measured, kept as it is measured --------------===//
//
// A text file of JSON lines: a header that says what was swept, then a line a configuration.  Lines are only appended,
// each with one write and an fsync; so a process that ends at any point leaves every line that it finished.  A last
// line without an end is cut when the journal is opened again.
//
// Invariants: a journal is never overwritten: one whose header is another sweep's, and a file that is no journal, is
// refused.  One process at a time has it open for appending.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TUNE_JOURNAL_H
#define KILN_RUNTIME_TUNE_JOURNAL_H

#include "runtime/tune/Space.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <mutex>
#include <optional>

namespace kiln::tune {

using Json = nlohmann::ordered_json;

/// What became of a configuration.
enum class Outcome : std::uint8_t {
  Good,     ///< right, and measured
  Wrong,    ///< its results are not the reference's, or a check found something
  Compile,  ///< it did not compile
  Refused,  ///< the kernel refused it, or it was pruned after its compile
  Failed,   ///< the launch failed
  Crashed,  ///< its process ended by a signal
  TimedOut, ///< it took longer than a configuration may
};
constexpr unsigned outcomes = static_cast<unsigned>(Outcome::TimedOut) + 1;
std::string_view outcomeName(Outcome outcome);
std::optional<Outcome> outcomeNamed(std::string_view name);

/// How launches were timed: the L2 filled with other data before each, or one after the other, each with what the one
/// before it left in the caches.  Journals that are older than this field are warm.
inline constexpr const char *timingCold = "cold", *timingWarm = "warm";

/// What a call must do at the least, and what a device can.  It says nothing of what was swept: headers that differ in
/// it are the same sweep's.
struct Roofline {
  double flops = 0, bytes = 0;       ///< of the call
  double flopRate = 0, byteRate = 0; ///< a second, of the device
  std::string gpu;                   ///< whose rates they are
  bool operator==(const Roofline &) const = default;
  double intensity() const { return flops / bytes; }
  double roof() const { return std::min(flopRate, byteRate * intensity()); } ///< FLOP/s that the call can reach
};

/// What was swept.  Journals of equal headers may be continued and merged.
struct JournalHeader {
  static constexpr int version = 1;
  std::string kernel, dtype, target, device, call;
  std::string objective;                 ///< "measured" or "predicted"
  std::string compiler;                  ///< hash of its contents
  std::string timing = {};               ///< of measured ones
  std::optional<Roofline> roofline = {}; ///< where all of it is known
  bool operator==(const JournalHeader &) const = default;
};

/// How the GPU was while a configuration was measured; what is not known is left out.
struct Conditions {
  /// What makes the time doubtful, though it was taken twice: "throttled: power cap".
  std::vector<std::string> notes;
  /// The least clocks that were seen, and how much of the time shortly before it was busy.
  std::optional<unsigned> smMegahertz, memoryMegahertz, busyPercentBefore;
};
/// As fields of an object, and back.
void addConditions(Json &to, const Conditions &conditions);
Conditions conditionsOf(const Json &from);

struct Entry {
  std::vector<std::pair<std::string, std::string>> configuration; ///< NAME, VALUE
  Outcome outcome = Outcome::Failed;
  double milliseconds = 0;        ///< of a good one: the objective
  double least = 0, greatest = 0; ///< of its samples
  std::optional<double> estimate; ///< the model's, before the compile
  bool isDefault = false;         ///< what the call takes where nothing is tuned
  std::string message;            ///< of one that is not good
  Conditions conditions = {};     ///< of a good one
  double seconds = 0;             ///< that the configuration took in all
  std::string time;               ///< "2026-11-28T04:00:00Z"

  bool good() const { return outcome == Outcome::Good; }
  /// "block_m=64, warps=4": equal ones are the same configuration.
  std::string key() const;
};

/// How often entries that are good have a note, and one of them.
struct NoteCount {
  std::string note;
  std::size_t count = 0;
  const Entry *first = nullptr;
};
/// The most frequent first.
std::vector<NoteCount> countNotes(const std::vector<Entry> &entries);

/// Of two good ones: the faster; of equally fast ones always the same, in whichever order they were measured.
bool isBetter(const Entry &a, const Entry &b);

Json toJson(const JournalHeader &header);
Json toJson(const Entry &entry);
/// What is missing is empty.
JournalHeader headerFrom(const Json &json);
/// The failure says what is wrong with it.
Result<Entry> entryFrom(const Json &json);

struct JournalContents {
  JournalHeader header;
  std::vector<Entry> entries; ///< of a configuration that stands there twice the first
  std::size_t wholeBytes = 0; ///< what a torn last line leaves
  bool torn = false;
};

/// The first field that differs: "its compiler is "a", not "b"".
std::optional<std::string> difference(const JournalHeader &is, const JournalHeader &wanted);

/// Refuses the header of journal `path` if it is not `wanted`; names the first field that differs.
Status sameSweep(const std::string &path, const JournalHeader &is, const JournalHeader &wanted);

/// The failure names the file and the line.
Result<JournalContents> readJournal(const std::string &path);

class Journal {
public:
  /// Opens or makes it.  What an older one holds is `entries`.
  static Result<std::unique_ptr<Journal>> open(const std::string &path, const JournalHeader &header);
  /// Makes it; a file that exists is refused.
  static Result<std::unique_ptr<Journal>> create(const std::string &path, const JournalHeader &header);
  ~Journal();
  Journal(const Journal &) = delete;
  Journal &operator=(const Journal &) = delete;

  const std::vector<Entry> &entries() const { return before; }
  bool wasTorn() const { return torn; }
  /// The lines are on the disk when these return.
  Status append(const Entry &entry);
  Status append(const std::vector<Entry> &entries);

private:
  Journal(std::string path, int descriptor) : path(std::move(path)), descriptor(descriptor) {}
  Status write(const std::string &lines);

  std::string path;
  int descriptor;
  bool torn = false;
  std::vector<Entry> before;
  std::mutex mutex;
};

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_JOURNAL_H
