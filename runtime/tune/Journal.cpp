#include "runtime/tune/Journal.h"

#include "runtime/io/File.h"
#include "support/ParseNumber.h"
#include "support/Text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <libgen.h>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::tune {
namespace {

constexpr std::string_view outcomeNames[outcomes] = {"good",   "wrong",   "compile", "refused",
                                                     "failed", "crashed", "timeout"};
constexpr std::string_view marker = "kiln-tune journal";

/// Numbers as numbers, flags as flags, so that other programs can calculate with them.
Json valueOf(const std::string &text) {
  if (const auto number = parseNumber<std::int64_t>(text))
    return *number;
  if (text == "true" || text == "false")
    return text == "true";
  return text;
}

std::string lineOf(const Json &object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string textOf(const Json &value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Status ioFailure(const std::string &path, const std::string &what) {
  return {StatusCode::IoError, "journal '" + path + "' cannot be " + what + ": " + std::strerror(errno),
          "name a file in a folder that can be written: --journal FILE"};
}

std::optional<Json> parseObject(std::string_view line) {
  Json out = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (out.is_discarded() || !out.is_object())
    return {};
  return out;
}

std::string textField(const Json &from, const char *name) {
  const auto found = from.find(name);
  return found != from.end() && found->is_string() ? found->get<std::string>() : std::string();
}
double numberField(const Json &from, const char *name) {
  const auto found = from.find(name);
  return found != from.end() && found->is_number() ? found->get<double>() : 0;
}

Status noJournal(const std::string &path) {
  return Status::invalid("'" + path + "' is no journal of kiln tune: its first line is no header",
                         "name another file; this one is left as it is");
}

/// Headers that do not say it are older than the field.
std::string timingOf(const JournalHeader &h) {
  return h.timing.empty() && h.objective == "measured" ? timingWarm : h.timing;
}

/// Nothing, too, where a number is none that a picture can be made of.
std::optional<Roofline> rooflineOf(const Json &header) {
  const auto found = header.find("roofline");
  if (found == header.end() || !found->is_object())
    return {};
  Roofline out{numberField(*found, "flops"), numberField(*found, "bytes"), numberField(*found, "flopsPerSecond"),
               numberField(*found, "bytesPerSecond"), textField(*found, "gpu")};
  for (const double v : {out.flops, out.bytes, out.flopRate, out.byteRate})
    if (!(v > 0 && v < 1e30))
      return {};
  return out;
}

Result<JournalHeader> headerOf(const std::string &path, std::string_view line) {
  const auto json = parseObject(line);
  if (!json || textField(*json, "kind") != marker)
    return noJournal(path);
  if (const double version = numberField(*json, "version"); version != JournalHeader::version)
    return Status::invalid("journal '" + path + "' is of version " + format("%g", version) + "; this program reads " +
                               std::to_string(JournalHeader::version),
                           "name another file; this one is left as it is");
  return headerFrom(*json);
}

/// The numbers under their names.
template <typename C> auto numbersOf(C &c) {
  return std::array{std::pair("smMHz", &c.smMegahertz), std::pair("memoryMHz", &c.memoryMegahertz),
                    std::pair("busyPercentBefore", &c.busyPercentBefore)};
}

/// A new file's name is on the disk once its folder is.
void syncFolder(const std::string &path) {
  std::string copy = path;
  const int folder = ::open(::dirname(copy.data()), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return;
  ::fsync(folder); // some file systems cannot
  ::close(folder);
}

} // namespace

std::string_view outcomeName(Outcome outcome) {
  return outcomeNames[static_cast<unsigned>(outcome)];
}
std::optional<Outcome> outcomeNamed(std::string_view name) {
  const auto *const found = std::find(std::begin(outcomeNames), std::end(outcomeNames), name);
  if (found == std::end(outcomeNames))
    return {};
  return static_cast<Outcome>(found - std::begin(outcomeNames));
}

std::string Entry::key() const {
  std::vector<std::string> parts;
  for (const auto &[name, value] : configuration)
    parts.push_back(name + "=" + value);
  return join(parts);
}

void addConditions(Json &to, const Conditions &conditions) {
  if (!conditions.notes.empty())
    to["notes"] = conditions.notes;
  for (const auto &[name, value] : numbersOf(conditions))
    if (*value)
      to[name] = **value;
}

Conditions conditionsOf(const Json &from) {
  Conditions out;
  if (const auto notes = from.find("notes"); notes != from.end() && notes->is_array())
    for (const Json &note : *notes)
      out.notes.push_back(textOf(note));
  for (const auto &[name, to] : numbersOf(out))
    if (const double value = numberField(from, name); from.contains(name) && value >= 0 && value < 1e9)
      *to = static_cast<unsigned>(value);
  return out;
}

std::vector<NoteCount> countNotes(const std::vector<Entry> &entries) {
  std::vector<NoteCount> out;
  for (const Entry &e : entries)
    for (const std::string &note : e.conditions.notes) {
      auto found = std::find_if(out.begin(), out.end(), [&](const NoteCount &n) { return n.note == note; });
      if (found == out.end())
        found = out.insert(out.end(), {note, 0, &e});
      ++found->count;
    }
  std::stable_sort(out.begin(), out.end(), [](const NoteCount &a, const NoteCount &b) { return a.count > b.count; });
  return out;
}

bool isBetter(const Entry &a, const Entry &b) {
  return a.milliseconds != b.milliseconds ? a.milliseconds < b.milliseconds : a.key() < b.key();
}

Json toJson(const JournalHeader &h) {
  Json out = {{"kind", marker},        {"version", JournalHeader::version},
              {"kernel", h.kernel},    {"dtype", h.dtype},
              {"target", h.target},    {"device", h.device},
              {"call", h.call},        {"objective", h.objective},
              {"compiler", h.compiler}};
  if (!h.timing.empty())
    out["timing"] = h.timing;
  if (const auto &r = h.roofline)
    out["roofline"] = {{"flops", r->flops},
                       {"bytes", r->bytes},
                       {"flopsPerSecond", r->flopRate},
                       {"bytesPerSecond", r->byteRate},
                       {"gpu", r->gpu}};
  return out;
}

JournalHeader headerFrom(const Json &json) {
  JournalHeader out{textField(json, "kernel"),   textField(json, "dtype"), textField(json, "target"),
                    textField(json, "device"),   textField(json, "call"),  textField(json, "objective"),
                    textField(json, "compiler"), textField(json, "timing")};
  out.timing = timingOf(out);
  out.roofline = rooflineOf(json);
  return out;
}

Result<Entry> entryFrom(const Json &json) {
  if (!json.is_object())
    return Status::invalid("it is no JSON object");
  Entry out;
  const auto configuration = json.find("configuration");
  if (configuration == json.end() || !configuration->is_object() || configuration->empty())
    return Status::invalid("it has no configuration");
  for (const auto &[name, value] : configuration->items())
    out.configuration.emplace_back(name, textOf(value));
  const std::string name = textField(json, "outcome");
  const std::optional<Outcome> outcome = outcomeNamed(name);
  if (!outcome)
    return Status::invalid("the outcome '" + name + "' does not exist");
  out.outcome = *outcome;
  out.milliseconds = numberField(json, "ms");
  if (out.good() && !(out.milliseconds > 0 && std::isfinite(out.milliseconds)))
    return Status::invalid("a good configuration has no time");
  out.least = numberField(json, "minMs"), out.greatest = numberField(json, "maxMs");
  if (json.contains("estimateMs"))
    out.estimate = numberField(json, "estimateMs");
  out.isDefault = json.value("default", Json()) == Json(true);
  out.message = textField(json, "message");
  out.conditions = conditionsOf(json);
  out.seconds = numberField(json, "seconds");
  out.time = textField(json, "time");
  return out;
}

Json toJson(const Entry &e) {
  Json out = {{"configuration", Json::object()}, {"outcome", outcomeName(e.outcome)}};
  for (const auto &[name, value] : e.configuration)
    out["configuration"][name] = valueOf(value);
  if (e.good())
    out.update({{"ms", e.milliseconds}, {"minMs", e.least}, {"maxMs", e.greatest}});
  if (e.estimate)
    out["estimateMs"] = *e.estimate;
  if (e.isDefault)
    out["default"] = true;
  if (!e.message.empty())
    out["message"] = e.message;
  addConditions(out, e.conditions);
  out["seconds"] = e.seconds;
  out["time"] = e.time;
  return out;
}

std::optional<std::string> difference(const JournalHeader &is, const JournalHeader &wanted) {
  Json a = toJson(is), b = toJson(wanted);
  a.erase("roofline"), b.erase("roofline");
  a["timing"] = timingOf(is), b["timing"] = timingOf(wanted);
  for (const auto &[name, value] : a.items())
    if (value != b.at(name))
      return "its " + name + " is " + value.dump() + ", not " + b.at(name).dump();
  return {};
}

Status sameSweep(const std::string &path, const JournalHeader &is, const JournalHeader &wanted) {
  if (const std::optional<std::string> what = difference(is, wanted))
    return Status::invalid("journal '" + path + "' is of another sweep: " + *what,
                           "name another file; this one is left as it is");
  return {};
}

Result<JournalContents> readJournal(const std::string &path) {
  KILN_ASSIGN(const std::string text, readTextFile(path));
  JournalContents out;
  out.wholeBytes = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  out.torn = out.wholeBytes != text.size();
  std::string_view rest = std::string_view(text).substr(0, out.wholeBytes);
  std::set<std::string> seen;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (number == 1) {
      KILN_ASSIGN(out.header, headerOf(path, line));
      continue;
    }
    const std::optional<Json> json = parseObject(line);
    Result<Entry> read = entryFrom(json.value_or(Json()));
    if (!read)
      return Status::invalid("journal '" + path + "', line " + std::to_string(number) + ": " + read.status().message(),
                             "restore the file, or start another one");
    Entry &entry = *read;
    if (seen.insert(entry.key()).second)
      out.entries.push_back(std::move(entry));
  }
  if (out.wholeBytes == 0)
    return noJournal(path);
  return out;
}

Result<std::unique_ptr<Journal>> Journal::create(const std::string &path, const JournalHeader &header) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return errno == EEXIST ? Status::invalid("'" + path + "' exists, and a journal is never overwritten",
                                             "name a file that does not exist")
                           : ioFailure(path, "made");
  std::unique_ptr<Journal> out(new Journal(path, descriptor));
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0)
    return Status::invalid("journal '" + path + "' is in use by another sweep", "wait for it, or name another file");
  KILN_TRY(out->write(lineOf(toJson(header))));
  syncFolder(path);
  return out;
}

