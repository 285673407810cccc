/* Repairs robot descriptions that are not quite XML: a declaration of an unknown version or
 * behind the first line, and text behind the end. Repairs never change the meaning or the line
 * numbers. Each repair is remarked. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/import/xml.h"

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

void tb_xml_mend_declaration(char *text, size_t size, tb_xml *xml)
{
    const size_t start = size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
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
            for (size_t i = at; (!known || at > start) && i < end; i++)
                if (text[i] != '\n') text[i] = ' ';
            at = end;
        } else if (begins(text, size, at, "<?")) {
            at = behind(text, size, at, "?>");
        } else {
            return;
        }
    }
}
