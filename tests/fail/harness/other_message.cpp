// Refused, but for another reason than the one expected.
// expected: a message that no compiler prints
static_assert(false, "the actual message");
