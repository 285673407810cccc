/* Pages: lists are cut by the number of their last row, which travels as an opaque token. The token
 * names its list and the filter it was made under, and carries a check, so that one of another list
 * or a mangled one is refused and not silently taken for a place. */
#include <stdio.h>
#include <string.h>

#include "db_internal.h"

enum { TOKEN_LENGTH = 1 + 16 + 8 };

/* FNV-1a */
uint32_t db_page_hash(uint32_t hash, const void *bytes, size_t size)
{
    const unsigned char *p = bytes;
    if (hash == 0) hash = 0x811c9dc5u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ p[i]) * 0x01000193u;
    return hash;
}

static uint32_t check_of(const db_page *page)
{
    uint32_t hash = db_page_hash(page->filter, &page->list, sizeof page->list);
    return db_page_hash(hash, &page->before, sizeof page->before);
}

void db_page_print(const db_page *page, char token[DB_TOKEN_SIZE])
{
    snprintf(token, DB_TOKEN_SIZE, "%c%016llx%08x", page->list, (unsigned long long)page->before,
             check_of(page));
}

tb_status db_page_parse(db_page *page, const char *token, tb_error *error)
{
    page->before = INT64_MAX;
    if (token == NULL || token[0] == '\0') return TB_OK;

    unsigned long long before = 0;
    char expected[DB_TOKEN_SIZE] = "";
    if (strnlen(token, TOKEN_LENGTH + 1) == TOKEN_LENGTH &&
        sscanf(token + 1, "%16llx", &before) == 1) {
        page->before = (int64_t)before;
        db_page_print(page, expected);
    }
    if (strcmp(expected, token) == 0) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "page_token",
                         "page_token '%.40s' is not one that this list gave under this filter",
                         token);
}

tb_status db_page_read(db_query *query, db_page *page, db_row_reader *read, void *rows,
                       int32_t capacity, int32_t *count, char next[DB_TOKEN_SIZE], tb_error *error)
{
    *count = 0;
    next[0] = '\0';
    sqlite3_bind_int64(query->statement, 1, page->before);
    sqlite3_bind_int64(query->statement, 2, (int64_t)capacity + 1);
    while (true) {
        bool row = false;
        tb_status status = db_next_row(query->connection, query->statement, &row, "a list", error);
        if (status != TB_OK || !row) return status;
        if (*count == capacity) {
            db_page_print(page, next);
            return TB_OK;
        }
        page->before = sqlite3_column_int64(query->statement, 0);
        status = read(query, rows, *count, error);
        if (status != TB_OK) return status;
        ++*count;
    }
}
