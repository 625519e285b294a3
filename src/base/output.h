/* Writing to where a caller wants text: sf_output. */
#ifndef SF_BASE_OUTPUT_H
#define SF_BASE_OUTPUT_H

#include "base/str.h"
#include "sheaf/output.h"

/* `output` may be NULL: standard output. A file is replaced as by sf_file_write. */
sf_status sf_output_write(const sf_output *output, const sf_buf *text, sf_diag *diag);

#endif
