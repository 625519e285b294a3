/* Writing to where a caller wants text: sf_output. */
#ifndef SF_BASE_OUTPUT_H
#define SF_BASE_OUTPUT_H

#include "base/str.h"
#include "sheaf/output.h"

/* `output` may be NULL: standard output. A file is replaced as by sf_file_write. */
sf_status sf_output_write(const sf_output *output, const sf_buf *text, sf_diag *diag);

/* The same for a report, text for people with names out of files in it: all but line ends and the codes below is shown
 * (base/str.h). */
sf_status sf_output_report(const sf_output *output, const sf_buf *text, sf_diag *diag);
#define SF_CODE_BOLD "\033[1m"
#define SF_CODE_DIM "\033[2m"
#define SF_CODE_PLAIN "\033[0m"

#endif
