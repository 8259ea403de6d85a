// Compiled into every pass plugin (kiln_add_pass_plugin): says for which Kiln and which LLVM it was built.  The
// compiler reads it from the file before it loads any code of a plugin (Plugins.h).
#include "compiler/pipeline/PassPluginAbi.inc"

extern "C" __attribute__((visibility("default"))) const char kilnPassPluginMark[];
const char kilnPassPluginMark[] = KILN_PASS_PLUGIN_ABI;
