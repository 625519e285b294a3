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
