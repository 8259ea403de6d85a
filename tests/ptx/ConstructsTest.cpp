// Every construct is accepted, or refused with its message.
#include "Constructs.h"
#include "PtxTesting.h"

#include "runtime/ptx/Parser.h"

#include <gtest/gtest.h>

namespace kiln::ptx::test {
namespace {

TEST(Constructs, AcceptedOrRefusedWithTheirMessage) {
  unsigned acceptedRows = 0, refusedRows = 0;
  for (const Construct &c : constructs()) {
    auto r = parse(moduleOf(c), "t.ptx");
    ++(r.ok() ? acceptedRows : refusedRows);
    EXPECT_EQ(r.ok() ? "" : r.status().toString(), c.error.empty() ? "" : "t.ptx:" + std::string(c.error)) << c.text;
  }
  EXPECT_GT(acceptedRows, 80u);
  EXPECT_GT(refusedRows, 160u);
}

TEST(Constructs, Calls) {
  for (std::string_view text : callConstructs())
    EXPECT_TRUE(accepted(moduleOfCalls(text))) << text;
}

TEST(Constructs, StatusCodes) {
  EXPECT_EQ(parse("", "t.ptx").status().code(), StatusCode::CompileError);
  EXPECT_EQ(parse(moduleWith(".global .texref t;", ""), "t.ptx").status().code(), StatusCode::Unsupported);
}

TEST(Header, IsRequired) {
  const std::string target = "\n.target sm_90a\n";
  EXPECT_EQ(refused(""), "t.ptx:1: found the end of the file, expected '.version' at the start of the module");
  EXPECT_EQ(refused("\n\n.target sm_90"), "t.ptx:3: found '.target', expected '.version' at the start of the module");
  EXPECT_EQ(refused(".version 9.0\n.entry e { ret; }"), "t.ptx:2: found '.entry', expected '.target' after '.version'");
  EXPECT_EQ(refused(".version 9" + target), "t.ptx:1: found '9', expected a version such as 9.0");
  EXPECT_EQ(refused(".version 9.0.1" + target), "t.ptx:1: found '.1', expected '.target' after '.version'");
  EXPECT_EQ(refused(".version 9.0e1" + target), "t.ptx:1: found '9.0e1', expected a version such as 9.0");
  EXPECT_EQ(refused(".version 99999999999.0" + target),
            "t.ptx:1: found '99999999999.0', expected a version such as 9.0");
  EXPECT_EQ(refused(".version 10.0" + target),
            "t.ptx:1: PTX version 10.0 is newer than 9.x (compile for PTX 9.0 or older)");
  EXPECT_EQ(refused(".version 9.0\n.target 90"), "t.ptx:2: found '90', expected a target such as sm_90a");
  EXPECT_EQ(refused(".version 9.0\n.target sm_90a,\n.address_size 64"),
            "t.ptx:3: found '.address_size', expected a target such as sm_90a");
  EXPECT_EQ(refused(".version 9.0" + target + ".address_size 32"),
            "t.ptx:3: address size 32: only 64-bit modules are accepted (compile with 64-bit addresses)");
  EXPECT_EQ(refused(".version 9.0" + target + ".address_size x"), "t.ptx:3: found 'x', expected an address size: 64");
}

TEST(Header, Values) {
  auto m = accepted(".version 8.10 .target sm_90a, debug, texmode_independent .address_size 64");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->versionMajor, 8u);
  EXPECT_EQ(m->versionMinor, 10u);
  EXPECT_EQ(m->targets, (std::vector<std::string_view>{"sm_90a", "debug", "texmode_independent"}));
  EXPECT_EQ(m->addressSize, 64u);
  EXPECT_EQ(accepted(".version 7.0 .target sm_75 .entry e{ret;}")->addressSize, 64u);
}

TEST(Files, LineEndsNulsAndByteOrderMarks) {
  const std::string text = ".version 9.0\n.target sm_75\n.address_size 64\n.entry e // comment\n{\n  ret;\n}";
  std::string crlf;
  for (char ch : text)
    crlf += ch == '\n' ? std::string("\r\n") : std::string(1, ch);
  for (const std::string &variant : {text, text + "\n", crlf, text + std::string(3, '\0'), "\xef\xbb\xbf" + text,
                                     text + "// no newline", text + "/**/"}) {
    auto m = accepted(variant);
    ASSERT_TRUE(m);
    ASSERT_EQ(m->functions.size(), 1u);
    EXPECT_EQ(instructions(m->functions[0])[0]->line, 6u);
  }
  std::string broken = text;
  broken[broken.find("ret")] = '\0';
  EXPECT_EQ(refused(broken), "t.ptx:6: found '\\x00', expected PTX text");
  broken = text;
  broken[broken.find("comment")] = '\0'; // a comment may hold anything
  EXPECT_TRUE(accepted(broken));
  EXPECT_EQ(refused(std::string("\0\0", 2)),
            "t.ptx:1: found the end of the file, expected '.version' at the start of the module");
}

TEST(Limits, Depth) {
  auto times = [](std::string_view piece, unsigned n) {
    std::string out;
    for (unsigned i = 0; i < n; ++i)
      out += piece;
    return out;
  };
  auto body = [](const std::string &text) { return moduleWith("", text); };
  EXPECT_TRUE(accepted(body(times("{", 128) + times("}", 128))));
  EXPECT_EQ(refused(body(times("{", 129) + times("}", 129))), "t.ptx:7: scopes are nested deeper than 128");
  const std::string tooDeep = "t.ptx:7: a constant expression is nested deeper than 64";
  for (auto [open, close] : {std::pair("(", ")"), std::pair("-", ""), std::pair("~(", ")"), std::pair("1?1:", "")}) {
    EXPECT_TRUE(accepted(body("mov.b64 %rd1, " + times(open, 30) + "1" + times(close, 30) + ";"))) << open;
    EXPECT_EQ(refused(body("mov.b64 %rd1, " + times(open, 100000) + "1" + times(close, 100000) + ";")), tooDeep)
        << open;
  }
  EXPECT_TRUE(accepted(body("mov.b64 %rd1, 1" + times("+1", 100000) + ";"))); // a loop, no recursion
  EXPECT_EQ(refused(body(times("{", 1000000))), "t.ptx:7: scopes are nested deeper than 128");
  EXPECT_EQ(refused(body("mov.b64 " + times("{", 1000000))), "t.ptx:7: found '{', expected an element of a vector");
}

TEST(Limits, Arrays) {
  auto module = [](const std::string &text) { return moduleWith(text, ""); };
  EXPECT_TRUE(accepted(module(".global .b8 a[1099511627776];")));
  EXPECT_EQ(refused(module(".global .b8 a[1099511627777];")), "t.ptx:4: 'a' is larger than 1099511627776 bytes");
  EXPECT_EQ(refused(module(".global .b64 a[4294967296][4294967296][4294967296];")),
            "t.ptx:4: 'a' is larger than 1099511627776 bytes");
  std::string many = ".global .b8 a";
  for (int i = 0; i < 17; ++i)
    many += "[1]";
  EXPECT_EQ(refused(module(many + ";")), "t.ptx:4: 'a' has more than 16 dimensions");
  EXPECT_TRUE(accepted(module(".global .b8 a[2][1048576] = {{1}, {2}};")));
  EXPECT_EQ(refused(module(".global .b8 a[2][1048578] = {{1}, {2}};")),
            "t.ptx:4: a row of 'a' leaves out 1048577 initial values, more than 1048576");
  EXPECT_EQ(refused(module(".global .b8 a[][4294967296] = {{}, {}};")),
            "t.ptx:4: a row of 'a' leaves out 4294967296 initial values, more than 1048576");
  EXPECT_EQ(refused(module(".global .b8 a[] = {};")), "t.ptx:4: array 'a' has no size and no initial elements");
}

} // namespace
} // namespace kiln::ptx::test
