/* What device code prints comes in order with what the program prints, buffered or not. */
#include "t/split/setup.h"

int main(void)
{
	set_up();
	printf("before\n");
	OK(launch(kernel("print"), 32, 5, 0, 0, NULL));
	OK(cuCtxSynchronize());
	printf("after\n");
	return wrong != 0;
}
