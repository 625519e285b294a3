/* Included before every file of tests by the build (cmake/tests.cmake): many files are one program, so each main has a name
 * of its own, TEST_MAIN. A file that takes arguments finds them in test_argv. */
#ifndef TEST_SUPPORT_RENAME_MAIN_H
#define TEST_SUPPORT_RENAME_MAIN_H

extern char **test_argv; /* after the file's name, NULL at the end */
int TEST_MAIN(void);
#define main TEST_MAIN

#endif
