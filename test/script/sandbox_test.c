/* Schedules that mean harm. Each ends, soon, with the message that is told of it or with none, and leaves a list that can be used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/machine.h"
#include "base/mem.h"
#include "sheaf/sheaf.h"
#include "support/sanitized.h"

#define STEP "examples/gpt-micro.stablehlo.mlir"

#define SCH "local sch = sheaf.schedule() "
#define MLP SCH "local mlp = sch['layer_?.mlp'] mlp:trace{} "
#define GELU "function(x, b) return gelu(x + b) end"
#define HELD "nothing is applied, undone or found before it returns"
#define LATE "the schedule takes too long"
#define LARGE "the schedule takes too much memory"
#define NONE "attempt to call a nil value"
#define META "a schedule has no metatables"

/* What is refused is said so; NULL: it is good. */
typedef struct attack {
    const char *text, *said;
} attack;

/* Callbacks that change what their caller walks. */
static const attack callbacks[] = {
    {MLP "mlp:find{where = function() sch:undo() return true end}", HELD},
    {MLP "mlp:find{where = function() mlp:find('tanh') return true end}", HELD},
    {MLP "mlp:find{where = function() mlp:find(" GELU ") return true end}", HELD},
    {MLP "mlp:find{where = function() mlp:find{where = function() return true end} end}", HELD},
    {MLP "mlp:find{where = function() mlp:checkpoint() end}", HELD},
    {MLP "mlp:find{where = function() sch:mesh('model=2') end}", HELD},
    {MLP "mlp:find{where = function() sheaf.space(2) end}", HELD},
    {MLP "local g = mlp:find(" GELU ") mlp:find{where = function() mlp:replace(" GELU ", g) end}",
     HELD},
    {MLP "local g = mlp:find(" GELU ") local r = mlp:replace(" GELU ", g, {name = 'n'}) "
         "mlp:find{where = function() r:undo() return true end}",
     HELD},
    {MLP "local g = mlp:find(" GELU ") local r = mlp:replace(" GELU ", g, {name = 'n'}) "
         "mlp:find{where = function() pcall(r.undo, r) return true end}",
     NULL},
    {MLP "local n = 0 mlp:find{where = function() n = n + 1 pcall(mlp.find, mlp, 'a') "
         "pcall(sch.undo, sch) return n % 2 == 0 end} assert(n > 10 and #sch:primitives() == 1)",
     NULL},
    {MLP "mlp:find{where = function() error('mine') end}", "mine"},
    {MLP "mlp:find{where = function() error({}) end}", "an error that is no text, but a table"},
    {MLP "mlp:find{where = function() error() end}", "an error that is no text, but a nil"},
    {MLP "mlp:find{where = function() while true do end end}", LATE},
    {MLP "mlp:find{where = function() local s = 'x' while true do s = s .. s end end}", LARGE},
    {MLP "mlp:find{where = function(o) o.op = nil o.shape[1] = {} o.scope = o return true end}",
     NULL},
    {MLP "local function f() return f() + 1 end mlp:find{where = f}", ""},
    {MLP "mlp:find(function(x, b) sch:undo() return gelu(x + b) end)", HELD},
    {MLP "mlp:find(function(x, b) mlp:find(" GELU ") return gelu(x + b) end)", HELD},
    {MLP "mlp:find(function(x, b) mlp:find('tanh') return gelu(x + b) end)", HELD},
    {MLP "mlp:find(function(x, b) pcall(mlp.find, mlp, " GELU ") return gelu(x + b) end)", NULL},
    {MLP "local g = mlp:find(" GELU
         ") mlp:replace(function(x, b) sch:undo() return gelu(x + b) end, g)",
     HELD},
    {MLP "local g = mlp:find(" GELU ") mlp:replace(function(x, b) mlp:replace(" GELU
         ", g) return x end, g)",
     HELD},
    {MLP "local g = mlp:find(" GELU ") local r = mlp:replace(" GELU ", g, {name = 'a'}) "
         "local h = mlp:find(" GELU
         ") mlp:replace(function(x, b) r:undo() return gelu(x + b) end, h)",
     HELD},
    {MLP "local g = mlp:find(" GELU
         ") mlp:replace(function(x, b) pcall(error, 1) return gelu(x + b) end, g)",
     NULL},
    {MLP "local kept mlp:find(function(x, b) kept = x return gelu(x + b) end) return kept + 1",
     "ops are for functions that are traced"},
    {MLP "local kept mlp:find(function(x, b) kept = x return gelu(x + b) end) "
         "mlp:find(function(x, b) return gelu(kept + b) end)",
     "of a function that was traced before"},
    {MLP "pcall(mlp.find, mlp, function(x) error('x') end) return op.tanh(1)",
     "ops are for functions that are traced"},
    {MLP "local g = mlp:find(" GELU ") local r = mlp:replace(" GELU ", g, {name = 'a'}) "
         "local h = mlp:find(" GELU ") r:undo() mlp:replace(" GELU ", h)",
     "found before the step was changed"},
    {MLP "local g = mlp:find(" GELU ") local old = {} "
         "for i = 1, 8 do local r = mlp:replace(" GELU
         ", g, {name = 'a' .. i}) old[i] = mlp:find(" GELU ") r:undo() end "
         "local r = mlp:replace(" GELU ", g, {name = 'b'}) "
         "for i = 1, 8 do assert(not pcall(mlp.checkpoint, mlp, old[i])) old[i][1]:ops() end",
     NULL},
    {SCH "sheaf.primitive{name = 'p', apply = function(m) m:checkpoint() sch:undo() sch:undo() "
         "sch:undo() end} "
         "sch:mesh('model=2') sch.layer_0:p()",
     "a primitive undoes what it has applied"},
    {SCH "sheaf.primitive{name = 'p', apply = function(m) m:p() end} sch.layer_0:p()",
     "stack overflow"},
    {SCH "sheaf.primitive{name = 'p', check = function(m) m:p() return true end, apply = "
         "function() end} sch.layer_0:p()",
     "stack overflow"},
    {SCH "local p = sch.layer_0:checkpoint() sheaf.primitive{name = 'p', apply = function(m) "
         "p:undo() end} "
         "sch.layer_1:p()",
     "a primitive undoes what it has applied"},
    {SCH "sheaf.primitive{name = 'p', apply = function(m) local a = m:annotate('a', 1) "
         "m:annotate('b', 2) a:undo() end} "
         "local p = sch.layer_0:p() assert(#sch:primitives() == 2) p:undo() "
         "assert(#sch:primitives() == 0)",
     NULL},
    {SCH "sheaf.primitive{name = 'p', apply = function(m) m:annotate('a', 1) error('no') end} "
         "sch:mesh('model=2') assert(not pcall(sch.layer_0.p, sch.layer_0)) "
         "assert(#sch:primitives() == 1)",
     NULL},
    {"local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function(a, b) t[a] = nil t[b] = "
     "{} return a > b end)",
     NULL},
    {"local t = {} for i = 1, 100 do t[i] = i % 7 end table.sort(t, function() return true end) "
     "assert(#t == 100)",
     NULL},
    {"local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function() error('no') end)", "no"},
    {"local t = {} for i = 1, 999 do t[i] = i end for k in pairs(t) do t[k] = nil t[-k] = k t['x' "
     ".. k] = k end",
     NULL},
    {"(('x'):rep(100)):gsub('x', function() return (('x'):rep(100)):gsub('x', function() "
     "error('in') end) end)",
     "in"},
    {"local function f(s) return (s:gsub('.', f)) end f('x')", "stack overflow"},
    {"local t = {1} tune.choice('a', {t, t, print})", NULL},
};

