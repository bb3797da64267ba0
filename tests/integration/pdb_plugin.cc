// A library for windows_names_test, compiled and linked as Microsoft's tools do: its names are in a
// PDB file, but for what it exports. Needs no library itself.
namespace pdb_plugin {

__attribute__((noinline)) unsigned long long Spins(unsigned long long turns) {
  unsigned long long sum = sizeof(STROBE_TEST_BUILD);
  for (volatile unsigned long long i = 0; i < turns; i = i + 1) sum += i * 3;
  return sum;
}

volatile unsigned long long inlined_sink = 0;
inline __attribute__((always_inline)) void Inlined(unsigned long long value) {
  inlined_sink = value * 7;
}

}  // namespace pdb_plugin

extern "C" __declspec(dllexport) unsigned long long PdbPluginWork(unsigned long long turns) {
  const unsigned long long sum = pdb_plugin::Spins(turns) + 1;
  pdb_plugin::Inlined(sum);
  return sum;
}
extern "C" __declspec(dllexport) void* PdbPluginSpins() {
  return reinterpret_cast<void*>(&pdb_plugin::Spins);
}
