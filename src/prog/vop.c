#include "prog/vop.h"

sf_vclass sf_vclass_of(sf_dtype dtype)
{
    const sf_dtype_info *info = sf_dtype_get(dtype);
    if (info->class == SF_FLOAT)
        return info->bits > 32 ? SF_VF64 : SF_VF32;
    return info->bits > 32 ? SF_VI64 : SF_VI32;
}

const char *sf_vop_name(sf_vop op)
{
    static const char *const names[] = {
#define X(id) #id,
        SF_VOPS(X)
#undef X
    };
    return names[op];
}

bool sf_vop_is_function(sf_vop op)
{
    switch ((int)op) {
    case SF_VEXP:
    case SF_VEXPM1:
    case SF_VLOG:
    case SF_VLOG1P:
    case SF_VLOGISTIC:
    case SF_VTANH:
    case SF_VSIN:
    case SF_VCOS:
    case SF_VTAN:
    case SF_VERF:
    case SF_VCBRT:
    case SF_VPOW:
    case SF_VATAN2:
        return true;
    default:
        return false;
    }
}

/* A function is a polynomial of some ten terms and a reduction of its argument; divisions and roots
 * are not pipelined as additions are. */
double sf_vop_weight(sf_vop op)
{
    bool is_slow = op == SF_VDIV || op == SF_VSQRT || op == SF_VRSQRT || op == SF_VREM;
    return sf_vop_is_function(op) ? 12 : is_slow ? 4 : 1;
}