/* Names, metatables, finalizers. */
static const attack names[] = {
    {"sheaf.primitive{name = '__gc', apply = print}", "is no name for a primitive"},
    {"sheaf.primitive{name = '__close', apply = print}", "is no name for a primitive"},
    {"sheaf.primitive{name = '__eq', apply = print}", "is no name for a primitive"},
    {"sheaf.primitive{name = '__index', apply = print}", "is no name for a primitive"},
    {"sheaf.primitive{name = '__name', apply = print}", "is no name for a primitive"},
    {"sheaf.primitive{name = '__metatable', apply = print}", "is no name for a primitive"},
    {"sheaf.primitive{name = '', apply = print}", "is no name for a primitive"},
    {"sheaf.primitive{name = '1a', apply = print}", "is no name for a primitive"},
    {"sheaf.primitive{name = 'a b', apply = print}", "is no name for a primitive"},
    {"sheaf.primitive{name = 'a\\0__gc', apply = print}", "is no name for a primitive"},
    {"sheaf.primitive{name = ('a'):rep(1000), apply = print}", "is no name for a primitive"},
    {"sheaf.primitive{name = 'shard', apply = print}", "there is a primitive \"shard\" already"},
    {"sheaf.primitive{name = 'p', apply = 7}", "apply is a function"},
    {SCH "sheaf.primitive{name = '_ok1', apply = function() end} sch.layer_0:_ok1()", NULL},
    {"setmetatable({}, {__gc = function() while true do end end})", META},
    {"local x <close> = setmetatable({}, {__close = function() while true do end end})", META},
    {"getmetatable('').__index = nil", META},
    {"getmetatable(sheaf.schedule()).__gc = print", META},
    {"local x <close> = sheaf.schedule()", "got a non-closable value"},
    {"local x <close> = sheaf.schedule().layer_0", "got a non-closable value"},
    {"sheaf.schedule().__gc = print", "attempt to index a sheaf.schedule value"},
    {"sheaf.schedule().layer_0.shard = print", "attempt to index a sheaf.module value"},
    {"rawset(sheaf.schedule(), '__gc', print)", "table expected"},
    {"rawset(string, '__gc', print) string.__index = nil", NULL},
    {"string.upper = nil string.format = nil print(('x'):rep(3))", NULL},
    {"return sheaf.schedule().layer_0['__gc']", "has no module \"layer_0/__gc\""},
    {"return sheaf.schedule()['__index']", "has no module \"__index\""},
    {"return sheaf.schedule()[1]", "has no module \"1\""},
    {"return sheaf.schedule()[{}]", "string expected"},
};

