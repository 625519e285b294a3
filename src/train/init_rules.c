/* The language of initialisation rules, and which rule is for which parameter. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "ir/name.h"
#include "op/op.h"
#include "train/init.h"

static const struct word {
    const char *name;
    sf_init_kind kind;
    double scale;
    bool takes, needs; /* a number after a colon */
} words[] = {
    {"default", SF_INIT_DEFAULT, 1, false, false},   {"normal", SF_INIT_NORMAL, 0, true, true},
    {"truncated", SF_INIT_TRUNCATED, 0, true, true}, {"uniform", SF_INIT_UNIFORM, 0, true, true},
    {"constant", SF_INIT_CONSTANT, 0, true, true},   {"zeros", SF_INIT_CONSTANT, 0, false, false},
    {"ones", SF_INIT_CONSTANT, 1, false, false},     {"fan_in", SF_INIT_FAN_IN, 1, true, false},
    {"lecun", SF_INIT_FAN_IN, 1, true, false},       {"xavier", SF_INIT_XAVIER, 1, true, false},
    {"glorot", SF_INIT_XAVIER, 1, true, false},      {"he", SF_INIT_HE, 1, false, false},
};

static const struct word *find_word(sf_str name)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (sf_str_is(name, words[i].name))
            return &words[i];
    return NULL;
}

/* Cuts `text` at the first `mark`; the text after it goes to *rest, which is empty without one. */
static sf_str cut_rule(sf_str text, char mark, sf_str *rest)
{
    const char *at = text.length ? memchr(text.at, mark, text.length) : NULL;
    size_t length = at ? (size_t)(at - text.at) : text.length;
    *rest = at ? (sf_str){at + 1, text.length - length - 1} : (sf_str){text.at + length, 0};
    return (sf_str){text.at, length};
}

bool sf_init_is_rules(const char *text)
{
    sf_str rest, first = cut_rule(sf_str_of(text), ',', &rest);
    if (memchr(first.at, '=', first.length))
        cut_rule(first, '=', &first);
    return find_word(cut_rule(first, ':', &rest)) != NULL;
}

bool sf_init_number(sf_str text, double *out)
{
    size_t at = 0, digits = 0;
    if (at < text.length && (text.at[at] == '-' || text.at[at] == '+'))
        at++;
    for (; at < text.length && strchr("0123456789.", text.at[at]); at++)
        digits += text.at[at] != '.';
    size_t points = 0;
    for (size_t i = 0; i < at; i++)
        points += text.at[i] == '.';
    if (digits == 0 || points > 1)
        return false;
    if (at < text.length && (text.at[at] == 'e' || text.at[at] == 'E')) {
        int64_t exponent;
        sf_str tail = {text.at + at + 1, text.length - at - 1};
        if (tail.length > 1 && tail.at[0] == '+')
            tail = (sf_str){tail.at + 1, tail.length - 1};
        if (!sf_number_int(tail, &exponent))
            return false;
        at = text.length;
    }
    *out = sf_number_double(text);
    return at == text.length && isfinite(*out);
}

static sf_status parse_rule(sf_str text, sf_arena *arena, sf_diag *diag, sf_init_rule *out)
{
    sf_str number, rule = text;
    if (text.length && memchr(text.at, '=', text.length)) {
        sf_str pattern = cut_rule(text, '=', &rule);
        out->pattern = sf_arena_string(arena, pattern.at, pattern.length);
    }
    bool has_number = rule.length && memchr(rule.at, ':', rule.length);
    sf_str name = cut_rule(rule, ':', &number);
    const struct word *word = find_word(name);
    if (!word) {
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there is no rule '%.*s' to initialise by",
                SF_STR_ARGS(name));
        sf_hint(diag, "rules: normal:STD, truncated:STD, uniform:LIMIT, constant:VALUE, zeros, "
                      "ones, fan_in, xavier, he, default");
        return SF_EUSAGE;
    }
    out->kind = word->kind;
    out->scale = word->scale;
    if (has_number && !word->takes)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the rule '%s' takes no number", word->name);
    if (!has_number && word->needs)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the rule '%s' needs a number: %s:0.02",
                       word->name, word->name);
    if (has_number && !sf_init_number(number, &out->scale))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "'%.*s' is no number for the rule '%s'",
                       SF_STR_ARGS(number), word->name);
    return SF_OK;
}

sf_status sf_init_parse(const char *text, sf_arena *arena, sf_diag *diag, sf_init_rules *out)
{
    size_t capacity = 0, count = 0;
    *out = (sf_init_rules){0};
    if (!text)
        return SF_OK;
    sf_str rest = sf_str_of(text);
    do {
        sf_str item = cut_rule(rest, ',', &rest);
        sf_init_rule rule = {0};
        SF_TRY(parse_rule(item, arena, diag, &rule));
        SF_PUSH(arena, out->at, count, capacity, rule);
    } while (rest.length > 0 && count < 10000);
    out->count = (int)count;
    return SF_OK;
}

static bool is_listed_name(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(word, *list) == 0)
            return true;
    return false;
}

static bool has_part(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

/* The default rule of a parameter, by its name and its shape. */
static sf_init_rule by_default(const char *name, const sf_type *type)
{
    static const char *const zeros[] = {"bias", "b", "beta", "mean", "running_mean", "shift", NULL};
    static const char *const ones[] = {"scale",    "gamma",       "g",    "var",
                                       "variance", "running_var", "norm", NULL};
    const char *last = sf_name_last(name);
    bool norm = has_part(name, "norm") || has_part(name, "ln_") || has_part(name, "/ln");
    if (is_listed_name(last, zeros) || has_part(last, "bias"))
        return (sf_init_rule){.kind = SF_INIT_CONSTANT, .scale = 0};
    if (is_listed_name(last, ones) || (type->rank <= 1 && (norm || strcmp(last, "weight") == 0)))
        return (sf_init_rule){.kind = SF_INIT_CONSTANT, .scale = 1};
    if (type->rank <= 1)
        return (sf_init_rule){.kind = SF_INIT_CONSTANT, .scale = 0};
    if (has_part(name, "embed") || has_part(name, "wte") || has_part(name, "wpe"))
        return (sf_init_rule){.kind = SF_INIT_NORMAL, .scale = 0.02};
    return (sf_init_rule){.kind = SF_INIT_FAN_IN, .scale = 1};
}

sf_init_rule sf_init_choose(const sf_graph *graph, uint32_t index, const char *name,
                            const sf_init_rules *rules)
{
    sf_init_rule found = by_default(name, sf_argument_type(graph, index));
    const sf_init_rule *wide = NULL;
    for (int i = 0; i < rules->count; i++) {
        const sf_init_rule *rule = &rules->at[i];
        if (!rule->pattern)
            wide = wide ? wide : rule;
        else if (sf_name_matches(rule->pattern, name))
            return rule->kind == SF_INIT_DEFAULT
                       ? (sf_init_rule){rule->pattern, found.kind, found.scale}
                       : *rule;
    }
    if (wide && wide->kind != SF_INIT_DEFAULT && found.kind != SF_INIT_CONSTANT)
        return *wide;
    return found;
}
