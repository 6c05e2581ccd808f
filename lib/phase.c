/*
 * phase.c - the one variable.
 */
#include "lib/phase.h"

volatile int phase_now;
