#include "lib/phase.h"

volatile int phase_now;
