#include "support/mutate.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "support/json_tree.h"

typedef struct dice {
    uint64_t state;
} dice;

static uint64_t roll(dice *d, uint64_t below)
{
    uint64_t z = d->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return below ? (z ^ z >> 31) % below : 0;
}

/* How many edits: often one, so that much is accepted. */
static uint64_t edits(dice *d)
{
    return roll(d, 2) ? 1 : 1 + roll(d, 4);
}

static const char *const numbers[] = {"0",
                                      "1",
                                      "2",
                                      "3",
                                      "4",
                                      "7",
                                      "8",
                                      "63",
                                      "64",
                                      "65",
                                      "255",
                                      "1000",
                                      "65536",
                                      "1000000",
                                      "2147483647",
                                      "2147483648",
                                      "4294967295",
                                      "4294967296",
                                      "9007199254740993",
                                      "9223372036854775807",
                                      "9223372036854775808",
                                      "18446744073709551615",
                                      "-1",
                                      "-2147483649",
                                      "-9223372036854775808",
                                      "-0.0",
                                      "0.5",
                                      "1e-320",
                                      "1e18",
                                      "1e300",
                                      "-1e300",
                                      "1e999"};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* What stands in strings of plans, schedules and clusters. */
static const char *const words[] = {"R",
                                    "S(0)",
                                    "S(1)",
                                    "S(0,2)",
                                    "S(0,4)",
                                    "S(99)",
                                    "P(+)",
                                    "P(max)",
                                    "At(0)",
                                    "At(1)",
                                    "At(0:0-1,1:2-3)",
                                    "At(63)",
                                    "At(0:0)",
                                    "S(0)At(0,1)",
                                    "[]",
                                    "[R, R]",
                                    "*",
                                    "/",
                                    "..",
                                    "/dev/null",
                                    "inf",
                                    "nan",
                                    "",
                                    "%s",
                                    "\\u0000",
                                    "\\ud800",
                                    "\xff",
                                    "\xc3\xa9",
                                    "(((((((((",
                                    "f0",
                                    "b1",
                                    "x",
                                    "2x3",
                                    "tensor<0xf32>",
                                    "tensor<9999999999x9999999999xf32>",
                                    "-1",
                                    "i",
                                    "auto"};
enum { WORDS = sizeof words / sizeof *words };

/* Texts */

/* Where a word, or one character that is none, ends. */
static size_t word_end(sf_str text, size_t at)
{
    size_t end = at;
    while (end < text.length &&
           (isalnum((unsigned char)text.at[end]) || text.at[end] == '_' || text.at[end] == '.'))
        end++;
    return end > at ? end : at + (at < text.length);
}

static sf_str word_at(dice *d, sf_str text)
{
    size_t at = (size_t)roll(d, text.length);
    while (at > 0 && isalnum((unsigned char)text.at[at]) && isalnum((unsigned char)text.at[at - 1]))
        at--;
    return (sf_str){text.at + at, word_end(text, at) - at};
}

static sf_str line_at(dice *d, sf_str text)
{
    size_t at = (size_t)roll(d, text.length), end;
    while (at > 0 && text.at[at - 1] != '\n')
        at--;
    for (end = at; end < text.length && text.at[end] != '\n'; end++)
        ;
    return (sf_str){text.at + at, end - at + (end < text.length)};
}

static void add_str(sf_buf *out, sf_str text)
{
    if (text.length > 0)
        sf_buf_add(out, text.at, text.length);
}

/* Rows of a tensor, dealt out to two ranks (shard/uneven_partition.h): only so many as there are will do. */
static void add_dealt_rows(dice *d, sf_buf *out)
{
    static const int sizes[] = {2, 3, 4, 8, 10, 16, 32, 48};
    int rows = sizes[roll(d, sizeof sizes / sizeof *sizes)],
        first = 1 + (int)roll(d, (uint64_t)rows - 1);
    sf_buf_printf(out, "At(0:0-%d,1:%d-%d)", first - 1, first, rows - 1);
}

static void add_random_word(dice *d, sf_str text, sf_buf *out)
{
    switch (roll(d, 4)) {
    case 3:
        add_dealt_rows(d, out);
        break;
    case 0:
        sf_buf_puts(out, numbers[roll(d, NUMBERS)]);
        break;
    case 1:
        sf_buf_puts(out, words[roll(d, WORDS)]);
        break;
    default:
        add_str(out, word_at(d, text));
    }
}

