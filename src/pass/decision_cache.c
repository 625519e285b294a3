#include "pass/decision_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/native/disk_cache.h"
#include "sheaf/sheaf.h"
#include "sim/sim.h"

enum { FORMAT = 1, MOST_BYTES = 4096 };

uint64_t sf_pass_cache_hash(const sf_program *program)
{
    sf_buf text = {0};
    sf_program_print(program, &text);
    uint64_t hash = sf_hash_bytes(FORMAT, text.text, text.length);
    sf_buf_free(&text);
    return hash;
}

static uint64_t add_text(uint64_t hash, const char *text)
{
    return sf_hash_bytes(hash, text, strlen(text));
}

static uint64_t add_double(uint64_t hash, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return sf_hash_mix(hash, bits);
}

static double seconds_of(const sf_program *program, const sf_costs *costs)
{
    sf_arena arena = {0};
    sf_simulation sim;
    sf_simulate(program, costs, &arena, &sim);
    sf_arena_free(&arena);
    return sim.seconds;
}

/* What loops compute is not in the text; what that takes is what passes go by. */
uint64_t sf_pass_cache_key(const sf_program *program, const sf_pass_run *run, int64_t limit)
{
    uint64_t hash = add_double(sf_pass_cache_hash(program), seconds_of(program, run->costs));
    hash = sf_hash_mix(sf_hash_mix(hash, sf_costs_hash(run->costs)), (uint64_t)limit);
    hash = add_text(hash, SF_VERSION);
    for (int i = 0; i < run->list->count; i++) {
        const sf_chosen_pass *chosen = &run->list->at[i];
        hash = add_text(hash, chosen->pass->name);
        for (int o = 0; o < SF_PASS_OPTIONS; o++)
            hash = add_double(hash, chosen->options[o]);
    }
    return hash;
}

static bool entry_path(uint64_t key, char *path, size_t size)
{
    char folder[SF_PATH_SIZE];
    return sf_cache_folder(folder, sizeof folder) &&
           snprintf(path, size, "%s/%016" PRIx64 ".passes", folder, key) < (int)size;
}

/* A line for each pass, one for the program that is left, and the hash of all of that. */
static void put_record(int count, const sf_pass_record *record, sf_buf *out)
{
    for (int i = 0; i < count; i++)
        sf_buf_printf(out, "%d %" PRId64 " %d\n", record->at[i].variant, record->at[i].limit,
                      record->at[i].kept);
    sf_buf_printf(out, "%016" PRIx64 "\n", record->left);
    sf_buf_printf(out, "%016" PRIx64 "\n", sf_hash_bytes(FORMAT, out->text, out->length));
}

static bool get_record(const char *text, int count, sf_pass_record *out)
{
    int length = 0;
    *out = (sf_pass_record){0};
    for (int i = 0; i < count; i++, text += length) {
        int kept;
        if (sscanf(text, "%d %" SCNd64 " %d\n%n", &out->at[i].variant, &out->at[i].limit, &kept,
                   &length) != 3)
            return false;
        out->at[i].kept = kept != 0;
    }
    return sscanf(text, "%" SCNx64, &out->left) == 1;
}

/* What reads as something is only taken where it is written as it was. */
bool sf_pass_cache_read(uint64_t key, int count, sf_pass_record *out)
{
    char path[SF_PATH_SIZE + 32];
    sf_arena arena = {0};
    sf_diag unheard = {0};
    sf_buf recomputed = {0};
    sf_str text;
    bool good = entry_path(key, path, sizeof path) && sf_cache_has(path) &&
                sf_file_read(path, &arena, MOST_BYTES, &text, &unheard) == SF_OK;
    if (good) {
        const char *whole = sf_arena_string(&arena, text.at, text.length);
        good = get_record(whole, count, out);
        put_record(count, out, &recomputed);
        good = good && recomputed.length == text.length &&
               memcmp(recomputed.text, whole, text.length) == 0;
    }
    sf_buf_free(&recomputed);
    sf_diag_clear(&unheard);
    sf_arena_free(&arena);
    return good;
}

void sf_pass_cache_write(uint64_t key, int count, const sf_pass_record *record)
{
    char path[SF_PATH_SIZE + 32];
    sf_diag unheard = {0};
    sf_buf text = {0};
    if (!entry_path(key, path, sizeof path))
        return;
    put_record(count, record, &text);
    if (sf_file_write(path, text.text, text.length, &unheard) == SF_OK)
        sf_cache_trim(sf_cache_limit());
    sf_buf_free(&text);
    sf_diag_clear(&unheard);
}