Result<std::unique_ptr<Journal>> Journal::open(const std::string &path, const JournalHeader &header) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0 && errno == ENOENT)
    return create(path, header);
  if (!S_ISREG(about.st_mode))
    return Status::invalid("'" + path + "' is no regular file", "name another one: --journal FILE");
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor < 0)
    return ioFailure(path, "opened");
  std::unique_ptr<Journal> out(new Journal(path, descriptor));
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0)
    return Status::invalid("journal '" + path + "' is in use by another sweep", "wait for it, or name another file");
  KILN_ASSIGN(const std::string text, readTextFile(path));
  if (const std::string first = lineOf(toJson(header));
      text != first && first.starts_with(text)) { // ended before its header was whole, and holds nothing
    out->torn = !text.empty();
    if (::ftruncate(descriptor, 0) != 0)
      return ioFailure(path, "written");
    KILN_TRY(out->write(lineOf(toJson(header))));
    return out;
  }
  KILN_ASSIGN(JournalContents contents, readJournal(path));
  KILN_TRY(sameSweep(path, contents.header, header));
  if (contents.torn && ::ftruncate(descriptor, static_cast<off_t>(contents.wholeBytes)) != 0)
    return ioFailure(path, "cut after its last whole line");
  out->torn = contents.torn;
  out->before = std::move(contents.entries);
  return out;
}

Journal::~Journal() {
  ::close(descriptor);
}

Status Journal::append(const Entry &entry) {
  const std::lock_guard lock(mutex);
  return write(lineOf(toJson(entry)));
}

Status Journal::append(const std::vector<Entry> &entries) {
  std::string lines;
  for (const Entry &e : entries)
    lines += lineOf(toJson(e));
  const std::lock_guard lock(mutex);
  return write(lines);
}

Status Journal::write(const std::string &lines) {
  std::string_view rest = lines;
  while (!rest.empty()) {
    const ssize_t n = ::write(descriptor, rest.data(), rest.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return ioFailure(path, "written");
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS)
    return ioFailure(path, "brought to the disk");
  return {};
}

} // namespace kiln::tune
