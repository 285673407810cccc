#include "modelica/function.h"
tb_status tb_mo_card_load(const mo_program *p, const mo_function *f, struct mo_card_program **l, struct mo_card **c, double *s, tb_error *error)
{ (void)p;(void)f;(void)l;(void)c;(void)s; return tb_fail(error, TB_UNAVAILABLE, "no card"); }
void tb_mo_card_unload(struct mo_card_program *l){(void)l;}
void tb_mo_card_begin(mo_run *r){(void)r;}
void tb_mo_card_end(mo_run *r){(void)r;}
bool tb_mo_card_loop(mo_run *r, mo_frame *f, const mo_s *s){(void)r;(void)f;(void)s;return false;}
void tb_mo_card_fetch(mo_run *r, mo_array *a){(void)r;(void)a;}
void tb_mo_card_free(mo_run *r, mo_array *a){(void)r;(void)a;}
