/* A driver whose functions do nothing, for measuring the way there. */
int cuDriverGetVersion(int *version);
int cuStreamQuery(void *stream);

int cuDriverGetVersion(int *version)
{
	return 0;
}

int cuStreamQuery(void *stream)
{
	return 0;
}