/* What takes no instructions of Lua's. */
static const attack endless[] = {
    {"while true do end", LATE},
    {"while true do pcall(function() while true do end end) end", LATE},
    {"while true do xpcall(function() while true do end end, function() while true do end end) end",
     LATE},
    {"xpcall(function() string.rep('', 1 << 60) end, function() while true do end end)", LATE},
    {"for i = 1, 1e9 do pcall(error) end", LATE},
    {"string.find(('a'):rep(60), ('a*'):rep(20) .. 'b')", LATE},
    {"string.match(('a'):rep(5000), ('.-'):rep(6) .. 'b')", LATE},
    {"string.gsub(('a'):rep(3000), ('a-'):rep(5) .. 'b', 'x')", LATE},
    {"for _ in string.gmatch(('a'):rep(3000), ('a-'):rep(5) .. 'b') do end", LATE},
    {"string.find(('('):rep(3000), '%b()' .. ('%b()'):rep(5))", LATE},
    {"string.find(('a'):rep(100000), ('a'):rep(50000) .. 'b', 1, true)", LATE},
    {"string.find(('a'):rep(300), ('(a*)'):rep(10) .. '%1%2%3b')", LATE},
    {"string.rep('', 1 << 60)", LATE},
    {"string.rep('', 1 << 62, '')", LATE},
    {"local t = {} for i = 1, 200000 do t[i] = i end while true do table.unpack(t) end", LATE},
    {"while true do pcall(table.unpack, {}, 1, 900000) end", LATE},
    {"table.unpack({}, 1, 2e6)", "too many results to unpack"},
    {"table.unpack({}, math.mininteger, math.maxinteger)", LATE},
    {"local s = ('x'):rep(4000000) while true do s:upper() end", LATE},
    {"local s = ('x'):rep(4000000) while true do s:lower() s:reverse() end", LATE},
    {"local s = ('x'):rep(4000000) local t = {s:byte(1, 100000)} while true do "
     "string.char(table.unpack(t)) end",
     LATE},
    {"local a, b = ('x'):rep(3000000) .. 'a', ('x'):rep(3000000) .. 'b' while true do local c = a "
     "== b or a < b end",
     LATE},
    {"local a = ('x'):rep(3000000) while true do local c = a .. 'y' end", LATE},
    {"local a = ('1'):rep(3000000) while true do tonumber(a, 10) end", LATE},
    {"local a = ('x'):rep(3000000) while true do string.format('%s%s', a, 'b') end", LATE},
    {"local a = ('\\0'):rep(1000000) while true do string.format('%q', a) end", LATE},
    {"local t = {} for i = 1, 100000 do t[i] = 'x' end while true do table.concat(t) end", LATE},
    {"local t = {} for i = 1, 100000 do t[i] = i end while true do table.insert(t, 1, 0) "
     "table.remove(t, 1) end",
     LATE},
    {"local t = {} for i = 1, 100000 do t[i] = -i end while true do table.sort(t, function(a, b) "
     "return a < b end) end",
     LATE},
    {"local t = {} for i = 1, 100000 do t[i] = -i end while true do table.sort(t) end", LATE},
    {"local t = {} for i = 1, 200000 do t[i] = i end for i = 1, 200000 do t[i] = nil end while "
     "true do next(t) end",
     LATE},
    {"local t = {} for i = 1, 100000 do t['k' .. i] = i end for k in pairs(t) do t[k] = nil end "
     "while true do for k in pairs(t) do end end",
     LATE},
    {"local t = {} for i = 1, 65536 do t['k' .. i] = i end "
     "for i = 1, 1e9 do t['k' .. i] = nil t['k' .. i + 65536] = i end",
     LATE},
    {"local t = {} for i = 1, 200000 do t[i] = i end while true do select('#', table.unpack(t)) "
     "end",
     LATE},
    {"local t = {} for i = 1, 200000 do t[i] = i end while true do math.max(table.unpack(t)) end",
     LATE},
    {"local t = {} for i = 1, 200000 do t[i] = i end while true do local u = {table.unpack(t)} end",
     LATE},
    {"local s = ('a'):rep(2000) while true do s:gsub('a', 'b') end", LATE},
    {"while true do string.format('%99.99f', 1e308) end", LATE},
    {"local a = {} while true do a = {a} end", "the schedule takes too"},
    {"local a = {} while true do a = function() return a end end", "the schedule takes too"},
    {"local s = {} for i = 1, 1e9 do s[i] = {} end", "the schedule takes too"},
    {"local s = 'x' while true do s = s .. s end", LARGE},
    {"local ok while true do ok = pcall(function() local s = 'x' while true do s = s .. s end end) "
     "end",
     "the schedule takes too"},
    {"string.rep('x', 1 << 40)", "the schedule takes too"},
    {"string.rep('x', 1 << 30)", "the schedule takes too"},
    {"local t = {} for i = 1, 700 do t[i] = ('x'):rep(100000) .. i end table.concat(t, "
     "('y'):rep(100000))",
     "the schedule takes too"},
    {"local t = table.pack(table.unpack({}, 1, 500000)) while true do t[#t + 1] = {t} end",
     "the schedule takes too"},
    {"goto a ::a:: goto a", LATE},
    {"repeat until false", LATE},
    {"for i = 1, math.huge do end", LATE},
    {"local function f() return f() end f()", LATE},
    {"for i = 1, 1e9 do print() end", LATE},
    {"print(('x'):rep(10000000))", LATE},
};

