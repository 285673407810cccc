/* Reads XML from untrusted clients: see xml.h. */
#include "model/import/xml.h"

#include "base/budget.h"

#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node's private word holds its origin: file index in the upper half, line in the lower. */
#define FILE_SHIFT 32
#define LINE_MASK  (((intptr_t)1 << FILE_SHIFT) - 1)
_Static_assert(sizeof(intptr_t) >= 8, "a node's private word holds a file and a line");

/* Far more than any element of a scene has. */
enum { ATTRIBUTE_LIMIT = 1000 };

/* Input and results of the parser's callbacks. */
typedef struct xml_watch {
    int depth_limit;
    bool keep_text; /* characters between tags stay in the tree */
    bool doctype, too_deep, out_of_memory, over_budget;
    bool more_follows; /* text follows the root element */
    size_t end;        /* bytes up to the root element's end; 0: not reached */
    int line;          /* of the first thing at fault */
    size_t nodes;      /* bytes taken from the budget */
    char message[256];
} xml_watch;

static xml_watch *watch_of(void *context)
{
    return ((xmlParserCtxt *)context)->_private;
}

/* The line of the tag that was just read: the parser's line, moved back to the tag's begin. A
 * '<' cannot occur inside an attribute of well-formed text, so the nearest one before the
 * parser's place opens the tag. */
static int tag_line(const xmlParserCtxt *context)
{
    const xmlParserInput *input = context->input;
    int line = input->line;
    const xmlChar *p = input->cur;
    while (p > input->base) {
        p--;
        if (*p == '<') return line;
        if (*p == '\n') line--;
    }
    return input->line;
}

static void on_doctype(void *context, const xmlChar *name, const xmlChar *external_id,
                       const xmlChar *system_id)
{
    xml_watch *watch = watch_of(context);
    (void)name, (void)external_id, (void)system_id;
    if (watch->doctype || watch->too_deep) return;
    watch->doctype = true;
    watch->line = ((xmlParserCtxt *)context)->input->line;
    xmlStopParser(context);
}

static void on_element(void *context, const xmlChar *local_name, const xmlChar *prefix,
                       const xmlChar *uri, int number_of_namespaces, const xmlChar **namespaces,
                       int number_of_attributes, int number_of_defaults, const xmlChar **attributes)
{
    xmlParserCtxt *parser = context;
    xml_watch *watch = watch_of(context);
    const int line = tag_line(parser);
    /* the element, then each attribute with the text that is its value */
    const size_t nodes =
        sizeof(xmlNode) + (size_t)number_of_attributes * (sizeof(xmlAttr) + sizeof(xmlNode));
    if (!tb_budget_holds() || !tb_budget_take(nodes)) {
        watch->over_budget = true;
        xmlStopParser(parser);
        return;
    }
    watch->nodes += nodes;
    if (parser->nodeNr >= watch->depth_limit) {
        if (!watch->too_deep) watch->line = line;
        watch->too_deep = true;
        xmlStopParser(parser);
        return;
    }
    xmlSAX2StartElementNs(context, local_name, prefix, uri, number_of_namespaces, namespaces,
                          number_of_attributes, number_of_defaults, attributes);
    /* libxml2 keeps 16 bits of a line number, and that of the tag's end */
    if (parser->node != NULL) parser->node->_private = (void *)(intptr_t)line;
}

static void on_element_end(void *context, const xmlChar *local_name, const xmlChar *prefix,
                           const xmlChar *uri)
{
    xmlParserCtxt *parser = context;
    xml_watch *watch = watch_of(context);
    xmlSAX2EndElementNs(context, local_name, prefix, uri);
    const xmlParserInput *input = parser->input;
    if (parser->node == NULL && watch->end == 0)
        watch->end = (size_t)input->consumed + (size_t)(input->cur - input->base);
}

#if LIBXML_VERSION >= 21200
static void on_error(void *context, const xmlError *error)
#else
static void on_error(void *context, xmlError *error)
#endif
{
    xml_watch *watch = watch_of(context);
    if (watch == NULL || error == NULL) return;
    if (error->code == XML_ERR_NO_MEMORY) watch->out_of_memory = true;
    if (error->code == XML_ERR_DOCUMENT_END && watch->end > 0 && watch->message[0] == 0)
        watch->more_follows = true;
    if (error->level != XML_ERR_FATAL || watch->message[0] != 0) return;
    snprintf(watch->message, sizeof watch->message, "%s",
             error->message != NULL ? error->message : "malformed");
    watch->message[strcspn(watch->message, "\r\n")] = 0;
    if (watch->line == 0) watch->line = error->line;
}

