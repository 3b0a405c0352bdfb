// npucd; daemon.cc puts it together.
#include "server/daemon.h"

int main(int argc, char** argv) { return npuc::RunDaemon(argc, argv, {}); }
