// A plugin for storms_test: the same code under a name of its own each time it is built.
extern "C" {

[[gnu::noinline]] void STROBE_TEST_PLUGIN_SPINS() {
  for (int i = 0; i < 200'000; ++i) asm volatile("");
}

void PluginWork(bool (*done)()) {
  do {
    STROBE_TEST_PLUGIN_SPINS();
  } while (!done());
}

}  // extern "C"