/* The line of the first tag that has more attributes than ATTRIBUTE_LIMIT, 0 if there is none.
 * libxml2 before 2.12 compares each attribute with all before it, and would take hours over a tag
 * that fills a file. In wide encodings the zero bytes are ignored. */
static int crowded_tag_line(const char *text, size_t size)
{
    enum { CONTENT, TAG, SKIPPED } where = CONTENT;
    const char *end_mark = "";
    size_t matched = 0; /* of the end mark of a comment, CDATA section or instruction */
    int line = 1, tag_line = 1, attributes = 0;
    char quote = 0;
    for (size_t i = 0; i < size; i++) {
        const char c = text[i];
        if (c == 0) continue;
        if (c == '\n') line++;

        if (where == CONTENT && c == '<') {
            const size_t left = size - i;
            const bool comment = left > 4 && memcmp(text + i, "<!--", 4) == 0;
            const bool cdata = left > 9 && memcmp(text + i, "<![CDATA[", 9) == 0;
            const bool instruction = left > 2 && text[i + 1] == '?';
            where = comment || cdata || instruction ? SKIPPED : TAG;
            end_mark = comment ? "-->" : cdata ? "]]>" : "?>";
            if (comment) i += 3;
            if (instruction) i += 1;
            matched = 0;
            tag_line = line;
            attributes = 0;
            quote = 0;
        } else if (where == SKIPPED) {
            /* "--->" and "]]]>" end too: a repeated first character keeps the matched prefix */
            if (c == end_mark[matched])
                matched++;
            else if (!(matched > 1 && c == end_mark[0]))
                matched = c == end_mark[0];
            if (end_mark[matched] == 0) where = CONTENT;
        } else if (where == TAG) {
            if (quote != 0)
                quote = c == quote ? 0 : quote;
            else if (c == '"' || c == '\'')
                quote = c;
            else if (c == '>')
                where = CONTENT;
            else if (c == '=' && ++attributes > ATTRIBUTE_LIMIT)
                return tag_line;
        }
    }
    return 0;
}

static bool add_file(tb_xml *xml, const char *name)
{
    if (xml->number_of_files == xml->capacity) {
        char **larger =
            tb_grow(xml->files, xml->number_of_files + 1, &xml->capacity, sizeof *xml->files);
        if (larger == NULL) return false;
        xml->files = larger;
    }
    char *copy = strdup(name);
    if (copy != NULL) xml->files[xml->number_of_files++] = copy;
    return copy != NULL;
}

/* One pass of libxml2 over a text; *document is NULL where the watch says why. False without
 * memory. */
static bool parse_once(const char *text, size_t size, xml_watch *watch, xmlDoc **document)
{
    xmlParserCtxt *parser = xmlNewParserCtxt();
    *document = NULL;
    if (parser == NULL) return false;
    if (parser->sax == NULL) {
        xmlFreeParserCtxt(parser);
        return false;
    }
    parser->_private = watch;
    parser->sax->internalSubset = on_doctype;
    parser->sax->startElementNs = on_element;
    parser->sax->endElementNs = on_element_end;
    parser->sax->serror = on_error;
    /* text between tags is not needed: a comment would take twenty times its length */
    if (!watch->keep_text) parser->sax->characters = NULL;
    parser->sax->ignorableWhitespace = NULL;
    parser->sax->cdataBlock = NULL;
    parser->sax->comment = NULL;
    parser->sax->processingInstruction = NULL;
    /* libxml2 itself refuses texts beyond 10 MB, which a mesh may have */
    const int flags = XML_PARSE_NONET | XML_PARSE_BIG_LINES | XML_PARSE_COMPACT;
    *document = xmlCtxtReadMemory(parser, text, (int)size, NULL, NULL,
                                  watch->keep_text ? flags | XML_PARSE_HUGE : flags);
    /* a stopped parser may still own its partial tree */
    if (parser->myDoc != NULL) xmlFreeDoc(parser->myDoc);
    parser->myDoc = NULL;
    xmlFreeParserCtxt(parser);
    return true;
}

