// A profiler by reference: main owns it, and a class that begins threads keeps a reference to it. A
// header with such a class needs no more of Strobe than strobe/profiler_fwd.h.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "strobe/profiler_fwd.h"

namespace {

// Renders the lines of a picture on threads of its own.
class Renderer {
 public:
  Renderer(strobe::Profiler& profiler, int lines) : profiler_(profiler), lines_(lines) {}
  // How many steps all lines took.
  std::uint64_t Render(int threads);

 private:
  void RunThread(const std::string& name);

  strobe::Profiler& profiler_;
  const int lines_;
  std::atomic<int> next_line_{0};
  std::atomic<std::uint64_t> steps_{0};
};

}  // namespace

// Usually in the class's own source.
#include "strobe/strobe.h"

namespace {

// One line of the Mandelbrot set; returns how many steps it took.
std::uint64_t RenderLine(double imaginary) {
  std::uint64_t steps = 0;
  for (double real = -2; real < 1; real += 1.0 / 512) {
    double x = 0, y = 0;
    for (int step = 0; step < 1000 && x * x + y * y < 4; ++step, ++steps) {
      const double next = x * x - y * y + real;
      y = 2 * x * y + imaginary;
      x = next;
    }
  }
  return steps;
}

std::uint64_t Renderer::Render(int threads) {
  std::vector<std::thread> renderers;
  for (int i = 0; i < threads; ++i)
    renderers.emplace_back(&Renderer::RunThread, this, "renderer " + std::to_string(i));
  for (std::thread& renderer : renderers) renderer.join();
  return steps_;
}

void Renderer::RunThread(const std::string& name) {
  const auto registration = profiler_.RegisterThread(name);
  for (int line = next_line_++; line < lines_; line = next_line_++)
    steps_ += RenderLine(2.0 * line / lines_ - 1);
}

}  // namespace

int main() {
  strobe::Profiler profiler;
  const auto registration = profiler.RegisterThread("main");
  const strobe::ScopedProfiler session(profiler);

  Renderer renderer(profiler, 1024);
  std::printf("%llu steps\n", static_cast<unsigned long long>(renderer.Render(2)));
}
