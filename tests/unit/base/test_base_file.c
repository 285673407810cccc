/* Files, byte buffers, paths, numbers in text, SHA-256. */
#include "base/file.h"
#include "base/random.h"
#include "base/sha256.h"
#include "test_util.h"

#include <dirent.h>
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a folder of its own for each test ---- */

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(void)
{
    strcpy(folder, "/tmp/tribo_test_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* Removes the folder and its files; returns the number of files. */
static int remove_folder(void)
{
    int files = 0;
    DIR *list = opendir(folder);
    ck_assert_ptr_nonnull(list);
    for (struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        ck_assert_int_eq(remove(path), 0);
        files++;
    }
    closedir(list);
    ck_assert_int_eq(rmdir(folder), 0);
    return files;
}

START_TEST(what_is_written_is_read)
{
    make_folder();
    static unsigned char data[300000];
    tb_random random = tb_random_stream(2, 0);
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)tb_random_u32(&random);

    tb_bytes bytes = {0};
    tb_error e;
    const size_t sizes[] = {0, 1, 63, 64, 65, 65536, sizeof data, 5};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        TEST_OK(tb_file_write(in_folder("a"), data, sizes[i], &e), &e);
        TEST_OK(tb_file_read(in_folder("a"), 0, &bytes, &e), &e);
        ck_assert_uint_eq(bytes.size, sizes[i]);
        ck_assert_uint_lt(bytes.size, bytes.capacity);
        ck_assert_int_eq(memcmp(bytes.base, data, sizes[i]), 0);
        ck_assert_int_eq(bytes.base[sizes[i]], 0);
    }
    tb_bytes_free(&bytes);
    ck_assert_ptr_null(bytes.base);
    ck_assert_int_eq(remove_folder(), 1);
}
END_TEST

START_TEST(the_limit_is_the_largest_size_allowed)
{
    make_folder();
    tb_bytes bytes = {0};
    tb_error e;
    TEST_OK(tb_file_write(in_folder("a"), "12345", 5, &e), &e);
    TEST_OK(tb_file_read(in_folder("a"), 5, &bytes, &e), &e);
    TEST_STATUS(tb_file_read(in_folder("a"), 4, &bytes, &e), TB_RESOURCE_EXHAUSTED, NULL);
    ck_assert_str_eq(e.file, in_folder("a"));
    ck_assert_ptr_nonnull(strstr(e.message, "5 bytes"));
    ck_assert_ptr_null(bytes.base); /* a failed read leaves nothing */
    ck_assert_uint_eq(bytes.size, 0);
    remove_folder();
}
END_TEST

START_TEST(a_file_that_hides_its_size_is_read_and_limited_too)
{
    tb_bytes bytes = {0};
    tb_error e;
    if (access("/proc/self/maps", R_OK) != 0) {
        puts("SKIPPED a_file_that_hides_its_size: no /proc");
        return;
    }
    TEST_OK(tb_file_read("/proc/self/maps", 0, &bytes, &e), &e);
    ck_assert_uint_gt(bytes.size, 500);
    ck_assert_uint_eq(strlen((const char *)bytes.base), bytes.size);
    TEST_STATUS(tb_file_read("/proc/self/maps", 100, &bytes, &e), TB_RESOURCE_EXHAUSTED, NULL);
    tb_bytes_free(&bytes);
}
END_TEST

START_TEST(missing_files_folders_and_devices_are_told_apart)
{
    make_folder();
    tb_bytes bytes = {0};
    tb_error e;
    TEST_STATUS(tb_file_read(in_folder("none"), 0, &bytes, &e), TB_NOT_FOUND, NULL);
    ck_assert_str_eq(e.file, in_folder("none"));
    TEST_STATUS(tb_file_read("", 0, &bytes, &e), TB_NOT_FOUND, NULL);
    TEST_STATUS(tb_file_read(folder, 0, &bytes, &e), TB_INVALID_ARGUMENT, NULL);
    ck_assert_ptr_nonnull(strstr(e.message, "folder"));
    TEST_STATUS(tb_file_read("/dev/zero", 0, &bytes, &e), TB_INVALID_ARGUMENT, NULL);

    /* the reader must not block on a pipe without a writer */
    ck_assert_int_eq(mkfifo(in_folder("pipe"), 0600), 0);
    TEST_STATUS(tb_file_read(in_folder("pipe"), 0, &bytes, &e), TB_INVALID_ARGUMENT, NULL);
    ck_assert_ptr_null(bytes.base);
    remove_folder();
}
END_TEST