/* Deep, not long. */
static const attack deep[] = {
    {"local function f() return f() + 1 end f()", ""}, /* of memory, or of the stack */
    {"local function f() return pcall(f) end f()", NULL},
    {"local function f(...) return select('#', pcall(f, 1, ...)) end f()", NULL},
    {"local function f() return xpcall(f, f) end f()", NULL},
    {"local function f() error(f) end xpcall(f, function(e) return e() end)", NULL},
    {"local function g() return select(2, pcall(g)) .. 'x' end while true do g() end", "s"},
    {"local function f(t) table.sort(t, function(a, b) f({2, 1}) return a < b end) end f({2, 1})",
     "stack overflow"},
    {"local s = ('('):rep(100) .. 'x' .. (')'):rep(100) return s:find(s)", "too many captures"},
    {"return ('a'):rep(300000):find(('a?'):rep(300000))", LATE},
    {"return ('a'):rep(1000):match('(.-)%1b')", LATE},
    {"return ('x'):find(('%'))", "malformed pattern"},
    {"return ('x'):find('[')", "malformed pattern"},
    {"return ('x'):find('%f')", "missing '['"},
    {"return ('x'):find('%b')", "missing arguments to '%b'"},
    {"return ('x'):find('()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()')",
     "too many captures"},
    {"string.format(('%d'):rep(300), 1)", "no value"},
    {"string.format('%99999d', 1)", "invalid conversion"},
    {"string.format('%.99999f', 1)", "invalid conversion"},
    {"string.format('%', 1)", "invalid conversion"},
    {"string.format('%', {})", "invalid conversion"},
    {"string.format(('%0'):rep(100), 1)", "invalid conversion"},
    {"string.format('%y', 1)", "invalid conversion"},
    {"string.format('%*d', 1, 2)", "invalid conversion"},
    {"string.format('%n', 1)", "invalid conversion"},
};

