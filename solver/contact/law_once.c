/* The names of the contact laws, for messages and tables. */
#include "contact/contact.h"

const char *tb_law_name(int32_t law)
{
    switch (law) {
    case TB_LAW_UNILATERAL: return "unilateral";
    case TB_LAW_PLANAR: return "planar";
    case TB_LAW_COULOMB: return "coulomb";
    case TB_LAW_SPIN: return "spin";
    case TB_LAW_ROLLING: return "rolling";
    case TB_LAW_BILATERAL: return "bilateral";
    case TB_LAW_BOX: return "box";
    default: return "unknown law";
    }
}
