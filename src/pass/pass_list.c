#include <math.h>
#include <string.h>

#include "base/nearest.h"
#include "base/number.h"
#include "base/units.h"
#include "pass/passes.h"

static const sf_program_pass passes[] = {
    {.name = "fsdp",
     .about = "gather sharded state right before its first use and free it after the last; "
              "reduce gradients as soon as they are complete",
     .needs = "",
     .provides = "gathers",
     .aim = SF_PASS_TO_BEGIN,
     .run = sf_pass_fsdp},
    {.name = "prefetch",
     .about = "start gathers as early as memory allows, and join them where that is faster",
     .needs = "gathers",
     .provides = "",
     .aim = SF_PASS_FOR_TIME,
     .variants = 12,
     .hides = true,
     .options = {{"group", true, (double)NAN,
                  "largest size gathered ahead at a time; by default several are tried"},
                 {"alpha", false, 1.5,
                  "join two gathers that take more than NUMBER times as long separately"}},
     .run = sf_pass_prefetch},
    {.name = "unshard",
     .about = "keep gathered tensors where memory is left: for the backward pass, and across "
              "micro-batches",
     .needs = "gathers",
     .provides = "",
     .aim = SF_PASS_FOR_TIME,
     .variants = SF_UNSHARD_WAYS,
     .run = sf_pass_unshard},
    {.name = "defer-gradient-readers",
     .about = "move readers of reduced gradients later, so that reductions run beside compute",
     .needs = "",
     .provides = "",
     .aim = SF_PASS_FOR_TIME,
     .variants = SF_DEFER_WAYS,
     .run = sf_pass_defer_gradient_readers},
    {.name = "overlap",
     .about = "split a product and its collective into chunks that run at the same time",
     .needs = "",
     .provides = "",
     .aim = SF_PASS_FOR_TIME,
     .variants = SF_OVERLAP_WAYS,
     .options = {{"chunks", false, (double)NAN,
                  "chunks of each product; by default several are tried"}},
     .run = sf_pass_overlap},
    {.name = "compress",
     .about =
         "an approximation: gradients travel as bf16; the rounding error is added in the next step",
     .needs = "",
     .provides = "",
     .aim = SF_PASS_FOR_TIME,
     .rounds = true,
     .is_approximate = true,
     .options = {{"min", true, SF_OFFLOAD_LEAST, "smaller reductions are not compressed"}},
     .run = sf_pass_compress},
    {.name = "offload",
     .about = "move tensors that exceed device memory to the host while they are not used",
     .needs = "",
     .provides = "",
     .aim = SF_PASS_FOR_MEMORY,
     .options = {{"min", true, (double)NAN, "smaller tensors stay: 4 KiB, or less if needed"},
                 {"recompute", false, 0,
                  "1: recompute a tensor where that is faster than copying it back"}},
     .run = sf_pass_offload},
    {.name = "balance",
     .about = "unshard, and make room by offloading or recomputing where that is faster",
     .needs = "gathers",
     .provides = "",
     .aim = SF_PASS_FOR_TIME,
     .options = {{"recompute", false, 1, "0: recompute nothing"}},
     .variants = SF_BALANCE_ORDERS + SF_BALANCE_SETS,
     .sure = SF_UNSHARD_WAYS,
     .run = sf_pass_balance},
    {.name = "force",
     .about = "keep the rewritten program even if it is slower; for comparison",
     .needs = "",
     .provides = "",
     .aim = SF_PASS_TO_BEGIN,
     .is_forced = true,
     .run = sf_pass_force},
};
enum { PASSES = sizeof passes / sizeof *passes };

const sf_program_pass *sf_pass_at(int index)
{
    return index >= 0 && index < PASSES ? &passes[index] : NULL;
}

/* Reading */

typedef struct reading {
    const char *text;
    sf_arena *arena;
    sf_diag *diag;
    sf_pass_list *out;
    bool may_load; /* files */
} reading;

/* The text up to the next separator; *rest is the text after it. */
static sf_str take_until(sf_str text, char separator, sf_str *rest)
{
    size_t length = 0;
    while (length < text.length && text.at[length] != separator)
        length++;
    size_t past = length < text.length ? length + 1 : length;
    *rest = (sf_str){text.at + past, text.length - past};
    return (sf_str){text.at, length};
}

static sf_status fail_name(const reading *r, sf_str name)
{
    sf_nearest nearest = {.text = name};
    for (int i = 0; i < PASSES; i++)
        sf_nearest_try(&nearest, passes[i].name);
    sf_status status =
        sf_fail(r->diag, SF_EUSAGE, SF_NOWHERE, "there is no pass \"%.*s\"", SF_STR_ARGS(name));
    if (nearest.best)
        return sf_hint(r->diag, "%s?", nearest.best);
    sf_buf all = {0};
    for (int i = 0; i < PASSES; i++)
        sf_buf_printf(&all, "%s%s", i > 0 ? ", " : "", passes[i].name);
    status = sf_hint(r->diag, "there are %s", all.text);
    sf_buf_free(&all);
    return status;
}

static bool is_file(sf_str name)
{
    return name.length > 0 && memchr(name.at, '/', name.length);
}

