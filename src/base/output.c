#include "base/output.h"

#include <string.h>

#include "base/boundary.h"
#include "base/file.h"

sf_status sf_output_write(const sf_output *output, const sf_buf *text, sf_diag *diag)
{
    sf_output own;
    SF_TRY(SF_TAKE(sf_output, output, &own, diag));
    if (!own.write)
        return sf_file_write(own.path ? own.path : "-", text->text, text->length, diag);
    if (text->length == 0 || own.write(own.context, text->text, text->length))
        return SF_OK;
    return sf_fail(diag, SF_EIO, SF_NOWHERE, "the caller did not take the text");
}

/* The length of a control sequence of our reports: a line end, or a code of the terminal. */
static size_t own_length(const char *at)
{
    static const char *const codes[] = {"\n", SF_CODE_BOLD, SF_CODE_DIM, SF_CODE_PLAIN};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strncmp(at, codes[i], strlen(codes[i])) == 0)
            return strlen(codes[i]);
    return 0;
}

sf_status sf_output_report(const sf_output *output, const sf_buf *text, sf_diag *diag)
{
    sf_buf shown = {0};
    for (size_t i = 0; i < text->length;) {
        const char *at = text->text + i;
        size_t own = own_length(at), length = own > 0 ? own : strcspn(at, "\n\033");
        length = length > 0 ? length : 1;
        if (own > 0)
            sf_buf_add(&shown, at, own);
        else
            sf_buf_show(&shown, (sf_str){at, length});
        i += length;
    }
    sf_status status = sf_output_write(output, &shown, diag);
    sf_buf_free(&shown);
    return status;
}
