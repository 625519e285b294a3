/* Marks the exported functions of the library. All other symbols are hidden. */
#ifndef SHEAF_API_H
#define SHEAF_API_H

#if defined(__GNUC__)
#define SF_API __attribute__((visibility("default")))
#else
#define SF_API
#endif

/* Structs. Every struct that crosses the interface begins with `size`. Whoever makes the struct sets it: the caller, to
 * sizeof, in options and in structs that a function fills; the library in structs that it hands out. A size of 0 is
 * SF_EUSAGE. Structs grow at their end alone, so a program and a library of different versions work together:
 *
 *   - fields that an older program does not have are zero, which is the default of every option;
 *   - fields of a newer program that this library does not know must be zero, else the call is SF_EUSAGE;
 *   - a function fills the fields that the caller's size covers;
 *   - a program reads no field of the library's struct past its `size`.
 *
 *     sf_plan_options options = {.size = sizeof options, .cluster = cluster};
 *     sf_plan_search(graph, &options, diag, &plan);
 *     sf_plan_search(graph, &SF_OPTIONS(sf_plan_options, .cluster = cluster), diag, &plan);
 *
 * Where a function takes options, NULL means options that are all zero. Arrays of structs are arrays of pointers.
 *
 * Pointers. NULL is allowed where the comment of a function says so, for options, for sf_diag and
 * sf_output, and for what a function frees. Elsewhere it is SF_EUSAGE, or, in a function that
 * returns no status, the value that means "none". */
#if defined(__cplusplus)
/* sf_plan_options options = sf_sized<sf_plan_options>(); */
template <typename T> inline T sf_sized()
{
    T options = T();
    options.size = sizeof options;
    return options;
}
#else
#define SF_OPTIONS(type, ...) ((type){.size = sizeof(type), __VA_ARGS__})
#endif

#endif
