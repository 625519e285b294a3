/* The output of --help. */
#include <stdio.h>
#include <string.h>

#include "cli/cli_options.h"

enum { HELP_COLUMN = 26, HELP_WIDTH = 80 };

static void print_wrapped(const char *text, size_t indent, size_t column)
{
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > indent && column + 1 + word > HELP_WIDTH) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        fwrite(text, 1, word, stdout);
        column += word;
        text += word;
        while (*text == ' ')
            text++;
    }
    putchar('\n');
}

void sf_cli_print_help(const sf_cli_command *command, const sf_cli_table *table)
{
    printf("usage: sheaf %s%s%s\n\n", command->name, *command->synopsis ? " " : "",
           command->synopsis);
    print_wrapped(command->about, 0, 0);
    printf("\noptions:\n");
    for (int i = 0; i < table->count; i++) {
        const sf_cli_option *option = &table->options[i];
        const sf_cli_spec *spec = sf_cli_spec_of(option->id);
        char text[64], letter[8] = "    ";
        if (sf_cli_letter(command, spec))
            snprintf(letter, sizeof letter, "-%c, ", spec->letter);
        int length = snprintf(text, sizeof text, "  %s--%s%s%s", letter, spec->name,
                              spec->value && spec->kind != SF_CLI_MAYBE ? " " : "",
                              spec->value ? spec->value : "");
        printf("%-*s", HELP_COLUMN, text);
        if (length >= HELP_COLUMN)
            printf("\n%*s", HELP_COLUMN, "");
        print_wrapped(option->help, HELP_COLUMN, HELP_COLUMN);
    }
}
