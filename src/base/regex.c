#include "base/regex.h"

#include <ctype.h>
#include <string.h>

/* TAKE a character of a set; go on at one place or BOTH; at the START or the END of the text; FOUND. */
enum { TAKE, BOTH, START, END, FOUND };

enum { DEEPEST = 100 };

typedef struct reading {
    const char *at;
    const char *wrong; /* or NULL */
    int depth;
    sf_regex *out;
} reading;

static void read_alternatives(reading *r);

static sf_regex_state *add(reading *r, int kind)
{
    if (r->out->count == SF_REGEX_STATES) {
        r->wrong = "it is too long";
        r->out->count--;
    }
    sf_regex_state *state = &r->out->states[r->out->count++];
    *state = (sf_regex_state){.kind = (uint8_t)kind, .next = {1, 1}};
    return state;
}

/* Makes room for a state in front of those from `first` on: what they say of each other stays true. */
static sf_regex_state *insert(reading *r, int first)
{
    add(r, BOTH);
    sf_regex_state *at = &r->out->states[first];
    memmove(at + 1, at, (size_t)(r->out->count - 1 - first) * sizeof *at);
    *at = (sf_regex_state){.kind = BOTH, .next = {1, 1}};
    return at;
}

static void take(sf_regex_state *state, int c)
{
    state->bits[c / 8] |= (uint8_t)(1 << c % 8);
}

/* "[:alpha:]", after its "[:". */
static bool read_class(reading *r, sf_regex_state *state)
{
    static const struct {
        const char *name;
        int (*has)(int);
    } classes[] = {{"alnum:]", isalnum}, {"alpha:]", isalpha},  {"digit:]", isdigit},
                   {"lower:]", islower}, {"punct:]", ispunct},  {"space:]", isspace},
                   {"upper:]", isupper}, {"xdigit:]", isxdigit}};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strncmp(r->at, classes[i].name, strlen(classes[i].name)) != 0)
            continue;
        r->at += strlen(classes[i].name);
        for (int c = 1; c < 128; c++)
            if (classes[i].has(c))
                take(state, c);
        return true;
    }
    return false;
}

/* After its "[". */
static void read_set(reading *r)
{
    sf_regex_state *state = add(r, TAKE);
    bool negated = *r->at == '^';
    r->at += negated;
    const char *first = r->at;
    while (*r->at && (*r->at != ']' || r->at == first)) {
        if (r->at[0] == '[' && r->at[1] == ':') {
            r->at += 2;
            if (!read_class(r, state)) {
                r->wrong = "it has an unknown class";
                return;
            }
            continue;
        }
        int low = (unsigned char)*r->at++, high = low;
        if (r->at[0] == '-' && r->at[1] && r->at[1] != ']') {
            high = (unsigned char)r->at[1];
            r->at += 2;
        }
        if (high < low)
            r->wrong = "it has a range that goes backwards";
        for (int c = low; c <= high; c++)
            take(state, c);
    }
    if (*r->at++ != ']') {
        r->at--;
        r->wrong = "it has a [ without a ]";
        return;
    }
    for (int b = 0; negated && b < 32; b++)
        state->bits[b] = (uint8_t)~state->bits[b];
}

static void read_group(reading *r)
{
    if (++r->depth > DEEPEST)
        r->wrong = "it has too many ( in each other";
    else
        read_alternatives(r);
    r->depth--;
    if (!r->wrong && *r->at++ != ')')
        r->wrong = "it has a ( without a )";
}

