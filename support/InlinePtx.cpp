#include "support/InlinePtx.h"

#include <string>
#include <vector>

namespace kiln {
namespace {

constexpr std::string_view space = " \t\r\n";

std::string_view trimmed(std::string_view text, std::string_view also = {}) {
  const std::string drop = std::string(space) + std::string(also);
  const std::size_t first = text.find_first_not_of(drop);
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(drop) + 1 - first);
}

/// The statements' first words, predicates left out.
Status checkStatements(std::string_view text) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find(';');
    std::string_view statement = trimmed(rest.substr(0, end), "{}");
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    if (statement.starts_with('@'))
      statement = trimmed(statement.substr(std::min(statement.find_first_of(space), statement.size())));
    const std::string_view word = statement.substr(0, statement.find_first_of(space));
    if (word.starts_with("bar.") || word.starts_with("barrier.") || word == "ret" || word == "exit")
      return Status::invalid("'" + std::string(word) + "' is not for inline PTX",
                             word.starts_with("bar") ? "leave barriers to the compiler, which counts them"
                                                     : "a kernel ends at its end: compute a condition instead");
  }
  return {};
}

} // namespace

Status checkInlinePtx(std::string_view text, unsigned results, unsigned operands) {
  const unsigned count = results + operands;
  const std::string list = std::to_string(results) + (results == 1 ? " result and " : " results and ") +
                           std::to_string(operands) + (operands == 1 ? " operand" : " operands");
  std::vector<bool> used(count);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$')
      continue;
    if (i + 1 < text.size() && text[i + 1] == '$') {
      ++i;
      continue;
    }
    const std::size_t end = std::min(text.find_first_not_of("0123456789", i + 1), text.size());
    const std::string digits(text.substr(i + 1, end - i - 1));
    if (digits.empty())
      return Status::invalid("'" + std::string(text.substr(i, 2)) + "' is no placeholder",
                             "write $0, $1, .. for the results and then the operands, and $$ for a dollar sign");
    if (digits.size() > 3 || std::stoul(digits) >= count)
      return Status::invalid("$" + digits + " names nothing: there are " + list,
                             count ? "placeholders go from $0 to $" + std::to_string(count - 1) + ", results first"
                                   : "a text without results and operands has no placeholder");
    used[std::stoul(digits)] = true;
    i = end - 1;
  }
  for (unsigned i = 0; i < count; ++i)
    if (!used[i])
      return Status::invalid((i < results ? "result " + std::to_string(i) : "operand " + std::to_string(i - results)) +
                                 " is in the signature and not in the text: $" + std::to_string(i) + " is missing",
                             "placeholders number the results and then the operands: there are " + list);
  const std::string_view body = trimmed(text);
  if (body.empty())
    return Status::invalid("the text is empty", "write PTX statements");
  if (body.back() != ';' && body.back() != '}')
    return Status::invalid("the text ends in '" + std::string(1, body.back()) + "'", "end each statement with ';'");
  return checkStatements(text);
}

} // namespace kiln
