/* plugin.c - a library that victims load while they run. */
static int calls;

int plugin_call(int add);

int plugin_call(int add)
{
	return calls += add;
}
