// Signals as requests that a loop polls between two steps.
#pragma once

namespace normlab {

// SIGINT, SIGTERM and SIGUSR1 (of batch systems) ask to stop, a second SIGINT ends the process at once with 130,
// SIGUSR2 asks for a checkpoint. A closed pipe or a file-size limit becomes an ordinary write error.
void install_signal_handlers();

bool stop_requested();
bool take_save_request();  // true once for each request

}  // namespace normlab
