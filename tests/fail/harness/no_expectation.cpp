// A failure that is not described proves nothing.
static_assert(false, "whatever");
