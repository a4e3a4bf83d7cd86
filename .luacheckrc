-- The scripts run inside Redis (Lua 5.1) and inside miniredis (gopher-lua). Only what behaves alike in both is known here:
-- no cjson, cmsgpack, struct or bit, and nothing of os, io, print or require, which miniredis has and Redis refuses.
stds.redis = {
  read_globals = {
    "ARGV", "KEYS", "error", "ipairs", "next", "pairs", "pcall", "select", "tonumber", "tostring", "type", "unpack",
    math = { fields = { "abs", "ceil", "floor", "huge", "max", "min" } },
    redis = { fields = { "call", "error_reply", "pcall", "sha1hex", "status_reply" } },
    string = { fields = { "byte", "char", "find", "format", "gmatch", "gsub", "len", "lower", "match", "rep", "sub", "upper" } },
    table = { fields = { "concat", "insert", "remove", "sort" } },
  },
}
std = "redis"
max_line_length = 120
