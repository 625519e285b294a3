/* Half of the inputs are edited as what they are, JSON or text; the others are libFuzzer's, which knows bytes. */
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "support/mutate.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

static void edit(sf_str text, unsigned seed, sf_buf *out)
{
    if (!test_mutate_json(text, seed, out) && text.length > 8 && text.at[7] == 0 &&
        text.at[8] == '{')
        test_mutate_safetensors(text, seed, out);
    else if (out->length == 0)
        test_mutate_text(text, seed, out);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    sf_buf out = {0};
    sf_guard guard;
    size_t length = 0;
    if (seed % 2)
        return LLVMFuzzerMutate(data, size, most);
    sf_guard_enter(&guard);
    if (setjmp(guard.target) == 0) {
        edit((sf_str){(const char *)data, size}, seed, &out);
        length = out.length <= most ? out.length : 0;
        if (length > 0)
            memcpy(data, out.text, length);
        sf_buf_free(&out);
        sf_guard_leave(&guard);
    }
    return length ? length : LLVMFuzzerMutate(data, size, most);
}
