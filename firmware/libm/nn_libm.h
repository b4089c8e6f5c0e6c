/*
 * The float functions a network needs, freestanding: no table over 1 KB, no double, no errno, no call out of this
 * library. In the default rounding mode every function gives the same bits on every machine and with all flags of the
 * compiler (nn_floats.h). A result that is not a number is always 0x7fc00000.
 */
#ifndef NN_LIBM_H
#define NN_LIBM_H

#include <stddef.h>
#include <stdint.h>

float nn_ceilf(float x);
float nn_cosf(float x);
float nn_erff(float x);
float nn_exp2f(float x);
float nn_expf(float x);
float nn_expm1f(float x);
float nn_fabsf(float x);
float nn_floorf(float x);
float nn_fmaxf(float x, float y);
float nn_fminf(float x, float y);
float nn_fmodf(float x, float y);
float nn_log1pf(float x);
float nn_logf(float x);
float nn_logisticf(float x);
float nn_powf(float x, float y);
float nn_rintf(float x);
float nn_roundf(float x);
float nn_sinf(float x);
float nn_sqrtf(float x);
float nn_tanhf(float x);
float nn_truncf(float x);

/* Parts shared by the functions above. */
float nn_logisticpartsf(float ax, float *excess);
float nn_logpartsf(float f, int32_t k, float c);
float nn_scalbnf(float x, int n);
float nn_trigf(float x, uint32_t quarter);

int nn_memcmp(const void *a, const void *b, size_t size);
void *nn_memcpy(void *to, const void *from, size_t size);
void *nn_memmove(void *to, const void *from, size_t size);
void *nn_memset(void *to, int byte, size_t size);

#endif
