/*
 * threads.h - how many threads are to work at something at once.
 */
#ifndef LIB_THREADS_H
#define LIB_THREADS_H

/* More than this many are never started. */
#define THREADS_MOST 64u

/* @asked of them, when that is not 0; else as many as there are processors that this process
 * may use, @most at most. */
unsigned threads_wanted(unsigned asked, unsigned most);

#endif
