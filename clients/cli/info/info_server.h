/* What `tribo info --server` asks a daemon. */
#ifndef CLI_INFO_SERVER_H
#define CLI_INFO_SERVER_H

#include "remote/remote.h"

/* Asks the daemon for its version, build, devices, solvers and limits and prints them, as text or as
 * one JSON object. What fails is left to the caller to say. */
tb_status info_server(const remote_options *, bool json, tb_error *);

#endif
