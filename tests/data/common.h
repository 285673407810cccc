/* Shared by the generators of test and demo scenes: writing files into a folder, and the mug.
 *
 * Each generator is called as PROGRAM FOLDER [OPTION...], writes its files there and prints their
 * names. Numbers are rounded to fixed digits, so that files are the same on every machine. */
#ifndef DATA_COMMON_H
#define DATA_COMMON_H

#include <stdio.h>

/* Opens FOLDER/name for writing; ends the program with a message if that fails. */
FILE *data_open(const char *folder, const char *name);
/* Closes it; ends the program with a message if not all could be written. */
void data_close(FILE *file, const char *folder, const char *name);
/* The folder a generator was given; ends the program with its usage if there is none. */
const char *data_folder(int argc, char **argv, const char *usage);

/* A mug on the XY plane around the Z axis, its handle towards +X. */
#define MUG_RADIUS_M       0.035 /* outside */
#define MUG_HEIGHT_M       0.090
#define MUG_WALL_M         0.0035
#define MUG_BOTTOM_M       0.005
#define MUG_DENSITY        2300.0 /* kg/m^3, stoneware */
#define MUG_HANDLE_LOW_M   0.024  /* heights at which the handle's middle line meets the wall */
#define MUG_HANDLE_HIGH_M  0.070
#define MUG_HANDLE_REACH_M 0.028  /* of the middle line beyond the wall */
#define MUG_HANDLE_WIDE_M  0.006  /* half width along Y */
#define MUG_HANDLE_THICK_M 0.0045 /* half thickness */

/* The handle's middle line from the upper joint (s = 0) to the lower (s = 1) in the XZ plane:
 * position and unit direction, (x, z). A half of the superellipse of exponent 2.5: it leaves the
 * wall at right angles. */
void mug_handle(double s, double position[2], double direction[2]);

#endif
