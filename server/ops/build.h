/* Identification of this binary's build. */
#ifndef SERVER_BUILD_H
#define SERVER_BUILD_H

/* Commit and compiler, "870d32912ab4 gcc 12.2.0": for GetServerInfo, metrics and run metadata. */
const char *td_build(void);

#endif
