#include <hurray.h>

/* Its constants are constants. */
typedef char is_ok[HURRAY_OK == 0 ? 1 : -1];