/* A copy of the text that libxml2 can read, *size bytes of the thread's budget; NULL without memory. */
static char *mended_copy(const char *text, size_t *size, tb_xml *xml)
{
    const unsigned char *head = (const unsigned char *)text;
    const bool wide = *size > 1 && (head[0] == 0 || head[1] == 0 || head[0] >= 0xFE);
    const size_t taken = *size;
    if (!tb_budget_take(taken)) return NULL;
    char *copy = malloc(*size), *mended = NULL;
    if (copy != NULL) memcpy(copy, text, *size);
    if (copy != NULL && wide) return copy;
    if (copy != NULL && memchr(copy, 0, *size) != NULL) {
        /* in one-byte encodings other readers stop at a zero byte */
        *size = strnlen(copy, *size);
        tb_xml_remark(xml, tb_xml_line_at(copy, *size), "a zero byte: the rest is not read");
    }
    if (copy != NULL) mended = tb_xml_mend(copy, size, xml);
    free(copy);
    tb_budget_give_back(taken);
    return mended;
}

/* Parses the text, mended, and without what follows the root element. */
static tb_status parse_mended(const char *text, size_t size, xml_watch *watch, tb_xml *xml,
                              tb_error *error)
{
    char *mended = mended_copy(text, &size, xml);
    if (mended == NULL) {
        const tb_status over = tb_budget_check(error);
        return over != TB_OK ? over : tb_fail_memory(error, size, "an XML document");
    }
    bool done = parse_once(mended, size, watch, &xml->document);
    if (done && watch->more_follows && watch->end < size) {
        xml_watch again = {.depth_limit = watch->depth_limit, .keep_text = watch->keep_text};
        size_t text_begins = watch->end;
        while (text_begins + 1 < size && strchr(" \t\r\n", mended[text_begins]) != NULL)
            text_begins++;
        tb_xml_remark(xml, tb_xml_line_at(mended, text_begins),
                      "the text behind the root element is not read");
        tb_budget_give_back(watch->nodes);
        watch->nodes = 0;
        done = parse_once(mended, watch->end, &again, &xml->document);
        if (xml->document != NULL) *watch = again;
    }
    free(mended);
    tb_budget_give_back(size);
    return done ? TB_OK : tb_fail_memory(error, size, "an XML document");
}

/* keep_text: characters between tags stay in the tree. */
static tb_status parse_document(const char *text, size_t size, const char *file,
                                const tb_import_options *options, bool keep_text, tb_xml **xml,
                                tb_error *error)
{
    const tb_import_options defaults = tb_import_defaults();
    if (options == NULL) options = &defaults;
    if (file == NULL) file = "(memory)";
    *xml = NULL;
    if (text == NULL && size > 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "text", "no text was given");
    if (size == 0)
        return tb_fail_file(error, TB_INVALID_ARGUMENT, file, 0, NULL, "the document is empty");
    if (size > INT_MAX || (options->file_limit > 0 && size > options->file_limit))
        return tb_fail_file(error, TB_RESOURCE_EXHAUSTED, file, 0, NULL,
                            "%zu bytes are more than the %zu that are allowed", size,
                            options->file_limit > 0 ? options->file_limit : (size_t)INT_MAX);

    const int crowded = crowded_tag_line(text, size);
    if (crowded > 0)
        return tb_fail_file(error, TB_RESOURCE_EXHAUSTED, file, crowded, NULL,
                            "a tag has more than %d attributes", ATTRIBUTE_LIMIT);

    tb_status status = TB_OK;
    const int depth = options->depth_limit > 0 ? options->depth_limit : INT_MAX;
    xml_watch watch = {.depth_limit = depth, .keep_text = keep_text};
    tb_xml *result = calloc(1, sizeof *result);
    if (result == NULL || !add_file(result, file)) {
        status = tb_fail_memory(error, size, "an XML document");
        goto done;
    }
    status = parse_mended(text, size, &watch, result, error);
    if (status != TB_OK) goto done;
    if (watch.over_budget && tb_budget_check(error) != TB_OK)
        status = error != NULL ? error->status : TB_RESOURCE_EXHAUSTED;
    else if (watch.doctype)
        status = tb_fail_file(error, TB_INVALID_ARGUMENT, file, watch.line, "DOCTYPE",
                              "a DOCTYPE is not accepted: no entities are needed here");
    else if (watch.too_deep)
        status = tb_fail_file(error, TB_RESOURCE_EXHAUSTED, file, watch.line, NULL,
                              "elements are nested more than %d deep", watch.depth_limit);
    else if (result->document == NULL && strstr(watch.message, "xcessive depth") != NULL)
        status = tb_fail_file(error, TB_RESOURCE_EXHAUSTED, file, watch.line, NULL,
                              "elements are nested too deep");
    else if (watch.out_of_memory)
        status = tb_fail_memory(error, size, "an XML document");
    else if (result->document == NULL || xmlDocGetRootElement(result->document) == NULL)
        status =
            tb_fail_file(error, TB_INVALID_ARGUMENT, file, watch.line, NULL, "malformed XML: %s",
                         watch.message[0] != 0 ? watch.message : "no element");
    if (status != TB_OK) goto done;

    result->document->_private = result;
    result->nodes = watch.nodes;
    watch.nodes = 0;
    *xml = result;
    result = NULL;
done:
    tb_budget_give_back(watch.nodes);
    tb_xml_destroy(result);
    return status;
}

