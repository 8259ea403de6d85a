//===- SharedFolder.h - A cache that somebody else fills ------------------===//
//
// A folder of entries as KernelCache leaves them, read and never written: an image's, an administrator's, a pack's.
// Its files and the folders on the way to them belong to root, to this user or to the running program's owner, and
// nobody else may write to them (TrustedFile.h): that is asked at every lookup.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_SHAREDFOLDER_H
#define KILN_RUNTIME_CACHE_SHAREDFOLDER_H

#include "runtime/cache/FileLayer.h"
#include "runtime/cache/Layer.h"

#include <memory>

namespace kiln::cache {

/// The folder need not exist yet: what appears there is found from then on.
std::unique_ptr<Layer> sharedFolder(std::string path, FileLayer *files = nullptr);

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_SHAREDFOLDER_H
