/** Defines the version of the library and of the program. */
#ifndef MXGOLD_VERSION_H
#define MXGOLD_VERSION_H

/** The version as text; the major number is also that of the soname. */
#define MX_VERSION "0.1.0"

#endif