/* `part` of the text becomes what the dice say. */
static void edit_part(dice *d, sf_str text, sf_str part, sf_str (*pick)(dice *, sf_str),
                      sf_buf *out)
{
    const char *behind = part.at + part.length, *end = text.at + text.length;
    add_str(out, (sf_str){text.at, (size_t)(part.at - text.at)});
    uint64_t what = roll(d, 6);
    if (what == 0)
        add_random_word(d, text, out);
    if (what == 1 || what == 2)
        add_str(out, part);
    if (what == 2)
        add_str(out, part);
    if (what == 3 || what == 1)
        add_str(out, pick(d, text));
    if (what == 4 && part.length > 0 && isdigit((unsigned char)*part.at))
        sf_buf_puts(out, numbers[roll(d, NUMBERS)]);
    add_str(out, (sf_str){behind, (size_t)(end - behind)});
}

static void edit_text(dice *d, sf_str text, sf_buf *out)
{
    if (text.length == 0) {
        add_random_word(d, text, out);
        return;
    }
    bool lines = memchr(text.at, '\n', text.length) && roll(d, 3) == 0;
    sf_str part = lines ? line_at(d, text) : word_at(d, text);
    edit_part(d, text, part, lines ? line_at : word_at, out);
}

/* Runs `edit` a few times, each on what the last one has made. */
static void repeat(dice *d, sf_str text, void (*edit)(dice *, sf_str, sf_buf *), sf_buf *out)
{
    sf_buf now = {0}, next = {0};
    add_str(&now, text);
    for (uint64_t left = edits(d); left > 0; left--) {
        next.length = 0;
        edit(d, (sf_str){now.text ? now.text : "", now.length}, &next);
        sf_buf swap = now;
        now = next;
        next = swap;
    }
    add_str(out, (sf_str){now.text ? now.text : "", now.length});
    sf_buf_free(&now);
    sf_buf_free(&next);
}

void test_mutate_text(sf_str text, uint64_t seed, sf_buf *out)
{
    dice d = {seed};
    repeat(&d, text, edit_text, out);
}

/* Bytes */

static void edit_bytes(dice *d, sf_str bytes, sf_buf *out)
{
    size_t first = (size_t)roll(d, bytes.length + 1),
           count = (size_t)roll(d, roll(d, 2) ? 9 : bytes.length - first + 1);
    count = count < bytes.length - first ? count : bytes.length - first;
    sf_str before = {bytes.at, first}, part = {bytes.at + first, count},
           behind = {part.at + count, bytes.length - first - count};
    uint64_t what = roll(d, 5);
    add_str(out, before);
    for (size_t i = 0; what == 0 && i < count; i++)
        sf_buf_putc(out, (char)roll(d, 256));
    if (what == 1 && count > 0) {
        sf_buf_putc(out, (char)(part.at[0] ^ 1 << roll(d, 8)));
        add_str(out, (sf_str){part.at + 1, count - 1});
    }
    for (int i = 0; what == 2 && i < 2; i++)
        add_str(out, part);
    if (what != 3) /* cut off */
        add_str(out, behind);
}

void test_mutate_bytes(sf_str bytes, uint64_t seed, sf_buf *out)
{
    dice d = {seed};
    repeat(&d, bytes, edit_bytes, out);
}

/* JSON */

enum { MOST = 20000 }; /* values, where nothing is added any more */

/* A value. Scalars are their text as it will stand in the file, which may be none that is allowed. */
typedef struct tree {
    char open; /* '{', '[' or 0 */
    sf_str text, key;
    size_t count, capacity;
    struct tree **items;
} tree;

static sf_str copy_text(sf_arena *arena, const sf_buf *buf)
{
    return (sf_str){sf_arena_string(arena, buf->text ? buf->text : "", buf->length), buf->length};
}

static void push_item(sf_arena *arena, tree *to, tree *item)
{
    SF_PUSH(arena, to->items, to->count, to->capacity, item);
}

static tree *grow(sf_arena *arena, const sf_json *value)
{
    tree *t = SF_NEW(arena, tree);
    sf_json_kind kind = sf_json_kind_of(value);
    t->open = kind == SF_JSON_OBJECT ? '{' : kind == SF_JSON_ARRAY ? '[' : 0;
    if (!t->open) {
        sf_buf text = {0};
        sf_json_writer writer = {.buf = &text};
        test_json_put(&writer, value);
        t->text = copy_text(arena, &text);
        sf_buf_free(&text);
    }
    for (size_t i = 0; i < sf_json_count(value); i++) {
        bool object = t->open == '{';
        tree *item = grow(arena, object ? sf_json_value_at(value, i) : sf_json_item(value, i));
        if (object)
            item->key = sf_json_key_at(value, i);
        push_item(arena, t, item);
    }
    return t;
}

