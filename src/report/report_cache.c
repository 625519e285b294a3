#include "sheaf/cache.h"

#include "api/api_options.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/json.h"
#include "base/native/disk_cache.h"
#include "base/output.h"
#include "report/table.h"

struct job {
    sf_show_options options;
    const sf_output *output;
    sf_diag *diag;
    char folder[SF_PATH_SIZE]; /* "": none is used */
    sf_cache_kind kinds[SF_CACHE_KINDS];
};

static void put_table(const struct job *job, sf_buf *out)
{
    static const sf_column columns[] = {
        {"what", false, SF_STAYS}, {"files", true, SF_STAYS}, {"bytes", true, SF_STAYS}};
    sf_style style = {.width = job->options.width, .colour = job->options.colour};
    sf_arena arena = {0};
    sf_table table = sf_table_new(&arena, 3, columns);
    double bytes = 0;
    for (int k = 0; k < SF_CACHE_KINDS; k++) {
        bytes += (double)job->kinds[k].bytes;
        if (job->kinds[k].files == 0)
            continue;
        sf_table_add(&table, "%s", job->kinds[k].what);
        sf_table_add(&table, "%s", sf_text_count(job->kinds[k].files).at);
        sf_table_add(&table, "%s", sf_text_bytes((double)job->kinds[k].bytes).at);
    }
    if (!*job->folder)
        sf_buf_printf(out, "no cache: there is no folder for it that nobody else may write to\n");
    else
        sf_buf_printf(out, "%s: %s of at most %s\n", job->folder, sf_text_bytes(bytes).at,
                      sf_text_bytes((double)sf_cache_limit()).at);
    if (table.ncells > 0)
        sf_table_print(&table, style, out);
    sf_arena_free(&arena);
}

static void put_json(const struct job *job, sf_buf *out)
{
    sf_json_writer json = {.buf = out, .indent = true};
    sf_json_begin_object(&json);
    sf_json_add_string(&json, "folder", job->folder);
    sf_json_add_int(&json, "limit", sf_cache_limit());
    sf_json_key(&json, "kinds");
    sf_json_begin_array(&json);
    for (int k = 0; k < SF_CACHE_KINDS; k++) {
        sf_json_begin_object(&json);
        sf_json_add_string(&json, "what", job->kinds[k].what);
        sf_json_add_int(&json, "files", job->kinds[k].files);
        sf_json_add_int(&json, "bytes", job->kinds[k].bytes);
        sf_json_end_object(&json);
    }
    sf_json_end_array(&json);
    sf_json_end_object(&json);
    sf_buf_putc(out, '\n');
}

static sf_status write_cache(void *context)
{
    struct job *job = context;
    sf_buf out = {0};
    if (!sf_cache_folder(job->folder, sizeof job->folder))
        job->folder[0] = '\0';
    sf_cache_count(job->kinds);
    if (job->options.json)
        put_json(job, &out);
    else
        put_table(job, &out);
    sf_status status = sf_output_report(job->output, &out, job->diag);
    sf_buf_free(&out);
    return status;
}

sf_status sf_cache_show(const sf_show_options *options, const sf_output *output, sf_diag *diag)
{
    struct job job = {.output = output, .diag = diag};
    SF_TRY(SF_TAKE(sf_show_options, options, &job.options, diag));
    SF_TRY(sf_cache_check(diag));
    return sf_guarded(write_cache, &job, diag);
}

int64_t sf_cache_clear(void)
{
    return sf_cache_trim(0);
}