/* Nothing but the step, and no address. */
static const attack reach[] = {
    {"return string.format('%p', {})", "a schedule sees no addresses"},
    {"return string.format('%%%5p', print)", "a schedule sees no addresses"},
    {"return string.format('%-20p', 'x')", "a schedule sees no addresses"},
    {"for _, v in ipairs{{}, print, sheaf.schedule(), sheaf.schedule().layer_0, op, string.format} "
     "do "
     "assert(not tostring(v):find('0x') and not string.format('%s %10s', v, v):find('0x'), "
     "tostring(v)) end",
     NULL},
    {"return tostring(sheaf.space(2)):find('0x') and error('found')", NULL},
    {MLP "mlp:find(function(x) assert(not tostring(x):find('0x')) assert(not string.format('%s', "
         "x):find('0x')) "
         "return op.tanh(x) end)",
     NULL},
    {MLP "local g = mlp:find('tanh') assert(not tostring(g[1]):find('0x'))", NULL},
    {SCH "sch.layer_0:annotate('where', {})", "a text, a number or a truth value is kept"},
    {SCH "sch.layer_0:annotate('where', print)", "a text, a number or a truth value is kept"},
    {SCH "sch.layer_0:annotate('where')", "a text, a number or a truth value is kept"},
    {SCH "sch.layer_0:annotate('a', 1.5) sch.layer_0:annotate('b', true) "
         "assert(sch:primitives()[2] == 'layer_0: annotate b = true', sch:primitives()[2])",
     NULL},
    {MLP "for i = 1, 24 do local _, e = pcall(mlp.find, mlp, function(x) "
         "return op.tanh(x, {['a' .. i] = true, ['b' .. i] = {1.5}}) end) "
         "assert(e:find('table expected'), e) end",
     NULL},
    {MLP "local found = mlp:find('tanh') for i = 1, 24 do local _, e = pcall(mlp.replace, mlp, "
         "function(x) return op.tanh(x) end, found, {['b' .. i] = 1, ['a' .. i] = 1, [print] = 1}) "
         "assert(e:find('have an order'), e) _, e = pcall(mlp.replace, mlp, "
         "function(x) return op.tanh(x) end, found, {['b' .. i] = 1, ['a' .. i] = 1}) "
         "assert(e:find('\"a' .. i .. '\"'), e) end",
     NULL},
    {"for i = 1, 24 do local _, e = pcall(pairs, {[{}] = 1, [print] = 1, [error] = 1}) "
     "local _, f = pcall(next, {[{}] = 1, [print] = 1, [sheaf.schedule()] = 1}) "
     "assert(not (e .. f):find('function') and not (e .. f):find('userdata'), e) end",
     NULL},
    {"assert(tostring{} == 'table' and tostring(print) == 'function' and tostring(1.5) == '1.5')",
     NULL},
    {"for k in pairs{[{}] = 1, [print] = 2} do end", "have an order"},
    {"next{[print] = 2}", "have an order"},
    {"local s = '' for k, v in pairs{b = 1, a = 2, [2] = 3, [1] = 4, [true] = 5, [false] = 6, "
     "[0.5] = 7, [-1] = 8} do "
     "s = s .. tostring(k) .. v end assert(s == '-180.57142' .. '3' .. 'a2b1false6true5' or s == "
     "'-180.571423a2b1false6true5', s)",
     NULL},
    {"local t, n = {3, 1, x = 2}, 0 local k = next(t) while k ~= nil do n = n + 1 k = next(t, k) "
     "end assert(n == 3)",
     NULL},
    {"local t = {} for i = 1, 500 do t[i] = {(i * 7) % 10, i} end table.sort(t, function(a, b) "
     "return a[1] < b[1] end) "
     "for i = 2, 500 do local a, b = t[i - 1], t[i] assert(a[1] < b[1] or (a[1] == b[1] and a[2] < "
     "b[2])) end",
     NULL},
    {"local t = {5, 2, 8, 1} table.sort(t) assert(table.concat(t, ' ') == '1 2 5 8')", NULL},
    {"table.sort{1, 'x', {}}", "attempt to compare"},
    {"table.sort({1, 2}, 7)", "function expected"},
    {"load('x = 1')", NONE},
    {"load(string.dump(print))", NONE},
    {"loadstring('x')", NONE},
    {"dofile('/etc/passwd')", NONE},
    {"loadfile('/etc/passwd')", NONE},
    {"require('os')", NONE},
    {"collectgarbage('count')", NONE},
    {"warn('@on')", NONE},
    {"os.exit(1)", "attempt to index a nil value (global 'os')"},
    {"io.popen('id')", "attempt to index a nil value (global 'io')"},
    {"debug.getregistry()", "attempt to index a nil value (global 'debug')"},
    {"package.loadlib('x', 'y')", "attempt to index a nil value (global 'package')"},
    {"coroutine.wrap(print)()", "attempt to index a nil value (global 'coroutine')"},
    {"utf8.char(1)", "attempt to index a nil value (global 'utf8')"},
    {"math.random()", "attempt to call a nil value"},
    {"string.dump(print)", "attempt to call a nil value"},
    {"string.pack('i', 1)", "attempt to call a nil value"},
    {"table.move({}, 1, 1 << 60, 2)", "attempt to call a nil value"},
    {"\27Lua", "unexpected symbol"},
    {"sheaf.plugin('./x.so')", "loads no files"},
    {MLP "mlp:replace('./x.mlir', mlp:find('tanh'))", "reads no files"},
    {SCH "sch:passes('./x.so')", "pass"},
    {SCH "sch:passes('/etc/passwd')", "pass"},
    {SCH "sch:schedule('/etc/passwd')", ""},
    {"error(setmetatable)", "an error that is no text, but a function"},
    {"error(('x'):rep(100000))", "xxx"},
    {"error('a\\0b')", "a"},
    {"error('is ' .. tostring(0 / 0))", "is nan"},
    {"error(('is %s'):format(0 / 0))", "is nan"},
    {"error('%s%n%p')", "%s%n%p"},
    {"local x = 1\ngelu(x)", "s:2: error: ops are for functions that are traced"},
    {MLP "\nmlp:find(function(x) return gelu('a') end)", "s:2: error: attempt to mul"},
};

