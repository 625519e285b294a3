/* Messages to the user, on standard error. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/str.h"
#include "cli/cli_options.h"

/* Seconds for other processes to make the same mistake. */
#define AGREE_LIMIT 10

bool sf_cli_colour(int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no_color && *no_color) && term && strcmp(term, "dumb") != 0 && isatty(fd);
}

bool sf_cli_speaks(void)
{
    if (sf_ranks_started() < 2)
        return true;
    sf_diag *diag = sf_cli_diag();
    sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a command line that is wrong");
    sf_ranks_agree(SF_EUSAGE, AGREE_LIMIT, diag);
    bool speaks = sf_diag_count(diag) > 0;
    sf_diag_free(diag);
    return speaks;
}

const char *sf_cli_shown(const char *text, char out[SF_CLI_SHOWN])
{
    sf_show_text(sf_str_of(text), out, SF_CLI_SHOWN);
    return out;
}

int sf_cli_misuse(const char *command, const char *format, ...)
{
    va_list args;
    if (!sf_cli_speaks())
        return SF_EXIT_USAGE;
    char text[SF_CLI_SHOWN], shown[SF_CLI_SHOWN];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "sheaf %s: %s\ntry: sheaf %s --help\n", command, sf_cli_shown(text, shown),
            command);
    return SF_EXIT_USAGE;
}

/* The option whose name, as the library writes it, `text` begins with: with _ for -, and nothing
 * after it. */
static const sf_cli_spec *option_at(const char *text, size_t *length)
{
    char name[32];
    *length = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    if (*length >= sizeof name)
        return NULL;
    for (size_t i = 0; i < *length; i++)
        name[i] = text[i] == '_' ? '-' : text[i];
    name[*length] = 0;
    for (int id = 0; id < SF_OPTIONS; id++)
        if (strcmp(sf_cli_spec_of((sf_cli_id)id)->name, name) == 0)
            return sf_cli_spec_of((sf_cli_id)id);
    return NULL;
}

/* The library speaks of "option init", a member of a struct; here that is --init. */
static void print_text(const char *text)
{
    static const char word[] = "option ";
    for (const char *at; (at = strstr(text, word)); text = at) {
        size_t length;
        at += sizeof word - 1;
        const sf_cli_spec *spec = option_at(at, &length);
        fprintf(stderr, "%.*s", (int)(at - text - (spec ? (int)sizeof word - 1 : 0)), text);
        if (spec) {
            fprintf(stderr, "--%s", spec->name);
            at += length;
        }
    }
    fprintf(stderr, "%s\n", text);
}

static void print_message(const char *text, bool colour)
{
    static const struct {
        const char *word, *colour;
    } words[] = {{"error:", "1;31"}, {"warning:", "1;33"}};
    for (size_t i = 0; colour && i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(text, words[i].word);
        if (at) {
            fprintf(stderr, "%.*s\033[%sm%s\033[0m", (int)(at - text), text, words[i].colour,
                    words[i].word);
            print_text(at + strlen(words[i].word));
            return;
        }
    }
    print_text(text);
}

static bool is_strict;

void sf_cli_be_strict(bool strict)
{
    is_strict = strict;
}

int sf_cli_finish(sf_status status, sf_diag *diag)
{
    bool colour = sf_cli_colour(STDERR_FILENO);
    int count = sf_diag_count(diag), printed = 0;
    for (const char *text; (text = sf_diag_text(diag, printed)); printed++)
        print_message(text, colour);
    if (count > printed)
        fprintf(stderr, "and %d more error%s\n", count - printed, count == printed + 1 ? "" : "s");
    else if (printed == SF_DIAG_KEPT)
        fprintf(stderr, "stopped after %d errors; there may be more\n", printed);
    /* Of several processes, the one that knows says it. */
    if (status != SF_OK && count == 0 && sf_ranks_started() == 0)
        fprintf(stderr, "error: %s\n", sf_status_name(status));
    sf_diag_free(diag);
    if (status == SF_OK)
        return is_strict && count > 0 ? SF_EXIT_FAILED : SF_EXIT_GOOD;
    return status == SF_EUSAGE ? SF_EXIT_USAGE : SF_EXIT_FAILED;
}

sf_diag *sf_cli_diag(void)
{
    sf_diag *diag = sf_diag_new();
    if (diag)
        return diag;
    fputs("error: out of memory\n", stderr);
    exit(SF_EXIT_FAILED);
}
