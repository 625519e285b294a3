#include "report/report_memory.h"

static void add_row(sf_table *table, const char *what, int64_t bytes, int64_t all)
{
    sf_table_add(table, "%s", what);
    sf_table_add(table, "%s", sf_text_bytes((double)bytes).at);
    sf_table_add(table, "%s", sf_text_share((double)bytes, (double)all).at);
}

void sf_memory_text(const sf_price *price, sf_arena *arena, sf_style style, sf_buf *out)
{
    static const sf_column columns[] = {
        {"kind", false, SF_STAYS}, {"bytes", true, SF_STAYS}, {"share", true, SF_STAYS}};
    sf_heading(out, style, "memory of a rank at its peak");
    sf_table table = sf_table_new(arena, 3, columns);
    for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++)
        if (price->by_kind[k] != 0)
            add_row(&table, sf_memory_kind_name((sf_memory_kind)k), price->by_kind[k],
                    price->memory);
    add_row(&table, "all", price->memory, price->memory);
    sf_table_print(&table, style, out);
}

void sf_memory_json(const sf_price *price, sf_json_writer *json)
{
    sf_json_key(json, "memory_by_kind");
    sf_json_begin_object(json);
    for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++)
        sf_json_add_int(json, sf_memory_kind_name((sf_memory_kind)k), price->by_kind[k]);
    sf_json_end_object(json);
    sf_json_key(json, "peak");
    sf_json_begin_object(json);
    sf_peak_put(&price->peak, json);
    sf_json_end_object(json);
}