/* Regular expressions. */
static const attack expressions[] = {
    {MLP "mlp:find('a' .. ('+'):rep(198))", NULL},
    {MLP "mlp:find(('('):rep(90) .. 'a' .. (')+'):rep(90) )", "is no regular expression"},
    {MLP "mlp:find(('('):rep(60) .. 'a' .. (')*'):rep(60))", NULL},
    {MLP "mlp:find('(((a*)*)*)*$')", NULL},
    {MLP "mlp:find('(.*.*.*.*.*.*.*.*.*.*.*)*x')", NULL},
    {MLP "mlp:find('(a|aa|aaa|.|..)+$')", NULL},
    {MLP "mlp:find('(')", "a ( without a )"},
    {MLP "mlp:find(')')", "a ) without a ("},
    {MLP "mlp:find('*')", "it repeats nothing"},
    {MLP "mlp:find('a|*')", "it repeats nothing"},
    {MLP "mlp:find('[a')", "a [ without a ]"},
    {MLP "mlp:find('[')", "a [ without a ]"},
    {MLP "mlp:find('[^')", "a [ without a ]"},
    {MLP "mlp:find('[z-a]')", "goes backwards"},
    {MLP "mlp:find('[[:nothing:]]')", "unknown class"},
    {MLP "mlp:find('\\\\')", "\\ is for a character"},
    {MLP "mlp:find('\\\\1')", "\\ is for a character"},
    {MLP "mlp:find('a{1000}{1000}')", "counts are not known here"},
    {MLP "mlp:find(('('):rep(150))", "too many ("},
    {MLP "mlp:find(('a'):rep(200))", "it is too long"},
    {MLP "mlp:find(('a'):rep(1e6))", "it is too long"},
    {MLP "for i = 1, 1e9 do mlp:find(('a?'):rep(99)) end", LATE},
    {MLP
     "mlp:find('') mlp:find('|') mlp:find('()') mlp:find('^$') mlp:find('$^') mlp:find('^*a$+')",
     NULL},
    {MLP "assert(#mlp:find('/tanh$') == 2 and #mlp:find('^layer_[0-9]/mlp/[[:alpha:]]+$') > 0 and "
         "#mlp:find('\\\\.') == 0)",
     NULL},
};