tb_status tb_xml_parse(const char *text, size_t size, const char *file,
                       const tb_import_options *options, tb_xml **xml, tb_error *error)
{
    return parse_document(text, size, file, options, false, xml, error);
}

tb_status tb_xml_parse_with_text(const char *text, size_t size, const char *file,
                                 const tb_import_options *options, tb_xml **xml, tb_error *error)
{
    return parse_document(text, size, file, options, true, xml, error);
}

void tb_xml_destroy(tb_xml *xml)
{
    if (xml == NULL) return;
    if (xml->document != NULL) xmlFreeDoc(xml->document);
    tb_budget_give_back(xml->nodes);
    for (int32_t i = 0; i < xml->number_of_files; i++) free(xml->files[i]);
    free(xml->files);
    free(xml);
}

void tb_xml_set_origin(xmlNode *node, const xmlNode *like, int32_t first_file)
{
    const intptr_t origin = (intptr_t)like->_private;
    node->_private = (void *)(origin + ((intptr_t)first_file << FILE_SHIFT));
}

/* Gives the copy of a tree the origins of the original, with its files moved up by `offset`. */
static void copy_origins(xmlNode *copy, const xmlNode *original, int32_t offset)
{
    tb_xml_set_origin(copy, original, offset);
    xmlNode *c = tb_xml_first(copy);
    for (const xmlNode *o = tb_xml_first(original); o != NULL && c != NULL; o = tb_xml_next(o)) {
        copy_origins(c, o, offset);
        c = tb_xml_next(c);
    }
}

tb_status tb_xml_adopt_files(tb_xml *into, const tb_xml *from, int32_t *first, tb_error *error)
{
    *first = into->number_of_files;
    for (int32_t i = 0; i < from->number_of_files; i++)
        if (!add_file(into, from->files[i])) return tb_fail_memory(error, 0, "an XML document");
    return TB_OK;
}

xmlNode *tb_xml_copy(tb_xml *into, const xmlNode *node, int32_t first_file)
{
    xmlNode *copy = xmlDocCopyNode((xmlNode *)(uintptr_t)node, into->document, 1);
    if (copy != NULL) copy_origins(copy, node, first_file);
    return copy;
}

tb_status tb_xml_graft(tb_xml *into, xmlNode *place, const tb_xml *from, xmlNode **first,
                       tb_error *error)
{
    int32_t first_file = 0;
    *first = NULL;
    const tb_status status = tb_xml_adopt_files(into, from, &first_file, error);
    if (status != TB_OK) return status;
    for (xmlNode *node = tb_xml_first(tb_xml_root(from)); node != NULL; node = tb_xml_next(node)) {
        xmlNode *copy = tb_xml_copy(into, node, first_file);
        if (copy == NULL) return tb_fail_memory(error, 0, "an XML document");
        xmlAddPrevSibling(place, copy);
        if (*first == NULL) *first = copy;
    }
    xmlUnlinkNode(place);
    xmlFreeNode(place);
    return TB_OK;
}

/* ---- walking ---- */

static xmlNode *element_from(xmlNode *node)
{
    while (node != NULL && node->type != XML_ELEMENT_NODE) node = node->next;
    return node;
}

xmlNode *tb_xml_root(const tb_xml *xml)
{
    return xmlDocGetRootElement(xml->document);
}

xmlNode *tb_xml_first(const xmlNode *node)
{
    return element_from(node->children);
}

xmlNode *tb_xml_next(const xmlNode *node)
{
    return element_from(node->next);
}

