/* Leaks, so that a test can tell that leaks are found. */
#include <stdlib.h>

int main(void)
{
    void *volatile block = malloc(1);
    block = NULL;
    return block != NULL;
}
