/* stub_path.h - which files are trecr's libraries in the place of others (stubs/audit). */
#ifndef LIB_STUB_PATH_H
#define LIB_STUB_PATH_H

#include <stdbool.h>

/* @path is a stub: .../trecr/stubs/NAME, or .../trecr/RELEASE/stubs/NAME where it is installed; or a stub that
 * counts calls. */
bool is_stub_path(const char *path);

#endif
