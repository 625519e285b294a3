/* Common to the files of the reader: errors, attributes by name, lists of numbers. */
#include "front/hlo/hlo_reader.h"

bool sf_hlo_count_error(sf_hlo_reader *reader, sf_status status)
{
    reader->errors += status != SF_OK;
    reader->status = reader->status == SF_OK ? status : reader->status;
    return reader->errors < SF_HLO_MAX_ERRORS;
}

sf_status sf_hlo_end(sf_hlo_reader *reader, sf_status status)
{
    reader->errors += status == SF_OK ? 0 : SF_HLO_MAX_ERRORS;
    return status;
}

bool sf_hlo_set_attr(sf_hlo_instruction *inst, const char *name, const sf_attr *value)
{
    int slot = inst->op->def ? sf_attr_slot(inst->op->def, sf_str_of(name)) : -1;
    if (slot < 0)
        return false;
    inst->attrs[slot] = value;
    return true;
}

sf_status sf_hlo_read_ints(sf_hlo_frame *frame, int64_t *out, int capacity, int *count)
{
    sf_hlo_scan *scan = &frame->scan;
    sf_diag *diag = frame->reader->diag;
    *count = 0;
    SF_TRY(sf_hlo_expect(scan, '{', diag));
    if (sf_hlo_accept(scan, '}'))
        return SF_OK;
    do {
        if (*count == capacity)
            return sf_fail(diag, SF_EINPUT, sf_hlo_here(scan), "a list of more than %d numbers",
                           capacity);
        if (!sf_hlo_number(scan, &out[*count]))
            return sf_hlo_expected(scan, "a number", diag);
        ++*count;
    } while (sf_hlo_accept(scan, ','));
    return sf_hlo_expect(scan, '}', diag);
}
