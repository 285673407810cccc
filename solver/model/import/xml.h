/* Reads XML from untrusted clients, for the MJCF and URDF importers.
 *
 * libxml2 builds the tree; this file restricts it. No network, no files, no entities: a document
 * with a DOCTYPE is refused, because XML bombs use entities and no scene needs them. Size and depth
 * are limited. Every failure reads "file:line: element: fault", and readers refuse unknown
 * attributes, so that a misspelt attribute never counts as absent.
 *
 * A node knows its document, so errors need the node alone. */
#ifndef TB_XML_H
#define TB_XML_H

#include <libxml/tree.h>

#include "base/base.h"

enum { TB_XML_REMARKS = 8 };

typedef struct tb_xml_remark_text {
    int line;
    char text[120];
} tb_xml_remark_text;

typedef struct tb_xml {
    xmlDoc *document;
    tb_xml_remark_text remarks[TB_XML_REMARKS]; /* on what is not quite XML */
    int32_t number_of_remarks;
    char *
        *files; /* names in messages; the first is the document's own, the others were grafted in */
    int32_t number_of_files, capacity;
    size_t nodes; /* bytes that the tree has of the thread's budget */
} tb_xml;

/* Parses `size` bytes. What other readers take although it is not quite XML is repaired with a remark
 * (xml_mend.c), and text behind the root element is ignored with one. `options` gives file_limit and depth_limit
 * (may be NULL: the defaults). INVALID_ARGUMENT with file and line for malformed text, NUL bytes
 * and DOCTYPE; RESOURCE_EXHAUSTED beyond the limits. The caller destroys *xml. */
tb_status tb_xml_parse(const char *text, size_t size, const char *file,
                       const tb_import_options *options, tb_xml **xml, tb_error *error);
/* The same, but characters between tags stay in the tree (xmlNodeGetContent); white space alone
 * does not. */
tb_status tb_xml_parse_with_text(const char *text, size_t size, const char *file,
                                 const tb_import_options *options, tb_xml **xml, tb_error *error);
void tb_xml_destroy(tb_xml *xml); /* NULL is fine */
/* Adds the remarks on a text to a scene's warnings. */
tb_status tb_xml_warn_remarks(const tb_xml *xml, tb_scene *scene, tb_error *error);

/* ---- xml_mend.c, for the parser ---- */

/* Records a remark on a line; those beyond TB_XML_REMARKS are dropped. */
void tb_xml_remark(tb_xml *xml, int line, const char *format, ...) TB_PRINTF(3, 4);
/* The text as libxml2 takes it, *size bytes, which the caller frees and gives back to the budget; NULL
 * without memory, or beyond INT_MAX bytes. Blanks in `text` a declaration that libxml2 refuses. */
char *tb_xml_mend(char *text, size_t *size, tb_xml *xml);
/* Line, from 1, of the character at an offset. */
int tb_xml_line_at(const char *text, size_t offset);

/* Puts copies of the elements below `from`'s root in the place of `place`, a node of `into`; they
 * keep their files and lines. *first is the first of them (NULL where there are none). */
tb_status tb_xml_graft(tb_xml *into, xmlNode *place, const tb_xml *from, xmlNode **first,
                       tb_error *error);

/* Takes over the names of `from`'s files; *first is the number of the first of them in `into`. */
tb_status tb_xml_adopt_files(tb_xml *into, const tb_xml *from, int32_t *first, tb_error *error);
/* An unlinked copy of an element and its descendants, which belongs to `into`: the caller links
 * it or frees it by xmlFreeNode. Its files' numbers grow by `first_file`. NULL without memory. */
xmlNode *tb_xml_copy(tb_xml *into, const xmlNode *node, int32_t first_file);
/* Gives a new element the file and line of `like` for messages; files are counted as in
 * tb_xml_copy. */
void tb_xml_set_origin(xmlNode *node, const xmlNode *like, int32_t first_file);

/* The root element, the first element below a node, the next one beside it; NULL where there is
 * none. Text, comments and processing instructions are ignored. */
xmlNode *tb_xml_root(const tb_xml *xml);
xmlNode *tb_xml_first(const xmlNode *node);
xmlNode *tb_xml_next(const xmlNode *node);
/* The same for elements of one name. */
xmlNode *tb_xml_first_named(const xmlNode *node, const char *name);
xmlNode *tb_xml_next_named(const xmlNode *node, const char *name);

const char *tb_xml_name(const xmlNode *node);
bool tb_xml_is(const xmlNode *node, const char *name);
int tb_xml_line(const xmlNode *node); /* line of the element's tag */
const char *tb_xml_file(const xmlNode *node);
int32_t tb_xml_file_number(const xmlNode *node); /* index in its document's files */
/* An attribute's unchanged value, borrowed; NULL if absent. */
const char *tb_xml_attribute(const xmlNode *node, const char *name);

/* Fills `error` with "file:line: element ['name']: text", file, line and field (an attribute, or
 * NULL: the element) and returns `status`. */
tb_status tb_xml_fail(tb_error *error, tb_status status, const xmlNode *node, const char *field,
                      const char *format, ...) TB_PRINTF(5, 6);

/* Adds the warning "file:line: element: text" to a scene. */
tb_status tb_xml_warn(tb_scene *scene, const xmlNode *node, tb_error *error, const char *format,
                      ...) TB_PRINTF(4, 5);

/* INVALID_ARGUMENT for an attribute that is not among the space-separated `names`. Attributes of a
 * foreign namespace are ignored. */
tb_status tb_xml_check_attributes(const xmlNode *node, const char *names, tb_error *error);
/* INVALID_ARGUMENT for a child element that is not among the space-separated `names`. */
tb_status tb_xml_check_children(const xmlNode *node, const char *names, tb_error *error);
/* Whether `word` is one of the space-separated `words`. */
bool tb_xml_in_words(const char *words, const char *word);

/* Reads a list of at least `least` and at most `most` finite numbers into `numbers`. Absent: *count
 * is 0 and `numbers` is left as it is. `count` may be NULL. */
tb_status tb_xml_numbers(const xmlNode *node, const char *name, int32_t least, int32_t most,
                         double *numbers, int32_t *count, tb_error *error);
/* One finite number; absent: *number is left as it is. */
tb_status tb_xml_number(const xmlNode *node, const char *name, double *number, tb_error *error);
/* One integer; absent: left as it is. */
tb_status tb_xml_integer(const xmlNode *node, const char *name, int32_t *integer, tb_error *error);
/* "true" or "false" (also "1" and "0"); absent: left as it is. */
tb_status tb_xml_bool(const xmlNode *node, const char *name, bool *value, tb_error *error);
/* As many finite numbers as there are, on the heap (caller frees);
 * NULL and 0 if absent or empty. */
tb_status tb_xml_number_list(const xmlNode *node, const char *name, double **numbers,
                             int32_t *count, tb_error *error);
/* INVALID_ARGUMENT if a required attribute is absent. */
tb_status tb_xml_require(const xmlNode *node, const char *name, const char **value,
                         tb_error *error);
/* The place of the attribute's value among the space-separated `words`;
 * absent: *choice is left as it is. */
tb_status tb_xml_choice(const xmlNode *node, const char *name, const char *words, int32_t *choice,
                        tb_error *error);

#endif
