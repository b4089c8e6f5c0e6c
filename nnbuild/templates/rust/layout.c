/* Does not compile if the context's size differs from the one in src/lib.rs. */
#include "@PREFIX@.h"

typedef char @PREFIX@_context_is_of_this_size[sizeof(@PREFIX@_context) == @CONTEXT_BYTES@ ? 1 : -1];
