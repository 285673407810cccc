/* Wilson's score interval: E. B. Wilson, Probable inference, the law of succession, and statistical
 * inference, JASA 22, 1927. Unlike the textbook interval, it is valid for few trials and for
 * rates of 0 and 1. */
#include <math.h>

#include "tribo.h"

/* The z at which the normal distribution's two tails together hold `tails`, erfc(z / sqrt 2) =
 * tails, by bisection, which needs no table and is exact to rounding. */
static double normal_quantile(double tails)
{
    double lower = 0, upper = 40;
    for (int i = 0; i < 200; i++) {
        const double middle = (lower + upper) / 2;
        if (erfc(middle / sqrt(2)) > tails)
            lower = middle;
        else
            upper = middle;
    }
    return (lower + upper) / 2;
}

void tb_wilson_interval(int64_t successes, int64_t trials, double confidence, double *lower,
                        double *upper)
{
    *lower = 0;
    *upper = 1;
    if (trials <= 0 || !(confidence > 0 && confidence < 1)) return;
    const double n = (double)trials, rate = (double)successes / n;
    const double z = normal_quantile(1 - confidence), z2 = z * z;
    const double centre = (rate + z2 / (2 * n)) / (1 + z2 / n);
    const double half = z / (1 + z2 / n) * sqrt(rate * (1 - rate) / n + z2 / (4 * n * n));
    *lower = successes == 0 ? 0 : fmax(0, centre - half);
    *upper = successes == trials ? 1 : fmin(1, centre + half);
}