static sf_status load_pass(const reading *r, sf_str name, sf_chosen_pass *out)
{
    if (r->may_load)
        return sf_pass_load(sf_arena_string(r->arena, name.at, name.length), r->arena, r->diag,
                            out);
    sf_fail(r->diag, SF_EUSAGE, SF_NOWHERE, "pass %.*s is a file, which is not loaded from here",
            SF_STR_ARGS(name));
    return sf_hint(r->diag, "only --passes on the command line can name it");
}

static sf_status find_pass(const reading *r, sf_str name, sf_chosen_pass *out)
{
    *out = (sf_chosen_pass){0};
    if (is_file(name))
        return load_pass(r, name, out);
    for (int i = 0; i < PASSES; i++)
        if (sf_str_is(name, passes[i].name))
            out->pass = &passes[i];
    if (!out->pass)
        return fail_name(r, name);
    for (int o = 0; o < SF_PASS_OPTIONS; o++)
        out->options[o] = out->pass->options[o].name ? out->pass->options[o].usual : (double)NAN;
    return SF_OK;
}

/* Digits, a point, digits; bytes with K, M, G or T. */
static bool read_value(sf_str text, bool is_size, double *out)
{
    static const char units[] = "KMGT";
    double unit = 1;
    bool digits = false, point = false;
    const char *at = text.length > 0 ? strchr(units, text.at[text.length - 1]) : NULL;
    if (is_size && at && *at) {
        text.length--;
        for (const char *u = units; u <= at; u++)
            unit *= 1024;
    }
    for (size_t i = 0; i < text.length; i++) {
        bool is_point = text.at[i] == '.' && !point;
        digits = digits || sf_is_digit(text.at[i]);
        point = point || is_point;
        if (!is_point && !sf_is_digit(text.at[i]))
            return false;
    }
    *out = digits ? sf_number_double(text) * unit : 0;
    return digits && isfinite(*out);
}

static sf_status read_option(const reading *r, sf_str text, sf_chosen_pass *out)
{
    sf_str value, name = take_until(text, '=', &value);
    const sf_program_pass *pass = out->pass;
    for (int o = 0; o < SF_PASS_OPTIONS && pass->options[o].name; o++) {
        const sf_pass_option *option = &pass->options[o];
        if (!sf_str_is(name, option->name))
            continue;
        if (read_value(value, option->is_size, &out->options[o]))
            return SF_OK;
        return sf_fail(r->diag, SF_EUSAGE, SF_NOWHERE, "pass %s: %s is %s, not \"%.*s\"",
                       pass->name, option->name,
                       option->is_size ? "a size, such as 64M" : "a number", SF_STR_ARGS(value));
    }
    sf_fail(r->diag, SF_EUSAGE, SF_NOWHERE, "pass %s has no option \"%.*s\"", pass->name,
            SF_STR_ARGS(name));
    return sf_hint(r->diag, "sheaf passes lists the options of each: NAME:OPTION=VALUE");
}

/* Words are separated by spaces. */
static bool has_word(const char *words, const char *word, size_t length)
{
    for (const char *at = words; *at; at += strspn(at, " ")) {
        size_t own = strcspn(at, " ");
        if (own == length && memcmp(at, word, length) == 0)
            return true;
        at += own;
    }
    return false;
}

static sf_status check_needs(const reading *r, const sf_program_pass *pass)
{
    for (const char *at = pass->needs; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        bool met = false;
        for (int i = 0; i < r->out->count; i++)
            met = met || has_word(r->out->at[i].pass->provides, at, length);
        for (int i = 0; i < PASSES && !met; i++)
            if (has_word(passes[i].provides, at, length))
                return sf_fail(r->diag, SF_EUSAGE, SF_NOWHERE, "pass %s needs %s before it: %s,%s",
                               pass->name, passes[i].name, passes[i].name, pass->name);
        at += length;
    }
    return SF_OK;
}

static sf_status read_pass(const reading *r, sf_str text)
{
    sf_str rest, name = take_until(text, ':', &rest);
    sf_pass_list *out = r->out;
    if (out->count == SF_PASSES_MOST)
        return sf_fail(r->diag, SF_EUSAGE, SF_NOWHERE, "there are at most %d passes in a list",
                       SF_PASSES_MOST);
    sf_chosen_pass *chosen = &out->at[out->count];
    SF_TRY(find_pass(r, name, chosen));
    SF_TRY(check_needs(r, chosen->pass));
    while (rest.length > 0)
        SF_TRY(read_option(r, take_until(rest, ':', &rest), chosen));
    out->count++;
    return SF_OK;
}

static sf_status read_list(const reading *r)
{
    sf_str rest = sf_str_of(r->text);
    *r->out = (sf_pass_list){0};
    if (sf_str_is(rest, "none"))
        return SF_OK;
    while (rest.length > 0)
        SF_TRY(read_pass(r, take_until(rest, ',', &rest)));
    return SF_OK;
}

sf_status sf_pass_list_read(const char *text, sf_arena *arena, sf_diag *diag, sf_pass_list *out)
{
    return read_list(&(reading){text, arena, diag, out, false});
}

sf_status sf_pass_list_load(const char *text, sf_arena *arena, sf_diag *diag, sf_pass_list *out)
{
    return read_list(&(reading){text, arena, diag, out, true});
}

bool sf_pass_list_is_approximate(const sf_pass_list *list)
{
    for (int i = 0; i < list->count; i++)
        if (list->at[i].pass->is_approximate)
            return true;
    return false;
}
