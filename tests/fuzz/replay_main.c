/* Replays a fuzz corpus as a test.
 *
 * The fuzz targets are libFuzzer programs, which need clang. In `make check` each is linked with
 * this main instead and sees every file of the folders on the command line once, in the order of
 * their names. Each input lies in a buffer of exactly its size, so that AddressSanitizer catches a
 * read past its end. A finding is a crash or a sanitizer report: the file's name is the last line
 * printed before it. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads a file whole. Returns NULL after saying why; the caller frees. */
static uint8_t *file_read(const char *path, size_t size)
{
    /* malloc(0) may give NULL, which here means failure */
    uint8_t *data = malloc(size > 0 ? size : 1);
    FILE *file = fopen(path, "rb");
    if (data == NULL || file == NULL || fread(data, 1, size, file) != size) {
        printf("%s: %s\n", path, strerror(errno));
        free(data);
        data = NULL;
    }
    if (file != NULL) fclose(file);
    return data;
}

/* Replays the regular files of one folder. Adds to the two counts. */
static void folder_replay(const char *folder, int *number_of_checks, int *number_of_errors)
{
    struct dirent **entries = NULL;
    const int n = scandir(folder, &entries, NULL, alphasort);
    if (n < 0) {
        printf("SKIPPED %s: no such corpus\n", folder);
        return;
    }
    for (int i = 0; i < n; i++) {
        char path[4096];
        struct stat status;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        free(entries[i]);
        if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) continue;

        printf("%s\n", path);
        fflush(stdout);
        ++*number_of_checks;
        const size_t size = (size_t)status.st_size;
        uint8_t *data = file_read(path, size);
        if (data == NULL) {
            ++*number_of_errors;
            continue;
        }
        /* an empty input is a pointer that must not be read at all */
        LLVMFuzzerTestOneInput(size > 0 ? data : data + 1, size);
        free(data);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    int number_of_checks = 0;
    int number_of_errors = 0;
    for (int i = 1; i < argc; i++) folder_replay(argv[i], &number_of_checks, &number_of_errors);

    const int passed = number_of_checks - number_of_errors;
    if (number_of_checks == 0) printf("SKIPPED replay: the corpus is empty\n");
    printf("%d%%: Checks: %d, Failures: 0, Errors: %d\n",
           number_of_checks > 0 ? 100 * passed / number_of_checks : 100, number_of_checks,
           number_of_errors);
    return number_of_errors > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
