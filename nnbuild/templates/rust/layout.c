/* Does not compile where the context is not of the size that src/lib.rs gives it. */
#include "@PREFIX@.h"

typedef char @PREFIX@_context_is_of_this_size[sizeof(@PREFIX@_context) == @CONTEXT_BYTES@ ? 1 : -1];
