/* MJZ: a zip archive that holds an MJCF model with all its files. */
#ifndef TB_MJZ_H
#define TB_MJZ_H

#include "base/base.h"
#include "base/file.h"

/* Loads the archive's model: NAME.xml, NAME/NAME.xml, model.xml or NAME/model.xml, the first that
 * exists, where NAME.mjz is the archive's path without folders. The model's files come from the
 * archive alone; messages call them PATH/file. Statuses are those of tb_archive_open and of
 * tb_scene_load_mjcf; NOT_FOUND for an archive without a model. */
tb_status tb_scene_load_mjz(const tb_bytes *bytes, const char *path,
                            const tb_import_options *options, tb_scene **scene, tb_error *error);

#endif
