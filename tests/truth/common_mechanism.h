/* Shared by the truth cases about mechanisms: bodies with given inertia, joints, and an
 * integrator for the reference solutions that is independent of libtribo. */
#ifndef COMMON_MECHANISM_H
#define COMMON_MECHANISM_H

#include "common_truth.h"

/* A body without shapes. position (m) in the parent's frame; inertia: principal moments (kg m^2)
 * about com (m) along the body's axes. */
tb_handle mechanism_body(truth *t, const char *name, tb_handle parent, const double position[3],
                         double mass, const double com[3], const double inertia[3]);

/* A joint at an anchor (m, body frame; NULL: its origin); returns the definition's handle. */
tb_handle mechanism_joint(truth *t, const char *name, tb_handle body, tb_joint_type type,
                          const double anchor[3], const double axis[3]);

/* The same from a definition that says more (limits, springs ...). */
tb_handle mechanism_add_joint(truth *t, const tb_joint_def *def);

/* Coordinate and velocity of a joint by name (first of its own). */
double joint_coordinate(const truth *t, const char *name);
double joint_velocity(const truth *t, const char *name);
void set_joint_coordinate(truth *t, const char *name, double value);
void set_joint_velocity(truth *t, const char *name, double value);
/* Holds a generalized force on a joint's first dof; all other dofs get none. */
void set_joint_force(truth *t, const char *name, double value);

/* dx/dt = f(x); context is handed through. */
typedef void reference_rate(const double *x, double *rate, const void *context);

/* Moves x (n <= 32 numbers) for `steps` steps of dt by the classical Runge-Kutta method,
 * fourth order. */
void reference_run(reference_rate *f, const void *context, int n, double *x, double dt,
                   int64_t steps);

/* Solves the dense symmetric positive definite a x = b (n x n, row-major; both are overwritten;
 * x in b). */
void reference_solve(double *a, double *b, int n);

/* Small vectors and quaternions (w, x, y, z) of the reference solutions. */
void reference_cross(const double a[3], const double b[3], double c[3]);
double reference_dot(const double a[3], const double b[3]);
/* v turned from body to world axes by q. */
void reference_rotate(const double q[4], const double v[3], double r[3]);
/* v turned from world to body axes by q. */
void reference_unrotate(const double q[4], const double v[3], double r[3]);
/* dq/dt for an angular velocity in body axes. */
void reference_turn(const double q[4], const double w[3], double rate[4]);
/* Angle between two orientations, rad. */
double reference_angle(const double a[4], const double b[4]);

#endif
