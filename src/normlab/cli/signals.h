// Signals as requests that a loop polls between two steps.
#pragma once

namespace normlab {

// SIGINT, SIGTERM, SIGHUP (of a closed terminal) and SIGUSR1 (of batch systems) ask to stop, a second SIGINT ends the
// process at once with 130, SIGUSR2 asks for a checkpoint. A closed pipe or a file-size limit becomes an ordinary write
// error.
void install_signal_handlers();

// Requests wait from here on (base/signal_mask.h), also in the program that this process becomes.
void hold_signals();
void admit_signals();  // those that waited come now

bool stop_requested();
bool take_save_request();  // true once for each request

}  // namespace normlab