xmlNode *tb_xml_first_named(const xmlNode *node, const char *name)
{
    xmlNode *child = tb_xml_first(node);
    while (child != NULL && !tb_xml_is(child, name)) child = tb_xml_next(child);
    return child;
}

xmlNode *tb_xml_next_named(const xmlNode *node, const char *name)
{
    xmlNode *next = tb_xml_next(node);
    while (next != NULL && !tb_xml_is(next, name)) next = tb_xml_next(next);
    return next;
}

const char *tb_xml_name(const xmlNode *node)
{
    return (const char *)node->name;
}

/* An element of a foreign namespace is never one of ours. */
bool tb_xml_is(const xmlNode *node, const char *name)
{
    const bool foreign = node->ns != NULL && node->ns->prefix != NULL;
    return !foreign && strcmp((const char *)node->name, name) == 0;
}

int tb_xml_line(const xmlNode *node)
{
    return (int)((intptr_t)node->_private & LINE_MASK);
}

int32_t tb_xml_file_number(const xmlNode *node)
{
    return (int32_t)((intptr_t)node->_private >> FILE_SHIFT);
}

const char *tb_xml_file(const xmlNode *node)
{
    const tb_xml *xml = node->doc != NULL ? node->doc->_private : NULL;
    const int32_t index = tb_xml_file_number(node);
    return xml != NULL && index < xml->number_of_files ? xml->files[index] : "";
}

/* Without entities an attribute is one piece of text, or none if it is empty. */
static const char *attribute_text(const xmlAttr *attribute)
{
    const xmlNode *text = attribute->children;
    return text != NULL && text->content != NULL ? (const char *)text->content : "";
}

const char *tb_xml_attribute(const xmlNode *node, const char *name)
{
    for (const xmlAttr *a = node->properties; a != NULL; a = a->next)
        if (a->ns == NULL && strcmp((const char *)a->name, name) == 0) return attribute_text(a);
    return NULL;
}

/* ---- failing ---- */

tb_status tb_xml_fail(tb_error *error, tb_status status, const xmlNode *node, const char *field,
                      const char *format, ...)
{
    char text[TB_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);

    const char *name = tb_xml_attribute(node, "name");
    const bool named = name != NULL && name[0] != 0;
    return tb_fail_file(error, status, tb_xml_file(node), tb_xml_line(node),
                        field != NULL ? field : tb_xml_name(node), "%.64s%s%.64s%s: %s",
                        tb_xml_name(node), named ? " '" : "", named ? name : "", named ? "'" : "",
                        text);
}

tb_status tb_xml_warn(tb_scene *scene, const xmlNode *node, tb_error *error, const char *format,
                      ...)
{
    char text[TB_ERROR_MESSAGE_SIZE], line[2 * TB_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "%.256s:%d: %.64s: %s", tb_xml_file(node), tb_xml_line(node),
             tb_xml_name(node), text);
    return tb_scene_warn(scene, line, error);
}

bool tb_xml_in_words(const char *words, const char *word)
{
    const size_t length = strlen(word);
    if (length == 0 || strchr(word, ' ') != NULL) return false;
    for (const char *p = words; (p = strstr(p, word)) != NULL; p += length)
        if ((p == words || p[-1] == ' ') && (p[length] == 0 || p[length] == ' ')) return true;
    return false;
}

tb_status tb_xml_check_attributes(const xmlNode *node, const char *names, tb_error *error)
{
    for (const xmlAttr *a = node->properties; a != NULL; a = a->next)
        if (a->ns == NULL && !tb_xml_in_words(names, (const char *)a->name))
            return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, (const char *)a->name,
                               "unknown attribute '%.100s'", (const char *)a->name);
    return TB_OK;
}

tb_status tb_xml_check_children(const xmlNode *node, const char *names, tb_error *error)
{
    for (const xmlNode *child = tb_xml_first(node); child != NULL; child = tb_xml_next(child))
        if (!tb_xml_in_words(names, tb_xml_name(child)))
            return tb_xml_fail(error, TB_INVALID_ARGUMENT, child, NULL,
                               "unknown element in '%.100s'", tb_xml_name(node));
    return TB_OK;
}

/* ---- reading ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The next number of a list: 1 and *number, 0 at the end, -1 for text that is no number or a number
 * that is not finite. */
static int next_number(const char **text, double *number)
{
    while (is_space(**text)) ++*text;
    if (**text == 0) return 0;
    if (!tb_parse_number(text, number) || !isfinite(*number)) return -1;
    return **text == 0 || is_space(**text) ? 1 : -1;
}

