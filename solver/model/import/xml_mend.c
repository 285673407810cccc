/* Repairs robot descriptions that are not quite XML but that other readers take: a declaration of an
 * unknown version or encoding or behind the first line, comments that hold "--", attributes without a
 * space between them, '<' and '&' that stand for themselves, bytes that are no UTF-8, and control
 * characters. Repairs never change the meaning or the line numbers. A comment's text is blanked
 * without a word; of other repairs the first of each kind is remarked. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <libxml/encoding.h>

#include "base/budget.h"
#include "model/import/xml.h"

enum { ENCODING_SIZE = 64 };

void tb_xml_remark(tb_xml *xml, int line, const char *format, ...)
{
    if (xml->number_of_remarks == TB_XML_REMARKS) return;
    tb_xml_remark_text *remark = &xml->remarks[xml->number_of_remarks++];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(remark->text, sizeof remark->text, format, arguments);
    va_end(arguments);
    remark->line = line;
}

tb_status tb_xml_warn_remarks(const tb_xml *xml, tb_scene *scene, tb_error *error)
{
    tb_status status = TB_OK;
    for (int32_t i = 0; i < xml->number_of_remarks && status == TB_OK; i++) {
        char line[TB_ERROR_MESSAGE_SIZE];
        snprintf(line, sizeof line, "%.256s:%d: %s", xml->files[0], xml->remarks[i].line,
                 xml->remarks[i].text);
        status = tb_scene_warn(scene, line, error);
    }
    return status;
}

int tb_xml_line_at(const char *text, size_t offset)
{
    int line = 1;
    for (size_t i = 0; i < offset; i++) line += text[i] == '\n';
    return line;
}

static bool begins(const char *text, size_t size, size_t at, const char *word)
{
    const size_t length = strlen(word);
    return size - at >= length && memcmp(text + at, word, length) == 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The place behind the next `end` from `at` on, or `size` where there is none. */
static size_t behind(const char *text, size_t size, size_t at, const char *end)
{
    for (; at < size; at++)
        if (begins(text, size, at, end)) return at + strlen(end);
    return size;
}

/* Whether a declaration says version 1.something. */
static bool is_known_version(const char *text, size_t size, size_t at, size_t end)
{
    for (; at + 7 < end; at++) {
        if (!begins(text, size, at, "version")) continue;
        at += 7;
        while (at < end && (is_space(text[at]) || text[at] == '=')) at++;
        return at + 3 < end && (text[at] == '"' || text[at] == '\'') && text[at + 1] == '1' &&
               text[at + 2] == '.';
    }
    return false;
}

/* ---- the declaration ---- */

/* The value of `encoding` in a declaration, copied to name; "" where there is none. *place: where its
 * field begins, *after: behind it. */
static void find_encoding(const char *text, size_t size, size_t at, size_t end, size_t *place,
                          size_t *after, char name[ENCODING_SIZE])
{
    name[0] = 0;
    for (; at < end; at++) {
        if (!begins(text, size, at, "encoding")) continue;
        *place = at;
        at += strlen("encoding");
        while (at < end && (is_space(text[at]) || text[at] == '=')) at++;
        const char quote = at < end ? text[at++] : 0;
        size_t length = 0;
        if (quote != '"' && quote != '\'') return;
        while (at + length < end && text[at + length] != quote) length++;
        *after = at + length + 1;
        if (*after > end) return;
        snprintf(name, ENCODING_SIZE, "%.*s", (int)(length < INT_MAX ? length : INT_MAX),
                 text + at);
        return;
    }
}

static void blank(char *text, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (text[i] != '\n') text[i] = ' ';
}

/* Whether a declared encoding has bytes that are not UTF-8; one that is not known is blanked. */
static bool has_own_bytes(char *text, size_t size, size_t at, size_t end, tb_xml *xml)
{
    char name[ENCODING_SIZE];
    size_t place = 0, after = 0;
    find_encoding(text, size, at, end, &place, &after, name);
    if (name[0] == 0 || strcasecmp(name, "utf-8") == 0 || strcasecmp(name, "us-ascii") == 0 ||
        strcasecmp(name, "ascii") == 0)
        return false;
    xmlCharEncodingHandler *handler = xmlFindCharEncodingHandler(name);
    if (handler != NULL) {
        xmlCharEncCloseFunc(handler);
        return true;
    }
    tb_xml_remark(xml, tb_xml_line_at(text, place), "the encoding '%.40s' is not known: not read",
                  name);
    blank(text, place, after);
    return false;
}

