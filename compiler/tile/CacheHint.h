//===- CacheHint.h - `cache WORD` in the assembly of memory operations ------===//
#ifndef KILN_TILE_CACHEHINT_H
#define KILN_TILE_CACHEHINT_H

#include "compiler/tile/Tile.h"

namespace kiln::tile {

/// `cache WORD`, if it is there, as the attribute `cache`.
inline mlir::ParseResult parseCache(mlir::OpAsmParser &parser, mlir::NamedAttrList &attributes) {
  if (failed(parser.parseOptionalKeyword("cache")))
    return mlir::success();
  llvm::StringRef word;
  const llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return mlir::failure();
  const std::optional<Cache> cache = symbolizeCache(word);
  if (!cache)
    return parser.emitError(loc) << "'" << word << "' is no cache hint: default, streaming, global, volatile";
  attributes.set("cache", CacheAttr::get(parser.getContext(), *cache));
  return mlir::success();
}

/// The default prints nothing.
inline void printCache(mlir::OpAsmPrinter &printer, Cache cache) {
  if (cache != Cache::Default)
    printer << " cache " << stringifyCache(cache);
}

} // namespace kiln::tile

#endif // KILN_TILE_CACHEHINT_H
