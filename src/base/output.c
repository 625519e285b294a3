#include "base/output.h"

#include "base/file.h"

sf_status sf_output_write(const sf_output *output, const sf_buf *text, sf_diag *diag)
{
    if (output && output->write) {
        if (text->length == 0 || output->write(output->context, text->text, text->length))
            return SF_OK;
        return sf_fail(diag, SF_EIO, SF_NOWHERE, "the caller did not take the text");
    }
    const char *path = output && output->path ? output->path : "-";
    return sf_file_write(path, text->text, text->length, diag);
}
