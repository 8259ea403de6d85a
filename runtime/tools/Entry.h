//===- Entry.h - Where the program `kiln` enters libkiln.so ----------------===//
//
// The program is a few lines: the commands, and all that they need, are in the libkiln.so of the same build, so that an
// installed Kiln has its code once.  No part of the C API.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_ENTRY_H
#define KILN_RUNTIME_TOOLS_ENTRY_H

extern "C" __attribute__((visibility("default"))) int kiln_main(int argc, char **argv);

#endif // KILN_RUNTIME_TOOLS_ENTRY_H
