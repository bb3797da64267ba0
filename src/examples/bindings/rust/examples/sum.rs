//! Profiles itself while it adds numbers: `cargo run --release --example sum FOLDER`.
use std::time::{Duration, Instant};

#[inline(never)]
fn add_numbers(last: u64) -> u64 {
    (0..last).fold(0, |sum, number| std::hint::black_box(sum ^ number.wrapping_mul(sum | 1)))
}

fn main() -> Result<(), strobe::Error> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "profiles".to_string());
    let session = strobe::Session::start(&[("exporter.directory", &folder)])?;
    let thread = strobe::Thread::register("main")?;
    {
        let _label = strobe::Label::text("step", "sum")?;
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(500) {
            add_numbers(1_000_000);
        }
    }
    drop(thread);
    session.stop()
}
