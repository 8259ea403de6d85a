//===- Pack.h - Many entries in one file, read and never written --------------===//
//
// What a machine without a GPU compiled for others (`kiln pack`), carried as a file.  Numbers little-endian:
//
//     0   8 bytes   magic
//     8   u32       format version
//    12   u32       entries
//    16   32 bytes each: XXH3-128 of the pack key (low, high), u64 offset, u64 bytes; in the order of the hashes
//         16 bytes  XXH3-128 of everything before it
//         the entries, as they are in files of a cache (Entry.h)
//
// A pack key is a kernel's key without the assembler: the code is assembled already, by the one that the pack's maker
// had, or is PTX for any driver, and runs where another one is installed, or none.  Everything else of the key counts as
// in a cache.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_PACK_H
#define KILN_RUNTIME_CACHE_PACK_H

#include "runtime/cache/FileLayer.h"
#include "runtime/cache/Layer.h"

#include <memory>
#include <span>
#include <utility>

namespace kiln::cache {

/// What names of packs end in: where folders may be named too, it tells them apart.
inline constexpr std::string_view packSuffix = ".pack";

/// Without the field "assembler".
KeyText packKey(const KeyText &key);

/// The file's bytes.  Of entries with the same pack key the first counts.
std::string encodePack(std::span<const std::pair<KeyText, Entry>> entries);

/// The file need not exist yet.  It belongs to root, to this user or to the program's owner, and nobody else may write
/// to it or replace it (TrustedFile.h): that is asked when it is opened, at the first lookup that finds it.  Any damage
/// is a failed lookup that names it.
std::unique_ptr<Layer> packLayer(std::string path, FileLayer *files = nullptr);

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_PACK_H
