// REQUIRES: mlir-tools
// RUN: kiln-lsp-server -lit-test < %s | FileCheck %s --strict-whitespace
{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"processId":123,"rootPath":"kiln","capabilities":{},"trace":"off"}}
// -----
{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"test:///good.mlir","languageId":"mlir","version":1,"text":"func.func @k(%x: !tile.ptr<f32>) attributes {tile.kernel} {\n  return\n}"}}}
// The dialects are known: what is right gets no diagnostic, what is wrong gets the dialect's own.
// CHECK: "method": "textDocument/publishDiagnostics"
// CHECK: "diagnostics": []
// -----
{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"test:///bad.mlir","languageId":"mlir","version":1,"text":"func.func @k() attributes {tile.kernel, tile.num_warps = 33 : i32} {\n  return\n}"}}}
// CHECK: a block has 1 to 32 warps
// -----
{"jsonrpc":"2.0","id":1,"method":"shutdown"}
// -----
{"jsonrpc":"2.0","method":"exit"}