/* What the library keeps, and what it walks. */
static const attack library[] = {
    {SCH "for i = 1, 1e9 do sch.layer_0:annotate('n' .. i, ('x'):rep(3000)) end",
     "the schedule takes too"},
    {SCH "for i = 1, 1e9 do sch.layer_0:annotate('n' .. i, 'x'):undo() end",
     "the schedule takes too"},
    {SCH "for i = 1, 500 do sch.layer_0:annotate('n' .. i, 'x') end "
         "local p = sch.layer_0:annotate('n', 'x') for i = 1, 1e9 do p = p, p:undo() "
         "sch.layer_1:annotate('a', i) "
         "p = sch.layer_0:annotate('n', 'x') end",
     "the schedule takes too"},
    {MLP "local g = mlp:find(" GELU ") for i = 1, 1e9 do mlp:replace(" GELU
         ", g) g = mlp:find(" GELU ") end",
     "the schedule takes too"},
    {MLP "local g = mlp:find(" GELU ") for i = 1, 1e9 do mlp:replace(" GELU
         ", g, {name = 'a' .. i}):undo() end",
     "the schedule takes too"},
    {MLP "for i = 1, 1e9 do mlp:find('.') end", "the schedule takes too"},
    {MLP "for i = 1, 1e9 do mlp:find{where = function() return true end} end",
     "the schedule takes too"},
    {SCH "for i = 1, 1e9 do sch['*']:trace{leaves = {'l' .. i}} end", "the schedule takes too"},
    {SCH "sch:mesh('model=2') for i = 1, 1e9 do sch['layer_?.mlp.up']:shard('kernel', 1) "
         "sch['*']:sync() end",
     ""},
    {SCH "return #sch[('*a'):rep(2000)]", "has no module"},
    {SCH "for i = 1, 1e9 do pcall(sch.modules, sch, ('*'):rep(1000)) end",
     "the schedule takes too"},
    {SCH "local s = sheaf.space(2) for i = 1, 1e9 do s:order({'layer_0'}, {'layer_1'}) end", ""},
    {SCH "sheaf.space(1 << 40)", ""},
    {SCH "local s = sheaf.space(2) s:assign('layer_0', {1 << 40})", "too large"},
    {SCH "local s = sheaf.space(2) s:assign('layer_0', {}) ", "name some devices"},
    {SCH "local s = sheaf.space(2) s:trans('*', 'batch', -1)", ""},
    {SCH "sch:mesh('model=999999999999')", ""},
    {SCH "sch:mesh{{'model', 1 << 62}}", ""},
    {SCH "sch:mesh{{'m', 2}, {'m', 2}}", ""},
    {SCH "sch:mesh(('a=1,'):rep(100000) .. 'b=1')", "more than"},
    {SCH "sch:mesh('model=2') sch.wte:shard('embedding', 1 << 40)", "so many dimensions"},
    {SCH "sch:mesh('model=2') sch.wte:shard('embedding', -3)", "has no dimension -3"},
    {SCH "sch:mesh('model=2') sch.wte:shard('embedding', -999)", "has no dimension -999"},
    {SCH "sch:mesh('model=2') sch.wte:shard('embedding', 0.5)", "integer representation"},
    {SCH "sch:verify(1 << 40)", "so many steps"},
    {SCH "sch:mesh('model=2') sch:verify(1) sch:verify(1000)", LATE},
    {SCH "sch.layer_0.shard(1, 2, 3)", "sheaf.module expected"},
    {SCH "sch.layer_0.shard(sch, 'kernel', 1)", "sheaf.module expected"},
    {SCH "local p = sch.layer_0:checkpoint() p.undo(sch.layer_0)", "sheaf.primitive expected"},
    {SCH "local p = sch.layer_0:checkpoint() p:undo() p:undo() p:undo()", NULL},
    {SCH "sch:undo()", "nothing to undo"},
    {MLP "mlp:find(function(...) return 1 end)", "a function of tensors that it names"},
    {MLP "mlp:find(function() return 1 end)", "a function of tensors that it names"},
    {MLP "mlp:find(function(x) return x end)", "makes something by an op"},
    {MLP "mlp:find(function(x) return end)", "returns what it computes"},
    {MLP "mlp:find(function(x) return 0/0 end)", "makes something by an op"},
    {MLP "mlp:find(function(x) for i = 1, 1e6 do x = x + i end return x end)", "at most 256"},
    {MLP "mlp:find(function(x) return table.unpack({x, x, x}, 1, 1000) end)",
     "returns what it computes"},
    {MLP "mlp:find(function(x) return op.slice(x, {start_indices = {1 << 62}, limit_indices = {-1 "
         "<< 62}}) end)",
     NULL},
    {MLP "mlp:find(function(x) return op.tanh(x, {shape = {-1, 1 << 62}, dtype = 'f32'}) end)", ""},
    {MLP "mlp:find(function(x) return op.tanh(x, {dtype = 'nonsense'}) end)", ""},
    {MLP "mlp:find(function(x) return op['while'](x) end)", "there is no op"},
    {MLP "mlp:find(function(x) return op[('x'):rep(1e6)](x) end)", "there is no op"},
    {MLP "mlp:find(function(x) return op.concatenate(table.unpack({x}, 1, 1000)) end)", ""},
    {MLP "mlp:find(function(a,b,c,d,e,f,g,h) return (a+b)*(c+d)+(e+f)*(g+h) end)", NULL},
    {MLP "local g = mlp:find('tanh') mlp:replace(function(x) return op.reshape(x, {shape = {1 << "
         "40, 1 << 40}}) end, g)",
     ""},
    {MLP "local g = mlp:find('tanh') mlp:replace(function(x) return op.broadcast_in_dim(x, "
         "{broadcast_dimensions = {-1, 99}, "
         "shape = {4, 4}}) end, g)",
     ""},
    {MLP "local g = mlp:find('tanh') mlp:replace(function(x) return op.pad(x, 0, {edge_padding_low "
         "= {1 << 60, 0, 0}, "
         "edge_padding_high = {1 << 60, 0, 0}, interior_padding = {1 << 60, 0, 0}}) end, g)",
     ""},
    {MLP "local g = mlp:find('tanh') mlp:replace(function(x) return op.iota({shape = {1 << 31, 1 "
         "<< 31}, dtype = 'f32'}) end, g)",
     ""},
    {MLP "local g = mlp:find('tanh') for i = 1, 17 do g[#g + 1] = g[1] end mlp:replace(function(x) "
         "return op.tanh(x) end, g)",
     ""},
    {MLP "local g = mlp:find('tanh') mlp:checkpoint({g[1], 7})", "sheaf.subgraph expected"},
    {MLP "local g = mlp:find('tanh') mlp:checkpoint(g) mlp:replace(function(x) return op.tanh(x) "
         "end, g)",
     "replace first, then find and checkpoint"},
    {"tune.choice('x', {})", "a list of 1 to 1000"},
    {"tune.int('x', 0, 1 << 62, 1)", ""},
    {"tune.int('x', 1 << 62, -1 << 62, -1)", ""},
    {"tune.int(('x'):rep(1e6), 0, 1)", ""},
};

static sf_graph *graph;
static bool without_lua;
static int failures;

