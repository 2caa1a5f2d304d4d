/** Version of the library and of the program. */
#ifndef MXGOLD_VERSION_H
#define MXGOLD_VERSION_H

#define MX_VERSION "0.1.0"

#endif