static void put_tree(const tree *t, sf_buf *out)
{
    if (!t->open) {
        add_str(out, t->text);
        return;
    }
    sf_buf_putc(out, t->open);
    for (size_t i = 0; i < t->count; i++) {
        if (i)
            sf_buf_putc(out, ',');
        if (t->open == '{') {
            sf_json_writer writer = {.buf = out};
            sf_json_put_str(&writer, t->items[i]->key);
            sf_buf_putc(out, ':');
        }
        put_tree(t->items[i], out);
    }
    sf_buf_puts(out, t->open == '{' ? "}\n" : "]");
}

/* A place: an item of a tree. Large lists do not hide what is few: each level is as likely to be the last. */
typedef struct place {
    tree *in;
    size_t at;
} place;

static place pick_place(dice *d, tree *root)
{
    place p = {root, 0};
    for (tree *t = root; t->open && t->count > 0; t = p.in->items[p.at]) {
        p = (place){t, (size_t)roll(d, t->count)};
        if (roll(d, 3) == 0)
            break;
    }
    return p;
}

static tree *pick_tree(dice *d, tree *root)
{
    place p = pick_place(d, root);
    return p.in->count ? p.in->items[p.at] : root;
}

static tree *scalar(sf_arena *arena, const char *text)
{
    tree *t = SF_NEW(arena, tree);
    t->text = sf_str_of(sf_arena_string(arena, text, strlen(text)));
    return t;
}

static bool is_string(const tree *t)
{
    return !t->open && t->text.length >= 2 && t->text.at[0] == '"';
}

static bool is_layout(const tree *t)
{
    return is_string(t) && t->text.length > 2 && t->text.at[1] == '[';
}

/* Another layout over as many axes. */
static void add_layout(dice *d, sf_str old, sf_buf *out)
{
    static const char *const shares[] = {"R",    "R",        "S(0)",        "S(0)",     "S(1)",
                                         "P(+)", "S(0, 16)", "S(0)At(0,1)", "S(1)At(0)"};
    enum { SHARES = sizeof shares / sizeof *shares };
    int depth = 0;
    sf_buf_puts(out, "\"[");
    for (size_t i = 1; i + 1 < old.length; i++) {
        char c = old.at[i];
        depth += (c == '(') - (c == ')');
        if (c != '[' && (c != ',' || depth > 0))
            continue;
        if (c == ',')
            sf_buf_puts(out, ", ");
        if (roll(d, 3) == 0)
            add_dealt_rows(d, out);
        else
            sf_buf_puts(out, shares[roll(d, SHARES)]);
    }
    sf_buf_puts(out, "]\"");
}

static tree *edit_scalar(dice *d, sf_arena *arena, const tree *old)
{
    sf_buf text = {0};
    if (is_layout(old) && roll(d, 2)) {
        add_layout(d, old->text, &text);
    } else if (is_string(old)) {
        sf_buf inner = {0};
        edit_text(d, (sf_str){old->text.at + 1, old->text.length - 2}, &inner);
        sf_buf_putc(&text, '"');
        add_str(&text, (sf_str){inner.text ? inner.text : "", inner.length});
        sf_buf_putc(&text, '"');
        sf_buf_free(&inner);
    } else if (roll(d, 4) == 0) {
        add_str(&text, old->text);
        sf_buf_puts(&text, roll(d, 2) ? "0" : ".5");
    } else if (roll(d, 2) == 0 && old->text.length < 12 && isdigit((unsigned char)*old->text.at)) {
        sf_buf_printf(&text, "%ld", atol(old->text.at) + (roll(d, 2) ? 1 : -1));
    } else {
        sf_buf_puts(&text, numbers[roll(d, NUMBERS)]);
    }
    tree *t = SF_NEW(arena, tree);
    t->text = copy_text(arena, &text);
    sf_buf_free(&text);
    return t;
}

static tree *other_kind(dice *d, sf_arena *arena)
{
    static const char *const others[] = {"null", "true", "false",     "\"\"", "\"x\"",
                                         "0",    "NaN",  "Infinity",  "-1",   "[]",
                                         "{}",   "[[]]", "{\"x\":[]}"};
    return scalar(arena, others[roll(d, sizeof others / sizeof *others)]);
}

static tree *nested(dice *d, sf_arena *arena, tree *inner)
{
    uint64_t most = roll(d, 2) ? 4 : 300;
    for (uint64_t left = 1 + roll(d, most); left > 0; left--) {
        tree *outer = SF_NEW(arena, tree);
        outer->open = '[';
        push_item(arena, outer, inner);
        inner = outer;
    }
    return inner;
}

