/* The GPIO ports of STM32F4, L4 and H7, which differ only in their addresses. */
#ifndef NN_ST_GPIO_H
#define NN_ST_GPIO_H

#include "nn_bare.h"

#define GPIO_MODER(base)   NN_REG((base) + 0x00u)
#define GPIO_OSPEEDR(base) NN_REG((base) + 0x08u)
#define GPIO_PUPDR(base)   NN_REG((base) + 0x0cu)
#define GPIO_AFR(base, n)  NN_REG((base) + 0x20u + 4u * (n))

#define GPIO_MODER_ALTERNATE 2u
#define GPIO_OSPEEDR_HIGH    2u
#define GPIO_PUPDR_UP        1u /* an open line reads as idle */

/* Assigns a pin to a peripheral. */
static inline void nn_gpio_alternate(uint32_t base, uint32_t pin, uint32_t function)
{
    uint32_t two = 2u * pin;
    uint32_t four = 4u * (pin % 8u);

    GPIO_AFR(base, pin / 8u) = (GPIO_AFR(base, pin / 8u) & ~(15u << four)) | (function << four);
    GPIO_OSPEEDR(base) = (GPIO_OSPEEDR(base) & ~(3u << two)) | (GPIO_OSPEEDR_HIGH << two);
    GPIO_PUPDR(base) = (GPIO_PUPDR(base) & ~(3u << two)) | (GPIO_PUPDR_UP << two);
    GPIO_MODER(base) = (GPIO_MODER(base) & ~(3u << two)) | (GPIO_MODER_ALTERNATE << two);
}

#endif