START_TEST(a_write_replaces_whole_files_only)
{
    make_folder();
    tb_error e;
    TEST_STATUS(tb_file_write("/dev/null", "x", 1, &e), TB_INVALID_ARGUMENT, NULL);
    TEST_STATUS(tb_file_write(folder, "x", 1, &e), TB_INVALID_ARGUMENT, NULL);
    TEST_STATUS(tb_file_write(in_folder("no/such"), "x", 1, &e), TB_NOT_FOUND, NULL);

    /* permissions stay; nothing is left beside the file */
    TEST_OK(tb_file_write(in_folder("a"), "old", 3, &e), &e);
    ck_assert_int_eq(chmod(in_folder("a"), 0640), 0);
    TEST_OK(tb_file_write(in_folder("a"), "new", 3, &e), &e);
    struct stat about;
    ck_assert_int_eq(stat(in_folder("a"), &about), 0);
    ck_assert_int_eq((int)(about.st_mode & 07777), 0640);
    ck_assert_int_eq(remove_folder(), 1);
}
END_TEST

START_TEST(appending_keeps_a_zero_behind_the_bytes)
{
    tb_bytes bytes = {0};
    TEST_OK(tb_bytes_append(&bytes, NULL, 0), NULL);
    ck_assert_ptr_nonnull(bytes.base);
    ck_assert_int_eq(bytes.base[0], 0);
    for (int i = 0; i < 1000; i++) {
        TEST_OK(tb_bytes_append(&bytes, "abc", 3), NULL);
        ck_assert_int_eq(bytes.base[bytes.size], 0);
    }
    ck_assert_uint_eq(bytes.size, 3000);
    ck_assert_uint_eq(strlen((const char *)bytes.base), 3000);
    TEST_STATUS(tb_bytes_append(&bytes, "abc", SIZE_MAX - 5), TB_RESOURCE_EXHAUSTED, NULL);
    ck_assert_uint_eq(bytes.size, 3000);
    tb_bytes_free(&bytes);
}
END_TEST

START_TEST(paths_join_at_the_folder)
{
    char joined[32];
    TEST_OK(tb_path_join("a/b.xml", "c.obj", joined, sizeof joined), NULL);
    ck_assert_str_eq(joined, "a/c.obj");
    TEST_OK(tb_path_join("b.xml", "m/c.obj", joined, sizeof joined), NULL);
    ck_assert_str_eq(joined, "m/c.obj");
    TEST_OK(tb_path_join("/b.xml", "c", joined, sizeof joined), NULL);
    ck_assert_str_eq(joined, "/c");
    TEST_OK(tb_path_join("a/b/", "c", joined, sizeof joined), NULL);
    ck_assert_str_eq(joined, "a/b/c");
    TEST_OK(tb_path_join("a/b.xml", "/c.obj", joined, sizeof joined), NULL);
    ck_assert_str_eq(joined, "/c.obj");

    /* with the zero it is as long as the room, then longer */
    TEST_OK(tb_path_join("a/b", "cde", joined, 6), NULL);
    ck_assert_str_eq(joined, "a/cde");
    TEST_STATUS(tb_path_join("a/b", "cde", joined, 5), TB_RESOURCE_EXHAUSTED, NULL);
    TEST_STATUS(tb_path_join("a/b", "/cde", joined, 4), TB_RESOURCE_EXHAUSTED, NULL);
    TEST_STATUS(tb_path_join("a/b", "", joined, 0), TB_RESOURCE_EXHAUSTED, NULL);
}
END_TEST

/* ---- numbers ---- */

static void expect_number(const char *text, double expected, const char *rest)
{
    const char *at = text;
    double number = -777;
    ck_assert_msg(tb_parse_number(&at, &number), "'%s' was refused", text);
    ck_assert_msg(memcmp(&number, &expected, sizeof number) == 0, "'%s' is %a, not %a", text,
                  number, expected);
    ck_assert_str_eq(at, rest);
}

static void expect_no_number(const char *text)
{
    const char *at = text;
    double number = -777;
    ck_assert_msg(!tb_parse_number(&at, &number), "'%s' was accepted", text);
    ck_assert_ptr_eq(at, text);
    ck_assert(number == -777);
}