/* Blanks a declaration that libxml2 refuses although nothing depends on it. True: the text has an
 * encoding of its own. */
static bool mend_declaration(char *text, size_t size, tb_xml *xml)
{
    const size_t start = size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    bool own_bytes = false;
    for (size_t at = start; at < size;) {
        if (is_space(text[at])) {
            at++;
        } else if (begins(text, size, at, "<!--")) {
            at = behind(text, size, at + 4, "-->");
        } else if (begins(text, size, at, "<?xml") && size - at > 5 && is_space(text[at + 5])) {
            const size_t end = behind(text, size, at, "?>");
            const bool known = is_known_version(text, size, at, end);
            if (!known)
                tb_xml_remark(xml, tb_xml_line_at(text, at),
                              "the XML declaration names no version 1: taken as version 1.0");
            else if (at > start)
                tb_xml_remark(xml, tb_xml_line_at(text, at),
                              "the XML declaration does not begin the text: not read");
            if (!known || at > start)
                blank(text, at, end);
            else
                own_bytes = has_own_bytes(text, size, at, end, xml);
            at = end;
        } else if (begins(text, size, at, "<?")) {
            at = behind(text, size, at, "?>");
        } else {
            break;
        }
    }
    return own_bytes;
}

/* ---- the text ---- */

/* Faults that are remarked once. */
typedef enum fault { FAULT_SPACE, FAULT_LESS, FAULT_AND, FAULT_BYTE, FAULT_CONTROL, FAULTS } fault;

static const char *const FAULT_TEXTS[FAULTS] = {
    "no space between two attributes", "'<' in an attribute: taken as it is",
    "'&' that begins no entity: taken as it is", "a byte that is no UTF-8: taken as Latin-1",
    "a control character: taken as a space"};

/* A text on its way to its mended form. */
typedef struct mender {
    const char *text;
    size_t size, at;
    char *out; /* NULL: counts the bytes alone */
    size_t length;
    bool own_bytes; /* bytes beyond ASCII stay as they are */
    bool told[FAULTS];
    tb_xml *xml;
} mender;

static void put(mender *m, char c)
{
    if (m->out != NULL) m->out[m->length] = c;
    m->length++;
}

static void put_word(mender *m, const char *word)
{
    for (; *word != 0; word++) put(m, *word);
}

static void copy_until(mender *m, size_t end)
{
    while (m->at < end) put(m, m->text[m->at++]);
}

static void tell(mender *m, fault what)
{
    if (m->out != NULL && !m->told[what])
        tb_xml_remark(m->xml, tb_xml_line_at(m->text, m->at), "%s", FAULT_TEXTS[what]);
    m->told[what] = m->told[what] || m->out != NULL;
}

