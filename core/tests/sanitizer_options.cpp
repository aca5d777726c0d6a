// A size that no machine has is an error to handle, not a reason for the sanitizer to stop.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
