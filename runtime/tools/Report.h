//===- Report.h - What the commands print ---------------------------------===//
//
// Results go to standard output, failures to standard error.  With --json standard output is one JSON object whose
// "status" is the exit status; a failure is its "error" and on standard error too.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_REPORT_H
#define KILN_RUNTIME_TOOLS_REPORT_H

#include "kiln/Device.h"

#include <nlohmann/json.hpp>

namespace kiln::tools {

using Json = nlohmann::ordered_json;

/// Bytes that are no UTF-8 (a file's name may hold any) are replaced.
void printJson(const Json &object);

/// Prints the failure, as "error" of `report` too if `json`, and returns the exit status.
int fail(const std::string &command, const Status &failure, bool json, Json report = Json::object());

Json toJson(const Finding &finding);
Json toJson(const Dim3 &dims);

/// Columns two spaces apart; the first row is the heading.
void printTable(const std::vector<std::vector<std::string>> &rows);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_REPORT_H