static int set_up(void **state)
{
    (void)state;
    sf_primitives *list;
    sf_console *console = NULL;
    if (sf_load(STEP, NULL, NULL, &graph) != SF_OK ||
        sf_primitives_new(graph, NULL, &list) != SF_OK)
        return 1;
    without_lua = sf_console_new("s", NULL, list, NULL, &console) == SF_EUNSUPPORTED;
    sf_console_free(console);
    sf_primitives_free(list);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sf_graph_free(graph);
    return 0;
}

static void blame(const attack *a, const char *what, const char *said)
{
    failures++;
    print_error("%s\n  %s: %s\n  expected: %s\n", a->text, what, said,
                a->said ? a->said : "nothing");
}

/* Whether it ends at any limit of instructions. */
static bool is_endless(const attack *a)
{
    return a->said && strncmp(LATE, a->said, strlen(a->said)) == 0 && *a->said;
}

static void run(const attack *a)
{
    sf_primitives *list;
    sf_console *console;
    sf_plan *plan = NULL;
    sf_script_options options = {.size = sizeof options,
                                 .instructions = is_endless(a) && test_short() ? 1000000 : 5000000,
                                 .memory = 64 << 20,
                                 .seconds = test_sanitized() ? 20 : 5,
                                 .ranks = 2};
    sf_diag *diag = sf_diag_new();
    double start = sf_now();
    assert_int_equal(sf_primitives_new(graph, NULL, &list), SF_OK);
    assert_int_equal(sf_console_new("s", &options, list, diag, &console), SF_OK);
    sf_status status = sf_console_run(console, a->text, strlen(a->text), diag);
    char said[4096];
    snprintf(said, sizeof said, "%s",
             status == SF_OK ? "" : sf_diag_text(diag, sf_diag_count(diag) - 1));
    bool either = a->said && !*a->said;
    if (!either && ((status == SF_OK) != !a->said || (a->said && !strstr(said, a->said))))
        blame(a, "is told", said);
    if (strstr(said, "0x"))
        blame(a, "shows an address", said);
    sf_diag_clear(diag);
    sf_console_free(console);
    if (sf_primitives_count(list) < 100)
        sf_primitives_pin(list, &(sf_plan_spec){.size = sizeof(sf_plan_spec), .ranks = 2}, diag,
                          &plan);
    sf_plan_free(plan);
    while (sf_primitives_count(list) > 0)
        assert_int_equal(sf_primitives_undo(list, -1, diag), SF_OK);
    sf_primitives_free(list);
    sf_diag_free(diag);
    double took = sf_now() - start;
    if (took > 3 * options.seconds)
        blame(a, "takes too long", said);
}

static void run_all(const attack *attacks, size_t count)
{
    failures = 0;
    if (without_lua)
        skip();
    size_t before = sf_mem_live();
    for (size_t i = 0; i < count; i++)
        run(&attacks[i]);
    assert_int_equal(sf_mem_live(), before);
    assert_int_equal(failures, 0);
}

#define TEST(table)                                                                                \
    static void test_##table(void **state)                                                         \
    {                                                                                              \
        (void)state;                                                                               \
        run_all(table, sizeof table / sizeof *table);                                              \
    }

TEST(callbacks)
TEST(names)
TEST(endless)
TEST(deep)
TEST(reach)
TEST(expressions)
TEST(library)

static sf_status use_script(void)
{
    static const char text[] = MLP "sch:mesh('model=2') sch.layer_0.mlp.up:shard('kernel', 1) "
                                   "mlp:replace(" GELU ", mlp:find(" GELU "), {name = 'n'})";
    sf_primitives *list;
    sf_console *console = NULL;
    sf_status status = sf_primitives_new(graph, NULL, &list);
    if (status != SF_OK)
        return status;
    status = sf_console_new("s", NULL, list, NULL, &console);
    if (status == SF_OK)
        status = sf_console_run(console, text, sizeof text - 1, NULL);
    sf_console_free(console);
    sf_primitives_free(list);
    return status;
}

/* The machine's memory is no fault of the schedule. */
static void test_no_memory(void **state)
{
    (void)state;
    sf_status status = SF_ENOMEM;
    if (without_lua)
        skip();
    for (long n = 0; status != SF_OK; n += n / 4 + 1) {
        size_t before = sf_mem_live();
        sf_mem_fail_after(n);
        status = use_script();
        sf_mem_fail_after(-1);
        assert_true(status == SF_OK || status == SF_ENOMEM);
        assert_int_equal(sf_mem_live(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_callbacks), cmocka_unit_test(test_names),
        cmocka_unit_test(test_endless),   cmocka_unit_test(test_deep),
        cmocka_unit_test(test_reach),     cmocka_unit_test(test_expressions),
        cmocka_unit_test(test_library),   cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