static void replace_item(place p, tree *with)
{
    if (p.in->count == 0)
        return;
    with->key = p.in->items[p.at]->key;
    p.in->items[p.at] = with;
}

static size_t size_of(const tree *t)
{
    size_t size = 1;
    for (size_t i = 0; i < t->count; i++)
        size += size_of(t->items[i]);
    return size;
}

static tree *copy_tree(sf_arena *arena, const tree *of)
{
    tree *t = SF_NEW(arena, tree);
    *t = (tree){.open = of->open, .text = of->text, .key = of->key};
    for (size_t i = 0; i < of->count; i++)
        push_item(arena, t, copy_tree(arena, of->items[i]));
    return t;
}

static void edit_tree(dice *d, sf_arena *arena, tree *root)
{
    place p = pick_place(d, root);
    if (p.in->count == 0)
        return;
    tree *old = p.in->items[p.at];
    switch (roll(d, 12)) {
    case 0: /* dropped */
        memmove(&p.in->items[p.at], &p.in->items[p.at + 1],
                (p.in->count - p.at - 1) * sizeof *p.in->items);
        p.in->count--;
        break;
    case 1: /* repeated, once or many times */
        for (uint64_t left = roll(d, 8) ? 1 : roll(d, MOST / size_of(old) + 1); left > 0; left--)
            push_item(arena, p.in, copy_tree(arena, old));
        break;
    case 2: { /* swapped */
        size_t other = (size_t)roll(d, p.in->count);
        tree *item = p.in->items[other];
        sf_str key = item->key;
        if (roll(d, 2)) {
            item->key = old->key;
            old->key = key;
        }
        p.in->items[other] = old;
        p.in->items[p.at] = item;
        break;
    }
    case 3: { /* shuffled */
        for (size_t i = p.in->count; i > 1; i--) {
            size_t j = (size_t)roll(d, i);
            tree *item = p.in->items[j];
            p.in->items[j] = p.in->items[i - 1];
            p.in->items[i - 1] = item;
        }
        break;
    }
    case 4: /* another value of the document: a reference to something else */
        replace_item(p, copy_tree(arena, pick_tree(d, root)));
        break;
    case 5:
        replace_item(p, other_kind(d, arena));
        break;
    case 6:
        replace_item(p, nested(d, arena, copy_tree(arena, old)));
        break;
    case 7: /* another name */
        old->key = roll(d, 2) ? pick_tree(d, root)->key : sf_str_of("x");
        break;
    case 8: { /* moved elsewhere */
        place to = pick_place(d, root);
        tree *copy = copy_tree(arena, old);
        if (to.in->open == '{' && roll(d, 2))
            copy->key = sf_str_of("x");
        push_item(arena, to.in, copy);
        break;
    }
    default: /* a scalar, deep inside */
        for (; old->open && old->count > 0; old = p.in->items[p.at])
            p = (place){old, (size_t)roll(d, old->count)};
        if (!old->open)
            replace_item(p, edit_scalar(d, arena, old));
    }
}

bool test_mutate_json(sf_str text, uint64_t seed, sf_buf *out)
{
    dice d = {seed};
    sf_arena arena = {0};
    const sf_json *value;
    if (sf_json_parse(text, "json", &arena, &value, NULL) != SF_OK) {
        sf_arena_free(&arena);
        return false;
    }
    tree *root = grow(&arena, value);
    if (!root->open)
        root = edit_scalar(&d, &arena, root);
    else if (root->count == 0)
        root = other_kind(&d, &arena);
    else
        for (uint64_t left = edits(&d); left > 0 && size_of(root) < MOST; left--)
            edit_tree(&d, &arena, root);
    put_tree(root, out);
    sf_arena_free(&arena);
    return true;
}

void test_mutate_safetensors(sf_str bytes, uint64_t seed, sf_buf *out)
{
    uint64_t length = 0;
    for (size_t i = 0; i < 8 && i < bytes.length; i++)
        length |= (uint64_t)(unsigned char)bytes.at[i] << 8 * i;
    sf_buf header = {0};
    if (seed % 3 == 0 || bytes.length < 8 || length > bytes.length - 8 ||
        !test_mutate_json((sf_str){bytes.at + 8, (size_t)length}, seed, &header)) {
        test_mutate_bytes(bytes, seed, out);
        return;
    }
    for (size_t i = 0; i < 8; i++)
        sf_buf_putc(out, (char)(header.length >> 8 * i));
    add_str(out, (sf_str){header.text ? header.text : "", header.length});
    add_str(out, (sf_str){bytes.at + 8 + length, bytes.length - 8 - (size_t)length});
    sf_buf_free(&header);
}
