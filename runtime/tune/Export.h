//===- Export.h - A journal as other programs read it ------------------------===//
#ifndef KILN_RUNTIME_TUNE_EXPORT_H
#define KILN_RUNTIME_TUNE_EXPORT_H

#include "runtime/tune/Journal.h"

namespace kiln::tune {

/// "t4": results of the schema T4, version 1.0.0, of Kernel Tuner and the Open Autotuning Results Schema.  "csv": a
/// line a configuration, its parameters first.  "html": HtmlReport.h's page, which alone may have `other` next to it. A
/// failure lists the formats.
Result<std::string> exportJournal(const JournalContents &journal, const std::string &format,
                                  const JournalContents *other = nullptr);

} // namespace kiln::tune

#endif // KILN_RUNTIME_TUNE_EXPORT_H