/* Bytes of the UTF-8 character that begins at `at`, 0 where there is none that XML has. */
static size_t utf8_length(const char *text, size_t size, size_t at)
{
    const unsigned char *c = (const unsigned char *)text + at;
    const size_t left = size - at;
    const size_t length = c[0] < 0xC2 ? 0 : c[0] < 0xE0 ? 2 : c[0] < 0xF0 ? 3 : c[0] < 0xF5 ? 4 : 0;
    if (length == 0 || length > left) return 0;
    uint32_t code = c[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((c[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | (c[i] & 0x3F);
    }
    const bool is_short = code < (length == 3 ? 0x800u : length == 4 ? 0x10000u : 0x80u);
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    return is_short || surrogate || code > 0x10FFFF || code == 0xFFFE || code == 0xFFFF ? 0
                                                                                        : length;
}

/* One character outside of markup, or of an attribute's value. */
static void put_character(mender *m)
{
    const unsigned char c = (unsigned char)m->text[m->at];
    if (c >= 0x80 && !m->own_bytes) {
        const size_t length = utf8_length(m->text, m->size, m->at);
        if (length > 0) {
            copy_until(m, m->at + length);
            return;
        }
        tell(m, FAULT_BYTE);
        put(m, (char)(0xC0 | c >> 6));
        put(m, (char)(0x80 | (c & 0x3F)));
    } else if (c < ' ' && c != '\t' && c != '\n' && c != '\r') {
        tell(m, FAULT_CONTROL);
        put(m, ' ');
    } else {
        put(m, (char)c);
    }
    m->at++;
}

/* Whether an entity that XML knows begins with the '&' at `at`. */
static bool is_entity(const char *text, size_t size, size_t at)
{
    static const char *const KNOWN[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (begins(text, size, at, KNOWN[i])) return true;
    if (!begins(text, size, at, "&#")) return false;
    const bool is_hex = begins(text, size, at, "&#x");
    const char *const digits = is_hex ? "0123456789abcdefABCDEF" : "0123456789";
    size_t end = at + (is_hex ? 3 : 2);
    const size_t first = end;
    while (end < size && text[end] != 0 && strchr(digits, text[end]) != NULL) end++;
    return end > first && end < size && text[end] == ';';
}

static void put_and(mender *m)
{
    const bool entity = is_entity(m->text, m->size, m->at);
    if (!entity) tell(m, FAULT_AND);
    put_word(m, entity ? "&" : "&amp;");
    m->at++;
}

/* A comment keeps its lines alone. */
static void put_comment(mender *m, size_t end)
{
    copy_until(m, m->at + strlen("<!--"));
    for (const size_t close = end - strlen("-->"); m->at < close; m->at++)
        put(m, m->text[m->at] == '\n' ? '\n' : ' ');
    copy_until(m, end);
}

/* A tag, to its '>'. */
static void put_tag(mender *m)
{
    char quote = 0;
    put(m, m->text[m->at++]);
    while (m->at < m->size) {
        const char c = m->text[m->at];
        if (quote == 0) {
            put(m, c);
            m->at++;
            if (c == '>') return;
            if (c == '"' || c == '\'') quote = c;
        } else if (c == quote) {
            quote = 0;
            put(m, c);
            m->at++;
            const char next = m->at < m->size ? m->text[m->at] : '>';
            if (is_space(next) || strchr("/>?", next) != NULL) continue;
            tell(m, FAULT_SPACE);
            put(m, ' ');
        } else if (c == '<') {
            tell(m, FAULT_LESS);
            put_word(m, "&lt;");
            m->at++;
        } else if (c == '&') {
            put_and(m);
        } else {
            put_character(m);
        }
    }
}

static void mend_text(mender *m)
{
    m->at = m->length = 0;
    while (m->at < m->size) {
        const char c = m->text[m->at];
        if (c == '&') {
            put_and(m);
        } else if (c != '<') {
            put_character(m);
        } else if (begins(m->text, m->size, m->at, "<!--")) {
            const size_t end = behind(m->text, m->size, m->at + 4, "-->");
            const bool ends = end - m->at >= 7 && begins(m->text, m->size, end - 3, "-->");
            if (ends)
                put_comment(m, end);
            else
                copy_until(m, m->size);
        } else if (begins(m->text, m->size, m->at, "<![CDATA[")) {
            copy_until(m, behind(m->text, m->size, m->at, "]]>"));
        } else if (begins(m->text, m->size, m->at, "<?")) {
            copy_until(m, behind(m->text, m->size, m->at, "?>"));
        } else if (begins(m->text, m->size, m->at, "<!")) {
            copy_until(m, behind(m->text, m->size, m->at, ">"));
        } else {
            put_tag(m);
        }
    }
}

char *tb_xml_mend(char *text, size_t *size, tb_xml *xml)
{
    mender m = {.text = text, .size = *size, .xml = xml};
    m.own_bytes = mend_declaration(text, *size, xml);
    mend_text(&m);
    if (m.length > INT_MAX || !tb_budget_take(m.length)) return NULL;
    m.out = malloc(m.length + 1);
    if (m.out == NULL) {
        tb_budget_give_back(m.length);
        return NULL;
    }
    mend_text(&m);
    *size = m.length;
    return m.out;
}
