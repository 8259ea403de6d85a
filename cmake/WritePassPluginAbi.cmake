# cmake -DOUTPUT=FILE -DVERSION=TEXT -DLIST=FILE -P WritePassPluginAbi.cmake
# Writes what a pass plugin and the compiler must agree on: the versions, and a hash of every header that a pass can include.
file(STRINGS ${LIST} headers)
set(hashes)
foreach(header IN LISTS headers)
  file(SHA256 ${header} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "#define KILN_PASS_PLUGIN_ABI \"${VERSION}, headers ${hash}\"\n")