static void check_numbers(void)
{
    expect_number("1.5", 1.5, "");
    expect_number("-0.25e+2 7", -25.0, " 7");
    expect_number("+.5,", 0.5, ",");
    expect_number("1,5", 1.0, ",5");
    expect_number("1.234.5", 1.234, ".5");
    expect_number("-0", -0.0, "");
    expect_number("0x1.8p1", 3.0, "");
    expect_number("12e", 12.0, "e");
    expect_number("1e999", (double)INFINITY, "");
    expect_number("-inf", -(double)INFINITY, "");
    expect_no_number("");
    expect_no_number(".");
    expect_no_number("-");
    expect_no_number("e5");
    expect_no_number(" 1");
    expect_no_number("\n1");
    expect_no_number(",5");

    const char *text = "nan";
    double number = 0;
    ck_assert(tb_parse_number(&text, &number) && isnan(number));

    /* halfway and its neighbours: 2^53 + 1 lies between two doubles and goes to the even one */
    expect_number("9007199254740993", 9007199254740992.0, "");
    expect_number("9007199254740993.00000000000000000000000000000000000001", 9007199254740994.0,
                  "");
    expect_number("9007199254740992.99999999999999999999999999999999999999", 9007199254740992.0,
                  "");
    expect_number("1.00000000000000011102230246251565404236316680908203125", 1.0, "");
    expect_number("1.00000000000000011102230246251565404236316680908203126", 1.0 + 0x1p-52, "");

    /* the hard ones of Java and PHP, the smallest and the largest */
    expect_number("2.2250738585072012e-308", 0x1p-1022, "");
    expect_number("2.2250738585072011e-308", 0x0.fffffffffffffp-1022, "");
    expect_number("4.9406564584124654e-324", 0x1p-1074, "");
    expect_number("2.4703282292062327e-324", 0.0, "");
    expect_number("1.7976931348623157e308", 0x1.fffffffffffffp+1023, "");
    expect_number("1.7976931348623159e308", (double)INFINITY, "");
}

START_TEST(numbers_are_read_to_the_last_bit)
{
    check_numbers();

    /* 800 digits: the first significant one is the last */
    char digits[900] = "9007199254740993.";
    memset(digits + 17, '0', 800);
    strcpy(digits + 817, "1");
    expect_number(digits, 9007199254740994.0, "");

    /* seventeen digits bring every double back */
    tb_random random = tb_random_stream(3, 0);
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = (uint64_t)tb_random_u32(&random) << 32;
        bits |= tb_random_u32(&random);
        double x;
        memcpy(&x, &bits, sizeof x);
        if (!isfinite(x)) continue;
        char text[40];
        snprintf(text, sizeof text, "%.17g", x);
        expect_number(text, x, "");
    }
}
END_TEST

START_TEST(numbers_do_not_depend_on_the_locale)
{
    /* a German locale: the system's, or one made here where localedef has its sources */
    make_folder();
    const char *german = setlocale(LC_ALL, "de_DE.UTF-8");
    if (german == NULL) {
        char command[256];
        snprintf(command, sizeof command,
                 "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
        if (system(command) == 0) {
            setenv("LOCPATH", folder, 1);
            german = setlocale(LC_ALL, "de_DE.UTF-8");
        }
    }
    if (german == NULL) {
        puts("SKIPPED numbers_do_not_depend_on_the_locale: no German locale");
    } else {
        ck_assert_double_eq(strtod("1,5", NULL), 1.5); /* the German locale is in force */
        check_numbers();
        ck_assert_str_eq(setlocale(LC_ALL, NULL), german); /* and was left alone */
        setlocale(LC_ALL, "C");
    }
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* ---- SHA-256: the vectors of FIPS 180-2, appendix B, and of NIST's CAVP ---- */

static void expect_sha256(const void *bytes, size_t size, const char *expected)
{
    char hex[65];
    memset(hex, 'x', sizeof hex);
    tb_sha256_hex(bytes, size, hex);
    ck_assert_str_eq(hex, expected);
}

START_TEST(sha256_gives_the_published_digests)
{
    expect_sha256("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_sha256("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_sha256(NULL, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    ck_assert_ptr_nonnull(million);
    memset(million, 'a', 1000000);
    expect_sha256(million, 1000000,
                  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}
END_TEST

TEST_MAIN(what_is_written_is_read, the_limit_is_the_largest_size_allowed,
          a_file_that_hides_its_size_is_read_and_limited_too,
          missing_files_folders_and_devices_are_told_apart, a_write_replaces_whole_files_only,
          appending_keeps_a_zero_behind_the_bytes, paths_join_at_the_folder,
          numbers_are_read_to_the_last_bit, numbers_do_not_depend_on_the_locale,
          sha256_gives_the_published_digests)
