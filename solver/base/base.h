/* Umbrella header of solver/base: utilities that the other folders share, without physics. */
#ifndef TB_BASE_H
#define TB_BASE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/handle.h"
#include "base/linear.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/real.h"
#include "base/sha256.h"
#include "base/vector.h"
#include "tribo.h"

#endif
