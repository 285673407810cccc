/* What the importers share: checking options, and passing a scene's warnings on. */
#ifndef TB_IMPORT_H
#define TB_IMPORT_H

#include "base/base.h"

/* INVALID_ARGUMENT naming the option that makes no sense. */
tb_status tb_import_check(const tb_import_options *options, tb_error *error);

/* Sends every warning of the scene to the hook. */
void tb_import_report(const tb_scene *scene, const tb_log *log);

#endif
