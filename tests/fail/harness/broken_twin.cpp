// Handed in as a twin, which has to compile.
static_assert(false, "a twin that does not compile");
