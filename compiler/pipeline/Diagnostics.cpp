#include "compiler/pipeline/Diagnostics.h"

#include "compiler/codegen/LocationScopes.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace kiln {

static const char *severityName(DiagnosticSeverity s) {
  switch (s) {
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Remark:
  case DiagnosticSeverity::Note:
    return "remark";
  }
  return "error";
}

DiagnosticCollector::DiagnosticCollector(MLIRContext &context, std::vector<Message> &messages)
    : handler(&context, [&messages](Diagnostic &d) {
        Message m;
        m.severity = severityName(d.getSeverity());
        m.text = d.str();
        if (FileLineColLoc where = firstFileLocation(d.getLocation())) {
          m.file = where.getFilename().str();
          m.line = where.getLine();
          m.column = where.getColumn();
        }
        for (Diagnostic &note : d.getNotes()) {
          const std::string text = note.str();
          // The verifier repeats the whole operation; the location says where it is.
          if (text.starts_with("see current operation"))
            continue;
          m.remedy += (m.remedy.empty() ? "" : "; ") + text;
        }
        messages.push_back(std::move(m));
        return success();
      }) {}

std::string toJson(const std::vector<Message> &messages) {
  std::string out;
  llvm::raw_string_ostream os(out);
  llvm::json::OStream json(os);
  json.array([&] {
    for (const Message &m : messages)
      json.object([&] {
        json.attribute("severity", m.severity);
        json.attribute("file", llvm::json::fixUTF8(m.file));
        json.attribute("line", m.line);
        json.attribute("column", m.column);
        json.attribute("message", llvm::json::fixUTF8(m.text));
        json.attribute("remedy", llvm::json::fixUTF8(m.remedy));
      });
  });
  return out;
}

} // namespace kiln
