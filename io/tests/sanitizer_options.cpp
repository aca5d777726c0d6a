#include "../../core/tests/sanitizer_options.cpp"
