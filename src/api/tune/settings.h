/* Within api/ and script/: values of variables that a program reads, in its order. */
#ifndef SF_API_SETTINGS_H
#define SF_API_SETTINGS_H

#include "sheaf/tune.h"

enum { SF_MOST_VARIABLES = 16, SF_VARIABLE_TEXT = 64 };

typedef struct sf_variable {
    char name[SF_VARIABLE_TEXT], value[SF_VARIABLE_TEXT];
    double number;  /* of the value; NaN: it is none */
    int64_t domain; /* a hash of all values */
    int64_t count;  /* how many there are */
    int64_t chosen;
} sf_variable;

struct sf_settings {
    int nwanted; /* the first so many are given, by number; those after them have their first value */
    int64_t wanted[SF_MOST_VARIABLES];
    int nvariables; /* read so far */
    sf_variable variables[SF_MOST_VARIABLES];
};

/* Goes on to the next setting: of the last variable that has another value, the next one, and first
 * values of later ones. Of settings that a program has run with. False: there is none. */
bool sf_settings_next(sf_settings *settings);

#endif