tb_status tb_xml_numbers(const xmlNode *node, const char *name, int32_t least, int32_t most,
                         double *numbers, int32_t *count, tb_error *error)
{
    const char *text = tb_xml_attribute(node, name);
    const char *p = text;
    if (count != NULL) *count = 0;
    if (text == NULL) return TB_OK;

    int32_t n = 0;
    double x = 0;
    int found;
    while ((found = next_number(&p, &x)) > 0) {
        if (n < most) numbers[n] = x;
        if (n++ >= most) break;
    }
    if (found < 0 && (strstr(text, "${") != NULL || strstr(text, "$(") != NULL))
        return tb_xml_fail(error, TB_UNSUPPORTED, node, name,
                           "%s=\"%.80s\": xacro must be expanded before (xacro FILE.xacro > "
                           "FILE.urdf)",
                           name, text);
    if (found < 0)
        return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, name,
                           "%s=\"%.80s\" is not a list of finite numbers", name, text);
    if (n < least || n > most) {
        if (least == most)
            return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, name,
                               "%s=\"%.80s\" is not %d number%s", name, text, (int)least,
                               least == 1 ? "" : "s");
        return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, name,
                           "%s=\"%.80s\" is not %d to %d numbers", name, text, (int)least,
                           (int)most);
    }
    if (count != NULL) *count = n;
    return TB_OK;
}

tb_status tb_xml_number(const xmlNode *node, const char *name, double *number, tb_error *error)
{
    return tb_xml_numbers(node, name, 1, 1, number, NULL, error);
}

tb_status tb_xml_integer(const xmlNode *node, const char *name, int32_t *integer, tb_error *error)
{
    double number = *integer;
    const tb_status status = tb_xml_number(node, name, &number, error);
    if (status != TB_OK) return status;
    if (number != floor(number) || fabs(number) > INT32_MAX)
        return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, name, "%s=\"%.80s\" is not an integer",
                           name, tb_xml_attribute(node, name));
    *integer = (int32_t)number;
    return TB_OK;
}

tb_status tb_xml_bool(const xmlNode *node, const char *name, bool *value, tb_error *error)
{
    const char *text = tb_xml_attribute(node, name);
    if (text == NULL) return TB_OK;
    const bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    const bool no = strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
    if (!yes && !no)
        return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, name,
                           "%s=\"%.80s\" is not true or false", name, text);
    *value = yes;
    return TB_OK;
}

tb_status tb_xml_number_list(const xmlNode *node, const char *name, double **numbers,
                             int32_t *count, tb_error *error)
{
    const char *text = tb_xml_attribute(node, name);
    const char *p = text;
    *numbers = NULL;
    *count = 0;
    if (text == NULL) return TB_OK;

    double *list = NULL, x = 0;
    int32_t n = 0, capacity = 0;
    int found;
    while ((found = next_number(&p, &x)) > 0) {
        if (n == capacity) {
            double *larger = tb_grow(list, n + 1, &capacity, sizeof *list);
            if (larger == NULL) {
                free(list);
                return tb_fail_memory(error, (size_t)n * sizeof *list, name);
            }
            list = larger;
        }
        list[n++] = x;
    }
    if (found < 0) {
        free(list);
        return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, name,
                           "%s: entry %d is not a finite number", name, (int)n + 1);
    }
    *numbers = list;
    *count = n;
    return TB_OK;
}

tb_status tb_xml_require(const xmlNode *node, const char *name, const char **value, tb_error *error)
{
    *value = tb_xml_attribute(node, name);
    if (*value != NULL) return TB_OK;
    return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, name, "attribute '%s' is missing", name);
}

tb_status tb_xml_choice(const xmlNode *node, const char *name, const char *words, int32_t *choice,
                        tb_error *error)
{
    const char *text = tb_xml_attribute(node, name);
    if (text == NULL) return TB_OK;
    if (!tb_xml_in_words(words, text))
        return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, name, "%s=\"%.80s\" is not one of: %s",
                           name, text, words);
    int32_t place = 0;
    const size_t length = strlen(text);
    for (const char *p = words; *p != 0; place++) {
        const size_t n = strcspn(p, " ");
        if (n == length && strncmp(p, text, n) == 0) break;
        p += n;
        if (*p == ' ') p++;
    }
    *choice = place;
    return TB_OK;
}
