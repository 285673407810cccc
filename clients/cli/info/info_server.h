/* `tribo info --server`: queries a daemon. */
#ifndef CLI_INFO_SERVER_H
#define CLI_INFO_SERVER_H

#include "remote/remote.h"

/* Requests the daemon's version, build, devices, solvers and limits and prints them, as text or as
 * one JSON object. The caller prints errors. */
tb_status info_server(const remote_options *, bool json, tb_error *);

#endif
