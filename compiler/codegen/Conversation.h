//===- Conversation.h - A program that answers many requests ------------------===//
//
// A program is started once and asked line by line over its file descriptor 3: each request is a line, and so is each
// answer.  One that does not answer by the deadline is killed; one that ends, for whatever reason, ends the
// conversation.  Not thread safe.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_CONVERSATION_H
#define KILN_CODEGEN_CONVERSATION_H

#include "compiler/codegen/ProcessStart.h"

#include <functional>
#include <memory>
#include <optional>

namespace kiln {

class Conversation {
public:
  /// Of `spec` the deadline and the request do not count.  A failure means that the program could not be started.
  static Result<std::unique_ptr<Conversation>> start(ProcessSpec spec);
  ~Conversation(); ///< kills the program
  Conversation(const Conversation &) = delete;
  Conversation &operator=(const Conversation &) = delete;

  /// The answer to a request, both without a newline.  None: the program has ended, and end() says how.
  std::optional<std::string> ask(std::string_view request, double seconds);
  const ProcessEnd &end() const { return how; }
  /// Whether the program has ended, or closed its channel, since it was asked last.
  bool hasEnded() const;

private:
  Conversation() = default;
  void finish(bool kill);
  /// Until one of the two has something to read.  False at the deadline.
  bool waitFor(short events, Clock::time_point deadline);
  /// A piece of what it printed; false: there is no more now.
  bool readOutput();
  StartedProcess started;
  std::size_t mostOutput = 0, mostAnswer = 0;
  std::string received; ///< of the next answer
  ProcessEnd how;
};

/// In the program: answers requests until its starter is gone; main's exit status.  `handler` says whether the
/// conversation goes on after its answer.
int answerRequests(const std::function<std::pair<std::string, bool>(const std::string &request)> &handler);

} // namespace kiln

#endif // KILN_CODEGEN_CONVERSATION_H
