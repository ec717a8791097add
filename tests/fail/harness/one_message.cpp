// Refused as it should be; but another file would have to be as well, and with words of its own.
// expected: the message of this file
static_assert(false, "the message of this file");
