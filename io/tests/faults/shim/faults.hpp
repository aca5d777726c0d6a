#pragma once

/// Calls of the operating system that fail when a test wants it. A program that is linked with this
/// library, or started with it in LD_PRELOAD, makes its calls through it; what `arm` says holds for
/// the calls of all threads until `disarm`, and for those of forks.
extern "C" {

/// What happens at the chosen call.
enum HurrayFault : int {
  HURRAY_FAULT_NONE,   ///< Calls are counted and nothing more.
  HURRAY_FAULT_KILL,   ///< SIGKILL instead of the call.
  HURRAY_FAULT_ERROR,  ///< The call is not made (closing is) and fails with `number`.
  HURRAY_FAULT_SHORT,  ///< A call that moves bytes moves half of them, at least one.
};

/// Counting starts at 1 with the next call; call `at` is the chosen one (0: none).
void hurray_faults_arm(long at, HurrayFault fault, int number);
/// How many calls there were since `hurray_faults_arm`.
long hurray_faults_disarm();
/// The name of the chosen call, "" where there were fewer.
const char* hurray_faults_hit();
/// The names of all calls so far, each with a space behind it, as far as there is room.
const char* hurray_faults_trace();
}