static void read_atom(reading *r)
{
    char c = *r->at++;
    switch (c) {
    case '(':
        read_group(r);
        break;
    case '[':
        read_set(r);
        break;
    case '.':
        memset(add(r, TAKE)->bits, 0xff, sizeof(uint8_t[32]));
        break;
    case '^':
        add(r, START);
        break;
    case '$':
        add(r, END);
        break;
    case '*':
    case '+':
    case '?':
        r->wrong = "it repeats nothing";
        break;
    case '{':
        r->wrong = "it has a {: counts are not known here";
        break;
    case '\\':
        c = *r->at;
        if (!c || isalnum((unsigned char)c)) {
            r->wrong = "\\ is for a character that is no letter and no digit";
            break;
        }
        r->at++;
        take(add(r, TAKE), (unsigned char)c);
        break;
    default:
        take(add(r, TAKE), (unsigned char)c);
        break;
    }
}

static void read_repeated(reading *r)
{
    int first = r->out->count;
    read_atom(r);
    while (!r->wrong && *r->at && strchr("*+?", *r->at)) {
        char c = *r->at++;
        int length = r->out->count - first;
        if (c != '+')
            insert(r, first)->next[1] = (int16_t)(length + (c == '*' ? 2 : 1));
        if (c == '+')
            add(r, BOTH)->next[1] = (int16_t)-length;
        if (c == '*') {
            sf_regex_state *back = add(r, BOTH);
            back->next[0] = back->next[1] = (int16_t) - (length + 1);
        }
    }
}

static void read_alternatives(reading *r)
{
    int first = r->out->count;
    for (;;) {
        while (!r->wrong && *r->at && *r->at != '|' && *r->at != ')')
            read_repeated(r);
        if (r->wrong || *r->at != '|')
            return;
        r->at++;
        int length = r->out->count - first;
        insert(r, first)->next[1] = (int16_t)(length + 2);
        int jump = r->out->count;
        add(r, BOTH);
        read_alternatives(r);
        sf_regex_state *over = &r->out->states[jump];
        over->next[0] = over->next[1] = (int16_t)(r->out->count - jump);
    }
}

const char *sf_regex_read(const char *pattern, sf_regex *out)
{
    reading r = {.at = pattern, .out = out};
    out->count = 0;
    if (strlen(pattern) >= SF_REGEX_CHARACTERS)
        return "it is too long";
    read_alternatives(&r);
    if (!r.wrong && *r.at == ')')
        r.wrong = "it has a ) without a (";
    add(&r, FOUND);
    return r.wrong;
}

/* The states that a text has led to; `stamp` is by state the place at which it was added last. */
typedef struct walk {
    const sf_regex *regex;
    int count, states[SF_REGEX_STATES], stamp[SF_REGEX_STATES];
} walk;

/* Adds a state and what it leads to without a character; whether that is FOUND. */
static bool enter(walk *w, int state, int place, bool at_end)
{
    int waiting[2 * SF_REGEX_STATES], count = 0;
    waiting[count++] = state;
    while (count > 0) {
        state = waiting[--count];
        const sf_regex_state *s = &w->regex->states[state];
        if (w->stamp[state] == place)
            continue;
        w->stamp[state] = place;
        if (s->kind == FOUND)
            return true;
        if (s->kind == TAKE)
            w->states[w->count++] = state;
        if ((s->kind == START && place > 1) || (s->kind == END && !at_end) || s->kind == TAKE)
            continue;
        waiting[count++] = state + s->next[0];
        if (s->next[1] != s->next[0])
            waiting[count++] = state + s->next[1];
    }
    return false;
}

bool sf_regex_finds(const sf_regex *regex, const char *text)
{
    walk walks[2] = {{.regex = regex}, {.regex = regex}};
    walk *now = &walks[0], *then = &walks[1];
    int place = 1;
    if (enter(now, 0, place, !*text))
        return true;
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool at_end = !text[1];
        then->count = 0;
        place++;
        for (int i = 0; i < now->count; i++) {
            const sf_regex_state *s = &regex->states[now->states[i]];
            if ((s->bits[c / 8] >> c % 8 & 1) && enter(then, now->states[i] + 1, place, at_end))
                return true;
        }
        if (enter(then, 0, place, at_end)) /* it may also begin here */
            return true;
        walk *other = now;
        now = then;
        then = other;
    }
    return false;
}
